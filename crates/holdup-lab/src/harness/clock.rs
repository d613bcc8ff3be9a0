//! Time: the monotonic clock, and the time stamp counter where reading time has to be cheap.

use std::sync::OnceLock;

/// Nanoseconds of the monotonic clock; 22–30 ns a call in a KVM guest.
pub fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread in nanoseconds. A system call: not for inner loops.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of the whole process in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for a timespec, and the clock is one of Linux's own.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What two readings of the clock without anything between them are apart, in nanoseconds: the least of many.
pub fn cost_ns() -> u64 {
    static COST: OnceLock<u64> = OnceLock::new();
    *COST.get_or_init(|| {
        let once = || {
            let start = now_ns();
            now_ns() - start
        };
        (0..2000).map(|_| once()).min().unwrap_or(0)
    })
}

/// The time stamp counter; 0 where the processor has none that we know.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has RDTSC, and Linux lets user space read it.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: Linux lets user space read the virtual counter; the instruction has no other effect.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
        return count;
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    0
}

/// Ticks of the time stamp counter in a nanosecond, measured over 20 ms once; 0 without a counter.
pub fn ticks_per_ns() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let (start, first) = (now_ns(), ticks());
        while now_ns() - start < 20_000_000 {
            std::hint::spin_loop();
        }
        let (last, end) = (ticks(), now_ns());
        last.wrapping_sub(first) as f64 / (end - start) as f64
    })
}

/// Keeps the CPU for this long.
pub fn work_ns(length: u64) {
    let start = now_ns();
    while now_ns() - start < length {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_advance() {
        let (wall, cpu) = (now_ns(), thread_cpu_ns());
        work_ns(2_000_000);
        assert!(now_ns() - wall >= 2_000_000);
        assert!(thread_cpu_ns() > cpu);
        assert!(cost_ns() < 1_000_000);
    }
}
