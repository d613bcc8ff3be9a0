//! This process's clocks and priority.

use holdup_trace::Nanos;

/// CLOCK_MONOTONIC in nanoseconds: what the kernel's programs stamp records with.
pub(crate) fn now() -> u64 {
    nanos(libc::CLOCK_MONOTONIC)
}

/// CPU seconds that this process has used.
pub(crate) fn cpu_seconds() -> f64 {
    Nanos(nanos(libc::CLOCK_PROCESS_CPUTIME_ID)).seconds()
}

fn nanos(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives through the call.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
