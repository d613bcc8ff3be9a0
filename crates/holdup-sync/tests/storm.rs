//! No add is lost while signals, whose handler adds too, and migrations hit the threads all the time. The same counter
//! without the restartable section does lose some, so the storm is one.
//!
//! `cargo test --release -p holdup-sync --test storm -- --ignored --nocapture` makes 10⁸ adds.
#![cfg(all(target_os = "linux", not(loom), not(miri)))]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Barrier, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdup_sync::{Padded, PerCpuCounter, possible_cpus};
use holdup_testing::{Need, skip};

/// The control: the same cells, and the CPU asked for each time, but nothing that restarts what was interrupted. Load,
/// add and store stand apart, as a compiler may leave them; with one add instruction in their place only a migration
/// right before it loses an update, once in 160 million adds, which no test of this length would find.
struct Unprotected(Box<[Padded<AtomicU64>]>);

impl Unprotected {
    fn add(&self, n: u64) {
        // SAFETY: a call without arguments.
        let cpu = unsafe { libc::sched_getcpu() };
        let cell = &self.0[usize::try_from(cpu).unwrap_or(0)];
        let sum = std::hint::black_box(cell.load(Relaxed) + n);
        cell.store(sum, Relaxed);
    }
}

static COUNTER: PerCpuCounter = PerCpuCounter::new();
static UNPROTECTED: LazyLock<Unprotected> =
    LazyLock::new(|| Unprotected((0..possible_cpus()).map(|_| Padded::default()).collect()));

/// Adds that were made in handlers of SIGUSR1 (to the counter) and SIGUSR2 (to the control).
static HANDLED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

extern "C" fn on_usr1(_: libc::c_int) {
    COUNTER.add(1);
    HANDLED[0].fetch_add(1, Relaxed);
}

extern "C" fn on_usr2(_: libc::c_int) {
    UNPROTECTED.add(1);
    HANDLED[1].fetch_add(1, Relaxed);
}

/// Sends a signal to the thread that made it, every 20 µs until it is dropped.
struct Timer(libc::timer_t);

impl Timer {
    fn start(signal: libc::c_int) -> Self {
        // SAFETY: all structures are plain data of these functions, and the thread outlives its timer.
        unsafe {
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer = std::mem::zeroed();
            assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
            let interval = libc::timespec { tv_sec: 0, tv_nsec: 20_000 };
            let times = libc::itimerspec { it_interval: interval, it_value: interval };
            assert_eq!(libc::timer_settime(timer, 0, &times, std::ptr::null_mut()), 0);
            Timer(timer)
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: made in `start`, and deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Allows a thread one CPU alone. Fails for a CPU that is offline or not ours, which does not matter.
fn move_to(tid: libc::pid_t, cpu: usize) {
    // SAFETY: a set of CPUs is plain data, and `cpu` is below its size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu % libc::CPU_SETSIZE as usize, &mut set);
        libc::sched_setaffinity(tid, size_of_val(&set), &set);
    }
}

/// Tests of one process share its counters and CPUs.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a storm was.
#[derive(Debug)]
struct Storm {
    #[expect(dead_code, reason = "printed")]
    threads: u64,
    adds: u64,
    handled: u64,
    migrations: u64,
    drains: u64,
    drained: u64,
}

/// Runs `add` on four times as many threads as CPUs, `each` times each, while `signal` and migrations hit them, and
/// `drain` in between.
fn storm(signal: libc::c_int, handled: &AtomicU64, each: u64, add: fn(), drain: fn() -> u64) -> Storm {
    let threads = 4 * std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    let workers = Mutex::new(Vec::new());
    let (begin, end) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    let (done, rounds) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let before = handled.load(SeqCst);
    let mut storm = Storm {
        threads: threads as u64,
        adds: threads as u64 * each,
        handled: 0,
        migrations: 0,
        drains: 0,
        drained: 0,
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                // SAFETY: a call without arguments.
                workers.lock().unwrap().push(unsafe { libc::gettid() });
                begin.wait();
                let timer = Timer::start(signal);
                (0..each / 2).for_each(|_| add());
                // On a busy machine all could be done before the first migration.
                while rounds.load(SeqCst) == 0 {
                    std::thread::yield_now();
                }
                (each / 2..each).for_each(|_| add());
                drop(timer);
                done.fetch_add(1, SeqCst);
                end.wait();
            });
        }
        begin.wait();
        let workers = workers.lock().unwrap().clone();
        while done.load(SeqCst) < threads {
            for (i, tid) in workers.iter().enumerate() {
                move_to(*tid, (storm.drains as usize + i) % possible_cpus());
                storm.migrations += 1;
            }
            storm.drained += drain();
            storm.drains += 1;
            rounds.fetch_add(1, SeqCst);
            std::thread::sleep(Duration::from_micros(30));
        }
        end.wait();
    });
    storm.handled = handled.load(SeqCst) - before;
    storm
}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: the handlers touch atomics and counters alone, and were not entered before: nothing is lazy any more.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

/// The counter through a storm: nothing may be lost.
fn weather(adds: u64) {
    let _alone = alone();
    // Fallback cells are allocated on the first collision, which a signal handler may not do.
    if !COUNTER.is_per_cpu() {
        return skip(Need::RestartableSequences, "the counter has none");
    }
    assert_eq!(COUNTER.drain(), 0);
    handle(libc::SIGUSR1, on_usr1);
    let threads = 4 * std::thread::available_parallelism().map_or(1, |cpus| cpus.get()) as u64;
    let storm = storm(libc::SIGUSR1, &HANDLED[0], adds.div_ceil(threads), || COUNTER.add(1), || COUNTER.drain());
    let counted = storm.drained + COUNTER.drain();
    println!("{storm:?}: {} lost", storm.adds + storm.handled - counted);
    assert_eq!(counted, storm.adds + storm.handled);
    assert!(storm.handled > 0 && storm.drains > 0, "{storm:?} was no storm");
}

#[test]
fn nothing_is_lost_in_two_million() {
    weather(2_000_000);
}

#[test]
#[ignore = "a minute in a debug build"]
fn nothing_is_lost_in_a_hundred_million() {
    weather(100_000_000);
}

#[test]
fn without_the_section_some_are_lost() {
    let _alone = alone();
    LazyLock::force(&UNPROTECTED);
    handle(libc::SIGUSR2, on_usr2);
    let start = Instant::now();
    let mut made = 0;
    loop {
        // Nothing is drained meanwhile: a plain drain would lose some by itself.
        let storm = storm(libc::SIGUSR2, &HANDLED[1], 250_000, || UNPROTECTED.add(1), || 0);
        made += storm.adds + storm.handled;
        let counted: u64 = UNPROTECTED.0.iter().map(|cell| cell.load(SeqCst)).sum();
        println!("control, {storm:?}: {} of {made} lost", made - counted);
        if counted < made {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(300), "the storm is too weak to show anything");
    }
}
