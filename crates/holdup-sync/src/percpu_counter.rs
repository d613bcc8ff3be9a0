//! A counter with a cell for each CPU.

use core::fmt;

use crate::StripedCounter;

/// A counter whose `add` costs about what a plain `+=` costs, on any number of threads.
///
/// Each CPU has a cell on lines of its own, and adds to it with one plain instruction inside a restartable sequence
/// (rseq): a thread that is interrupted or moved to another CPU there starts the section again. No update is lost, and
/// none is locked.
///
/// This needs Linux 5.10 and glibc 2.35 on x86-64 or aarch64. Elsewhere, and in threads that glibc did not start, `add`
/// goes to a [`StripedCounter`]; [`is_per_cpu`](Self::is_per_cpu) tells.
///
/// *Cost:* `add` O(1); [`sum`](Self::sum) and [`drain`](Self::drain) O(possible CPUs), `drain` also a system call that
/// interrupts the process's CPUs. *Memory:* 256 bytes for each possible CPU, from the start.
///
/// *When not:* for thousands of counters (take [`StripedCounter`]); where each `add` needs the new total, or a limit must
/// hold at every moment (that is what `AtomicU64` is for); where the sum is read about as often as it is changed.
///
/// `add` may be called in a signal handler where [`is_per_cpu`](Self::is_per_cpu), by threads that glibc started.
///
/// A library that uses it must not be unloaded (`dlclose`) while its threads run: the kernel may still look at the
/// descriptor of a thread's last section.
///
/// ```
/// use holdup_sync::PerCpuCounter;
///
/// let served = PerCpuCounter::new();
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| (0..1000).for_each(|_| served.add(1)));
///     }
/// });
/// assert_eq!(served.drain(), 4000);
/// assert_eq!(served.sum(), 0);
/// ```
pub struct PerCpuCounter {
    #[cfg(holdup_rseq)]
    cells: Option<cells::BankedCells>,
    /// What the cells can't take.
    striped: StripedCounter,
}

impl PerCpuCounter {
    /// A counter at 0.
    pub fn new() -> Self {
        PerCpuCounter {
            #[cfg(holdup_rseq)]
            cells: cells::BankedCells::new(),
            striped: StripedCounter::new(),
        }
    }

    /// Adds `n`, wrapping at 2⁶⁴ (so that `add(5u64.wrapping_neg())` subtracts 5).
    ///
    /// Orders nothing: like `fetch_add` with `Relaxed`.
    #[inline]
    pub fn add(&self, n: u64) {
        #[cfg(holdup_rseq)]
        match &self.cells {
            Some(cells) if cells.add(n) => {}
            _ => self.add_striped(n),
        }
        #[cfg(not(holdup_rseq))]
        self.striped.add(n);
    }

    /// Out of the way of the fast path.
    #[cfg(holdup_rseq)]
    #[cold]
    #[inline(never)]
    fn add_striped(&self, n: u64) {
        self.striped.add(n);
    }

    /// What has been added and not drained.
    ///
    /// Exact about every `add` that happened before (in this thread, or in one that was joined or synchronised with).
    /// Adds that go on meanwhile may or may not be in it.
    pub fn sum(&self) -> u64 {
        #[cfg(holdup_rseq)]
        if let Some(cells) = &self.cells {
            return cells.sum().wrapping_add(self.striped.sum());
        }
        self.striped.sum()
    }

    /// Takes the sum and leaves 0. Each `add` is in the result of exactly one `drain`, however many threads add or drain
    /// meanwhile.
    ///
    /// Costs a `membarrier` system call, some microseconds; the first of the process may take tens of milliseconds.
    ///
    /// # Panics
    /// If the kernel refuses `membarrier` although it offered it when the counter was made.
    pub fn drain(&self) -> u64 {
        #[cfg(holdup_rseq)]
        if let Some(cells) = &self.cells {
            return cells.drain().wrapping_add(self.striped.drain());
        }
        self.striped.drain()
    }

    /// Whether this counter uses restartable sequences here.
    pub fn is_per_cpu(&self) -> bool {
        #[cfg(holdup_rseq)]
        return self.cells.is_some();
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

#[cfg(holdup_rseq)]
mod cells {
    use core::sync::atomic::{AtomicPtr, Ordering::Relaxed, Ordering::Release};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use crate::rseq::{self, Cell, Cells};

    /// Two banks of cells, one of them in use. Adds read inside their section which one it is, so that after the banks
    /// are exchanged and all sections restarted, nobody writes the old one.
    pub struct BankedCells {
        cells: Cells,
        banks: Mutex<Banks>,
    }

    /// Both banks, allocated as one slice, the cells of the one in use first or last.
    struct Banks {
        /// Owned; freed on drop. Not a `Box`, which would claim that nobody else points into it.
        first: *mut Cell,
        second_in_use: bool,
    }

    // SAFETY: the pointer owns cells that are atomics.
    unsafe impl Send for Banks {}

    impl BankedCells {
        pub fn new() -> Option<Self> {
            let area = rseq::area()?;
            let count = crate::cpu::possible();
            let first = Box::into_raw((0..2 * count).map(|_| Cell::default()).collect::<Box<[_]>>()).cast();
            let banks = Mutex::new(Banks { first, second_in_use: false });
            Some(BankedCells {
                cells: Cells { bank: AtomicPtr::new(first), area, count: u32::try_from(count).ok()? },
                banks,
            })
        }

        #[inline]
        pub fn add(&self, n: u64) -> bool {
            // SAFETY: `bank` always points to one of two banks of that many cells that live as long as `self`.
            unsafe { self.cells.add(n) }
        }

        pub fn sum(&self) -> u64 {
            let banks = self.lock();
            self.total(&banks, |cell| cell.load(Relaxed), 0..2)
        }

        pub fn drain(&self) -> u64 {
            let mut banks = self.lock();
            let old = usize::from(banks.second_in_use);
            banks.second_in_use = old == 0;
            self.cells.bank.store(self.start(&banks, 1 - old), Release);
            crate::membarrier::restart_sections();
            // No section writes the old bank any more; the next barrier publishes its zeros before it is used again.
            self.total(&banks, |cell| cell.swap(0, Relaxed), old..old + 1)
        }

        fn lock(&self) -> MutexGuard<'_, Banks> {
            self.banks.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn start(&self, banks: &Banks, bank: usize) -> *mut Cell {
            // SAFETY: there are two banks of that many cells.
            unsafe { banks.first.add(bank * self.cells.count as usize) }
        }

        fn total(
            &self,
            banks: &Banks,
            take: impl Fn(&core::sync::atomic::AtomicU64) -> u64,
            which: core::ops::Range<usize>,
        ) -> u64 {
            let start = self.start(banks, which.start);
            // SAFETY: cells of the allocation, alive as long as `self`, and shared references to atomics.
            let cells = unsafe { core::slice::from_raw_parts(start, which.len() * self.cells.count as usize) };
            cells.iter().fold(0, |sum, cell| sum.wrapping_add(take(&cell.0)))
        }
    }

    impl Drop for BankedCells {
        fn drop(&mut self) {
            let first = self.lock().first;
            let cells = core::ptr::slice_from_raw_parts_mut(first, 2 * self.cells.count as usize);
            // SAFETY: allocated as this boxed slice in `new`; nobody else is left to use it.
            drop(unsafe { Box::from_raw(cells) });
        }
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
}
