//! What an operation costs each thread, at one thread and at every doubling up to all CPUs.
//!
//! `cargo bench -p holdup-sync [-- PART OF A NAME]` prints CPU nanoseconds per operation and thread. Wall time would be noise on a machine that
//! does something else, too: each round takes its threads' CPU clocks, the rounds of all rows are interleaved, a round
//! in which any thread was preempted does not count, and the median of the others is shown with their least.
//!
//! Then what reading costs, and 20 instances of `OpStats`, of one operation and of five: where their tables fall in memory must not
//! matter.

use std::hint::{black_box, spin_loop};
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
    // Its owner lives on: without one, counts that have come to 0 stay there, and threads meet at those that have not.
    let (arc, owner) = (Arc::new(1u64), PerCpuArc::new(1u64));
    let split_arc = owner.get();
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
        row("PerCpuRef clone and drop", move |_| {
            let _owner = &owner;
            drop(split_arc.clone());
        }),
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

/// By row, the clean rounds' means over their threads, sorted.
fn run(cpus: &[usize], rows: &[Rung]) -> Vec<(&'static str, Vec<f64>)> {
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

/// What reading costs while nobody adds.
fn readers() -> Vec<Rung> {
    let (per_cpu, striped, stats) = (PerCpuCounter::new(), StripedCounter::new(), OpStats::new(4));
    per_cpu.add(1);
    vec![
        row("PerCpuCounter::drain", move |_| _ = black_box(per_cpu.drain())),
        row("StripedCounter::drain", move |_| _ = black_box(striped.drain())),
        row("OpStats::report, 4 of them", move |_| _ = black_box(stats.report())),
    ]
}

const INSTANCES: usize = 20;

/// Instances that are made one after the other, as a program makes its own, each in three rows: one thread adds alone
/// while the others wait, all add to it, and, as a control, each adds to an instance of its own.
fn instances(operations: usize, threads: usize) -> Vec<Rung> {
    let made = |_| {
        let shared = Arc::new(OpStats::new(operations));
        let (alone, own) = (Arc::clone(&shared), (0..threads).map(|_| OpStats::new(operations)).collect::<Vec<_>>());
        [
            row("alone", move |thread| {
                if thread == 0 {
                    alone.add(0, 7);
                }
            }),
            row("together", move |_| shared.add(0, 7)),
            row("apart", move |thread| own[thread].add(0, 7)),
        ]
    };
    (0..INSTANCES).flat_map(made).collect()
}

fn median(sorted: &[f64]) -> Option<f64> {
    sorted.get(sorted.len() / 2).copied()
}

/// For each instance, what all threads pay there beside one alone, and beside the control. All rows take turns: on a
/// virtual machine the core's own speed changes by a factor of two within seconds.
fn compare_instances(cpus: &[usize], operations: usize) {
    let rows = run(cpus, &instances(operations, cpus.len()));
    let ns: Vec<Option<f64>> = rows.iter().map(|row| median(&row.1)).collect();
    // A row is a mean over all threads, and alone means that only one does something.
    let alone = |three: &[Option<f64>]| Some(three[0]? * cpus.len() as f64);
    let sorted = |ratio: &dyn Fn(&[Option<f64>]) -> Option<f64>| {
        let mut ratios: Vec<f64> = ns.chunks(3).filter_map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    };
    let beside_one = sorted(&|three| Some(three[1]? / alone(three)?));
    let beside_apart = sorted(&|three| Some(three[1]? / three[2]?));
    println!(
        "{INSTANCES} instances of OpStats with {operations} operations, {} threads; {} with clean rounds; ratio\n  \
         to one thread alone {beside_one:.2?}\n  to as many on instances of their own {beside_apart:.2?}",
        cpus.len(),
        beside_apart.len()
    );
}

fn show(threads: usize, results: &[(&str, Vec<f64>)]) {
    println!("{threads} threads: CPU ns per operation and thread; median, least, clean rounds of {ROUNDS}");
    for (name, clean) in results {
        match (median(clean), clean.first()) {
            (Some(median), Some(least)) => println!("  {name:26} {median:7.2} {least:7.2} {:5}", clean.len()),
            _ => println!("  {name:26} preempted in every round"),
        }
    }
}

fn main() {
    let cpus = allowed();
    // cargo itself adds `--bench`.
    let part = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let chosen = |mut rows: Vec<Rung>| {
        rows.retain(|row| part.as_ref().is_none_or(|part| row.0.contains(part)));
        rows
    };
    show(1, &run(&cpus[..1], &chosen(readers())));
    let mut threads = 1;
    loop {
        show(threads, &run(&cpus[..threads], &chosen(rows(threads))));
        if threads == cpus.len() {
            break;
        }
        threads = (threads * 2).min(cpus.len());
    }
    if part.is_none_or(|part| "OpStats::add".contains(&part)) {
        [1, 5].iter().for_each(|operations| compare_instances(&cpus, *operations));
    }
}
