//! Programs for the recorder to record, run by this binary itself.

use std::process::ExitCode;
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

/// The hidden command.
pub const COMMAND: &str = "load-for-tests";

/// `threads N`, `spin SECONDS`, `stalls SECONDS AT,AT,…`, `chatter SECONDS`.
pub fn run(args: &[String]) -> ExitCode {
    let number = |i: usize| args.get(i).and_then(|n| n.parse::<f64>().ok()).unwrap_or(1.0);
    match args.first().map(String::as_str) {
        Some("threads") => threads(number(1) as usize),
        Some("spin") => spin(Duration::from_secs_f64(number(1))),
        Some("stalls") => {
            let at =
                args.get(2).map(|list| list.split(',').filter_map(|n| n.parse().ok()).collect()).unwrap_or_default();
            stalls(Duration::from_secs_f64(number(1)), at);
        }
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

/// So many threads that are all there at once, and take a lock in turns.
fn threads(n: usize) {
    let (all, lock) = (Arc::new(Barrier::new(n)), Arc::new(Mutex::new(0_u64)));
    let start = |_| {
        let (all, lock) = (Arc::clone(&all), Arc::clone(&lock));
        let thread = std::thread::Builder::new().stack_size(64 << 10);
        thread.spawn(move || {
            all.wait();
            *lock.lock().expect("no thread panics") += 1;
        })
    };
    let handles: Vec<_> = (0..n).map(start).collect();
    for handle in handles {
        handle.expect("a thread").join().expect("it ends");
    }
}

fn spin(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::black_box((0..1000_u64).sum::<u64>());
    }
}

/// How long a planted stall is.
pub const STALL: Duration = Duration::from_millis(1500);

/// Threads that work a tenth of the time, each piece under a common lock, which one of them holds for [`STALL`] at these seconds.
fn stalls(time: Duration, mut at: Vec<f64>) {
    let lock = Arc::new(Mutex::new(0_u64));
    let begin = Instant::now();
    let worker = |i: u64| {
        let lock = Arc::clone(&lock);
        let thread = std::thread::Builder::new().name("worker".into());
        thread.spawn(move || {
            while begin.elapsed() < time {
                let mut total = lock.lock().expect("no thread panics");
                *total += (0..20_000_u64).map(std::hint::black_box).sum::<u64>();
                drop(total);
                std::thread::sleep(Duration::from_micros(900 + i * 37));
            }
        })
    };
    let workers: Vec<_> = (0..4).map(worker).collect();
    at.sort_by(f64::total_cmp);
    for at in at {
        std::thread::sleep((begin + Duration::from_secs_f64(at)).saturating_duration_since(Instant::now()));
        hold(&lock);
    }
    for worker in workers {
        worker.expect("a thread").join().expect("it ends");
    }
}

#[inline(never)]
fn hold(lock: &Mutex<u64>) {
    let held = lock.lock().expect("no thread panics");
    std::thread::sleep(STALL);
    drop(held);
}
