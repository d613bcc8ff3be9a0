//! The few things that a check measures.

use crate::harness::clock;
use crate::harness::stats::{self, Spread};

/// Nanoseconds of a system call that does next to nothing.
pub fn system_call_ns() -> Spread {
    // SAFETY: the call takes nothing and changes nothing.
    batches(200, || _ = unsafe { libc::syscall(libc::SYS_getppid) })
}

/// Nanoseconds of reading the monotonic clock.
pub fn clock_ns() -> Spread {
    batches(200, || _ = std::hint::black_box(clock::now_ns()))
}

/// The fastest tenth of a hundred batches, up to their median: interrupts only ever add.
fn batches(length: u32, call: impl Fn()) -> Spread {
    let batch = |_| {
        let start = clock::now_ns();
        (0..length).for_each(|_| call());
        (clock::now_ns() - start) as f64 / f64::from(length)
    };
    let all = stats::sorted((0..100).map(batch));
    let at = |q| stats::quantile_of_sorted(&all, q);
    Spread { median: at(0.1), low: at(0.0), high: at(0.5) }
}
