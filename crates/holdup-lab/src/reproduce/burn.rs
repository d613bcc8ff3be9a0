//! Work of a given length, in steps that take the same time whoever else runs.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Duration;

use crate::harness::{clock, stats};

/// Does `ns` nanoseconds of work: so much CPU time, whether or not the thread is preempted meanwhile.
pub(super) fn burn(ns: f64) {
    steps((ns * per_ns()) as u64);
}

/// Products that each need the one before: no compiler and no processor makes them fewer.
fn steps(n: u64) {
    let mut value = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..n {
        value = value.wrapping_mul(0xd134_2543_de82_ef95) | 1;
    }
    black_box(value);
}

/// Steps in a nanosecond: the fastest of many tries, as time is lost and never won.
fn per_ns() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    const STEPS: u64 = 20_000;
    *RATE.get_or_init(|| {
        let once = || {
            let start = clock::now_ns();
            steps(STEPS);
            (clock::now_ns() - start).max(1)
        };
        let least = (0..200).map(|_| once()).min().unwrap_or(1);
        STEPS as f64 / least as f64
    })
}

/// Waits `ns` nanoseconds without a CPU.
pub(super) fn sleep(ns: f64) {
    // Beginning and ending a sleep takes longer than the rest of a short one.
    let rest = ns - late_ns();
    if rest > 0.0 {
        std::thread::sleep(Duration::from_nanos(rest as u64));
    }
}

/// By how much a precise sleep takes longer than told: the middle of many.
fn late_ns() -> f64 {
    static LATE: OnceLock<f64> = OnceLock::new();
    const ASKED: u64 = 50_000;
    let once = |_| {
        let start = clock::now_ns();
        std::thread::sleep(Duration::from_nanos(ASKED));
        (clock::now_ns() - start).saturating_sub(ASKED) as f64
    };
    *LATE.get_or_init(|| {
        let measured = std::thread::spawn(move || {
            sleep_precisely();
            stats::median((0..100).map(once))
        });
        measured.join().unwrap_or(0.0)
    })
}

/// Measures what the other functions need to know, before anybody is timed.
pub(super) fn calibrate() {
    per_ns();
    late_ns();
}

/// Lets sleeps of the calling thread end when they are due, and not up to 50 µs later.
pub(super) fn sleep_precisely() {
    // SAFETY: this call takes plain numbers, and changes how late the kernel wakes the calling thread, nothing else.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_cpu_time_as_told() {
        burn(1000.0);
        let before = clock::thread_cpu_ns();
        burn(20e6);
        let took = clock::thread_cpu_ns() - before;
        // Never much less; more where another thread shares the core.
        assert!(took > 15_000_000, "{took}");
    }
}
