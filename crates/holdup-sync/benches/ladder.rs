//! What an operation costs each thread, at one thread and at every doubling up to all CPUs.
//!
//! `cargo bench -p holdup-sync [-- PART OF A NAME]` prints CPU nanoseconds per operation and thread. Wall time would be noise on a machine that
//! does something else, too: each round takes its threads' CPU clocks, the rounds of all rows are interleaved, a round
//! in which any thread was preempted does not count, and the median of the others is shown with their least.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use holdup_sync::{OpStats, Padded, PerCpu, PerCpuArc, PerCpuCounter, StripedCounter, ThreadStats};

const ROUNDS: usize = 120;
const OPERATIONS: u64 = 40_000;

/// A name and what one thread does in a round; it is told its number.
struct Rung(&'static str, Box<dyn Fn(usize) + Sync>);

fn row(name: &'static str, operation: impl Fn(usize) + Sync + 'static) -> Rung {
    Rung(name, Box::new(move |thread| (0..OPERATIONS).for_each(|_| operation(thread))))
}

fn rows(threads: usize) -> Vec<Rung> {
    let own: Vec<Padded<AtomicU64>> = (0..threads).map(|_| Padded::default()).collect();
    let own_locked: Vec<Padded<AtomicU64>> = (0..threads).map(|_| Padded::default()).collect();
    let (shared, per_cpu, striped) = (AtomicU64::new(0), PerCpuCounter::new(), StripedCounter::new());
    let contatori = contatori::counters::unsigned::Unsigned::new();
    let fast = fast_counter::ConcurrentCounter::new(threads);
    let (arc, split_arc) = (Arc::new(1u64), PerCpuArc::new(1u64).get());
    let (mutex, cells) = (Mutex::new(0u64), PerCpu::new(|| 0u64));
    let (by_cpu, by_thread) = (OpStats::new(4), ThreadStats::new(4));
    vec![
        row("plain add, own line", move |thread| {
            let cell = &own[thread];
            cell.store(cell.load(Relaxed) + 1, Relaxed);
        }),
        row("PerCpuCounter::add", move |_| per_cpu.add(1)),
        row("fetch_add, own line", move |thread| _ = own_locked[thread].fetch_add(1, Relaxed)),
        row("fetch_add, shared", move |_| _ = shared.fetch_add(1, Relaxed)),
        row("StripedCounter::add", move |_| striped.add(1)),
        row("contatori Unsigned::add", move |_| contatori.add(1)),
        row("fast-counter add", move |_| fast.add(1)),
        row("Arc clone and drop", move |_| drop(arc.clone())),
        row("PerCpuRef clone and drop", move |_| drop(split_arc.clone())),
        row("Mutex, shared", move |_| *mutex.lock().unwrap() += 1),
        row("PerCpu::with", move |_| cells.with(|cell| *cell += 1)),
        row("OpStats::add", move |_| by_cpu.add(1, 7)),
        row("ThreadStats::add", move |_| by_thread.add(1, 7)),
    ]
}

/// This thread's CPU time in nanoseconds, and how often it was preempted.
fn account() -> (u64, i64) {
    // SAFETY: both calls fill structures of plain data.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
        (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64, usage.ru_nivcsw)
    }
}

fn pin(cpu: usize) {
    // SAFETY: a set of CPUs is plain data.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

/// CPUs that this process may use.
fn allowed() -> Vec<usize> {
    // SAFETY: fills a set of CPUs, which is plain data.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect()
    }
}

/// One round of a thread: nanoseconds per operation, or nothing if it was preempted.
fn measured(work: &dyn Fn()) -> Option<f64> {
    let (start, preempted) = account();
    work();
    let (end, now_preempted) = account();
    (preempted == now_preempted).then(|| (end - start) as f64 / OPERATIONS as f64)
}

/// By row, the clean rounds' means over their threads.
fn run(cpus: &[usize]) -> Vec<(&'static str, Vec<f64>)> {
    let mut rows = rows(cpus.len());
    // cargo itself adds `--bench`.
    if let Some(part) = std::env::args().skip(1).find(|arg| !arg.starts_with("--")) {
        rows.retain(|row| row.0.contains(&part));
    }
    let arrived = AtomicUsize::new(0);
    let worker = |thread: usize| {
        pin(cpus[thread]);
        let mut results = Vec::new();
        for step in 0..ROUNDS * rows.len() {
            arrived.fetch_add(1, SeqCst);
            while arrived.load(SeqCst) < (step + 1) * cpus.len() {
                spin_loop();
            }
            results.push(measured(&|| rows[step % rows.len()].1(thread)));
        }
        results
    };
    let worker = &worker;
    let results: Vec<Vec<Option<f64>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cpus.len()).map(|thread| scope.spawn(move || worker(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let round = |step: usize| -> Option<f64> {
        let times: Option<Vec<f64>> = results.iter().map(|thread| thread[step]).collect();
        times.map(|times| times.iter().sum::<f64>() / times.len() as f64)
    };
    (rows.iter().enumerate())
        .map(|(i, row)| {
            let mut clean: Vec<f64> = (0..ROUNDS).filter_map(|n| round(n * rows.len() + i)).collect();
            clean.sort_by(f64::total_cmp);
            (row.0, clean)
        })
        .collect()
}

fn main() {
    let cpus = allowed();
    let mut threads = 1;
    loop {
        println!("{threads} threads: CPU ns per operation and thread; median, least, clean rounds of {ROUNDS}");
        for (name, clean) in run(&cpus[..threads]) {
            match clean.first() {
                Some(least) => println!("  {name:26} {:7.2} {least:7.2} {:5}", clean[clean.len() / 2], clean.len()),
                None => println!("  {name:26} preempted in every round"),
            }
        }
        if threads == cpus.len() {
            return;
        }
        threads = (threads * 2).min(cpus.len());
    }
}
