//! The few things that a check measures.

use crate::harness::clock;
use crate::harness::stats::{self, Spread};

/// The rate of the core in GHz: additions that each need the one before, one a cycle. The fastest of some batches.
pub fn core_ghz() -> f64 {
    const BATCH: u32 = 20_000;
    let batch = |_| {
        let start = clock::now_ns();
        let mut sum = 0u64;
        for _ in 0..BATCH {
            sum = sixteen_additions(sum);
        }
        std::hint::black_box(sum);
        f64::from(BATCH) * 16.0 / (clock::now_ns() - start).max(1) as f64
    };
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        (0..30).map(batch).fold(0.0, f64::max)
    } else {
        0.0
    }
}

#[inline]
fn sixteen_additions(mut sum: u64) -> u64 {
    // SAFETY: the instructions change the one register that they are given.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!(".rept 16", "add {0}, 1", ".endr", inout(reg) sum, options(nomem, nostack));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!(".rept 16", "add {0}, {0}, #1", ".endr", inout(reg) sum, options(nomem, nostack));
    }
    sum
}

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

#[cfg(test)]
mod tests {
    #[test]
    fn sixteen_are_sixteen() {
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            assert_eq!(super::sixteen_additions(1), 17);
        }
    }
}
