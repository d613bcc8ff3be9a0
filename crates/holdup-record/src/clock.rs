//! This process's clocks and priority.

use holdup_trace::Nanos;

/// CLOCK_MONOTONIC in nanoseconds: what the kernel's programs stamp records with.
pub(crate) fn now() -> u64 {
    nanos(libc::CLOCK_MONOTONIC)
}

/// How far the time of day is ahead of it, in nanoseconds.
pub(crate) fn time_of_day() -> Option<u64> {
    // Of several looks the one that nothing came between.
    let look = |_| {
        let before = now();
        let time = nanos(libc::CLOCK_REALTIME);
        let after = now();
        (after - before, time.checked_sub(before.midpoint(after)))
    };
    (0..5).map(look).min().and_then(|(_, ahead)| ahead)
}

/// CPU seconds that this process has used.
pub(crate) fn cpu_seconds() -> f64 {
    Nanos(nanos(libc::CLOCK_PROCESS_CPUTIME_ID)).seconds()
}

/// The CPU that this thread runs on.
pub(crate) fn cpu() -> Option<usize> {
    // SAFETY: no arguments.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

fn nanos(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` lives through the call.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
