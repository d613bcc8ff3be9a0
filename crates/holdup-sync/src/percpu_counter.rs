//! A counter with a cell for each CPU.

use core::fmt;

use crate::StripedCounter;
#[cfg(holdup_rseq)]
use crate::{rseq::Cells, taken::Taken};

/// A counter whose `add` costs about what a plain `+=` costs, on any number of threads.
///
/// Each CPU has a cell on lines of its own, and adds to it with one plain instruction inside a restartable sequence
/// (rseq): a thread that is interrupted or moved to another CPU there starts the section again. No update is lost, and
/// none is locked.
///
/// This needs Linux 4.18 and glibc 2.35 on x86-64 or aarch64. Elsewhere, and in threads that glibc did not start, `add`
/// goes to a [`StripedCounter`]; [`is_per_cpu`](Self::is_per_cpu) tells.
///
/// *Cost:* `add` O(1); [`sum`](Self::sum) and [`drain`](Self::drain) O(possible CPUs) and an uncontended lock. No system
/// calls, but for the memory of the first `add`. *Memory:* 128 bytes for each possible CPU, from the first `add`.
///
/// *When not:* for thousands of counters (take [`StripedCounter`]); where each `add` needs the new total, or a limit must
/// hold at every moment (that is what `AtomicU64` is for); where the sum is read about as often as it is changed.
///
/// `add` may be called in a signal handler once [`is_per_cpu`](Self::is_per_cpu) has returned `true`, by threads that glibc
/// started. A child of `fork` has a copy that counts on from there. A child of `vfork` must not add, as it may not write
/// anything: the kernel watches no sections in it, and it sees its parent's CPU. Beside three threads that added on that CPU
/// while the child did on another, 3 to 5 % of 80 million adds were lost.
///
/// A library that uses it must not be unloaded (`dlclose`) while its threads run: the kernel may still look at the
/// descriptor of a thread's last section.
///
/// ```
/// use holdup_sync::PerCpuCounter;
///
/// static SERVED: PerCpuCounter = PerCpuCounter::new();
///
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| (0..1000).for_each(|_| SERVED.add(1)));
///     }
/// });
/// assert_eq!(SERVED.drain(), 4000);
/// assert_eq!(SERVED.sum(), 0);
/// ```
pub struct PerCpuCounter {
    #[cfg(holdup_rseq)]
    cells: Cells,
    #[cfg(holdup_rseq)]
    taken: Taken,
    /// What the cells can't take.
    striped: StripedCounter,
}

impl PerCpuCounter {
    /// A counter at 0. Allocates nothing.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        PerCpuCounter {
            #[cfg(holdup_rseq)]
            cells: Cells::new(),
            #[cfg(holdup_rseq)]
            taken: Taken::new(),
            striped: StripedCounter::new(),
        }
    }

    /// A counter at 0, as a model.
    #[cfg(loom)]
    pub fn new() -> Self {
        PerCpuCounter { striped: StripedCounter::new() }
    }

    /// Adds `n`, wrapping at 2⁶⁴ (so that `add(5u64.wrapping_neg())` subtracts 5).
    ///
    /// Orders nothing: like `fetch_add` with `Relaxed`.
    #[inline]
    pub fn add(&self, n: u64) {
        #[cfg(holdup_rseq)]
        if self.cells.add(n) {
            return;
        }
        self.add_otherwise(n);
    }

    /// The first time, and where there are no sections. Out of the way of the fast path.
    #[cold]
    #[inline(never)]
    fn add_otherwise(&self, n: u64) {
        #[cfg(holdup_rseq)]
        if self.cells.make(crate::cpu::possible()) && self.cells.add(n) {
            return;
        }
        self.striped.add(n);
    }

    /// What has been added and not drained.
    ///
    /// Exact about every `add` that happened before (in this thread, or in one that was joined or synchronised with).
    /// Adds that go on meanwhile may or may not be in it.
    pub fn sum(&self) -> u64 {
        #[cfg(holdup_rseq)]
        return self.taken.left(|| self.cells.total()).wrapping_add(self.striped.sum());
        #[cfg(not(holdup_rseq))]
        self.striped.sum()
    }

    /// Takes the sum and leaves 0. Each `add` is in the result of exactly one `drain`, however many threads add or drain
    /// meanwhile.
    pub fn drain(&self) -> u64 {
        #[cfg(holdup_rseq)]
        return self.taken.take(|| self.cells.total()).wrapping_add(self.striped.drain());
        #[cfg(not(holdup_rseq))]
        self.striped.drain()
    }

    /// Whether this counter uses restartable sequences here. Allocates the cells, where it does.
    pub fn is_per_cpu(&self) -> bool {
        #[cfg(holdup_rseq)]
        return self.cells.make(crate::cpu::possible());
        #[cfg(not(holdup_rseq))]
        false
    }
}

impl Default for PerCpuCounter {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PerCpuCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerCpuCounter").field("sum", &self.sum()).field("per_cpu", &self.is_per_cpu()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_per_cpu_where_a_new_one_is() {
        assert_eq!(PerCpuCounter::default().is_per_cpu(), PerCpuCounter::new().is_per_cpu());
    }

    #[test]
    fn wraps_and_subtracts() {
        let counter = PerCpuCounter::new();
        counter.add(7);
        counter.add(5u64.wrapping_neg());
        assert_eq!(counter.sum(), 2);
        assert_eq!(counter.drain(), 2);
        assert_eq!(counter.drain(), 0);
        counter.add(u64::MAX);
        assert_eq!(counter.sum(), u64::MAX);
    }

    #[test]
    fn the_first_adds_of_many_threads_make_the_cells_once() {
        let rounds = if cfg!(miri) { 3 } else { 500 };
        for _ in 0..rounds {
            let counter = PerCpuCounter::new();
            let begin = std::sync::Barrier::new(4);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        begin.wait();
                        (0..10).for_each(|_| counter.add(1));
                    });
                }
            });
            assert_eq!(counter.drain(), 40);
        }
    }
}
