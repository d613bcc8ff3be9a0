//! Restartable sequences: a plain add to this CPU's cell that no preemption, migration or signal can split.
//!
//! The kernel looks, whenever it interrupts a thread, whether the thread's instruction pointer is inside the section that
//! the thread's `struct rseq` names. If so, the thread goes on at the section's abort address, which starts it again. So
//! what the section read (the CPU's number) still holds when its last instruction commits, without a locked instruction.
//!
//! ```text
//!   restart: rseq_cs = &descriptor        the only field that may be written
//!   ┌ start: cpu = rseq.cpu_id            read inside: outside it could be stale
//!   │        if cpu >= count: leave
//!   └        bank[128 · cpu] += n         the commit: one instruction, the last
//!     end
//!   abort:   signature before it; jump to restart
//! ```
//!
//! glibc 2.35 and later registers `struct rseq` for each thread and exports where it lies.

use core::num::NonZeroIsize;
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicIsize, AtomicPtr, AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
};
use std::sync::OnceLock;

use crate::Padded;

#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod arch;

/// One CPU's cell. Only that CPU writes it, with plain instructions.
pub type Cell = Padded<AtomicU64>;

/// Where glibc keeps each thread's `struct rseq`, from the thread pointer, in bytes. Never 0: there lies the thread's
/// own control block.
#[derive(Clone, Copy, Debug)]
pub struct Area(NonZeroIsize);

const CPU_ID: isize = 4;
const RSEQ_CS: isize = 8;

/// `struct rseq` of this process's threads, if glibc has registered it.
pub fn area() -> Option<Area> {
    static AREA: OnceLock<Option<Area>> = OnceLock::new();
    *AREA.get_or_init(|| arch::registered().and_then(NonZeroIsize::new).map(Area))
}

impl Area {
    /// Number of the CPU that this thread was on a moment ago; `None` in a thread that glibc did not register.
    #[inline]
    pub fn cpu(self) -> Option<usize> {
        usize::try_from(arch::cpu_id(self.0.get())).ok()
    }
}

/// What every section needs, the same for all cells of the process: written before the first cells are shown.
static OFFSET: AtomicIsize = AtomicIsize::new(0);
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A cell for each possible CPU, made when first asked for, so that a counter can be a `static`. They only grow.
#[derive(Debug)]
pub struct Cells {
    /// The first of `COUNT` cells, owned; null until they are made. Not a `Box`, which would claim that nobody else
    /// points into it.
    bank: AtomicPtr<Cell>,
}

impl Cells {
    /// Allocates nothing.
    pub const fn new() -> Self {
        Cells { bank: AtomicPtr::new(null_mut()) }
    }

    /// Makes a cell for each of so many CPUs, all that are possible, if they aren't there. `false` where no sections can
    /// be used.
    #[cold]
    pub fn make(&self, cpus: usize) -> bool {
        if !self.bank.load(Acquire).is_null() {
            return true;
        }
        let (Some(area), Ok(count)) = (area(), u32::try_from(cpus)) else { return false };
        if count == 0 {
            return false;
        }
        OFFSET.store(area.0.get(), Relaxed);
        // All banks are of one length: whoever came first has said it.
        let count = COUNT.compare_exchange(0, count, Relaxed, Relaxed).map_or_else(|first| first, |_| count);
        let bank: *mut Cell = Box::into_raw((0..count).map(|_| Cell::default()).collect::<Box<[_]>>()).cast();
        if self.bank.compare_exchange(null_mut(), bank, AcqRel, Acquire).is_err() {
            // SAFETY: made above, and shown to nobody: another thread was first.
            unsafe { free(bank) };
        }
        true
    }

    /// Adds `n` to this CPU's cell. `false`, with nothing added, if the cells are not made, the thread is not registered,
    /// or its CPU's number is beyond them.
    #[inline]
    #[must_use]
    pub fn add(&self, n: u64) -> bool {
        let bank = self.bank.load(Acquire);
        // SAFETY: an `Area` exists only where glibc registered one for its threads. A bank that is not null has `COUNT` cells,
        // lives as long as `self`, and was shown after both statics were written.
        !bank.is_null() && unsafe { arch::add(bank, COUNT.load(Relaxed), OFFSET.load(Relaxed), n) }
    }

    /// The sum of all cells, wrapping.
    pub fn total(&self) -> u64 {
        self.cells().iter().fold(0, |sum, cell| sum.wrapping_add(cell.load(Relaxed)))
    }

    fn cells(&self) -> &[Cell] {
        let bank = self.bank.load(Acquire);
        if bank.is_null() {
            return &[];
        }
        // SAFETY: as in `add`; these are shared references to atomics.
        unsafe { core::slice::from_raw_parts(bank, COUNT.load(Relaxed) as usize) }
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        let bank = *self.bank.get_mut();
        if !bank.is_null() {
            // SAFETY: made in `make`; nobody else is left to use it.
            unsafe { free(bank) };
        }
    }
}

/// # Safety
/// A bank that [`Cells::make`] allocated after it wrote `COUNT`, and that nobody uses any more.
unsafe fn free(bank: *mut Cell) {
    let cells = core::ptr::slice_from_raw_parts_mut(bank, COUNT.load(Relaxed) as usize);
    // SAFETY: a boxed slice of this length, by the caller's promise.
    drop(unsafe { Box::from_raw(cells) });
}

#[cfg(test)]
mod tests {
    use holdup_testing::{Need, skip};

    use super::*;
    use crate::taken::Taken;

    #[test]
    fn cpu_is_one_that_the_kernel_may_use() {
        let Some(area) = area() else { return skip(Need::RestartableSequences, "none are registered") };
        assert!(area.cpu().is_some_and(|cpu| cpu < crate::cpu::possible()));
    }

    #[test]
    fn a_cpu_beyond_the_cells_adds_nothing() {
        let Some(area) = area() else { return skip(Need::RestartableSequences, "none are registered") };
        let mut cells = [Cell::default()];
        // SAFETY: no cell is promised, and none is touched.
        assert!(!unsafe { arch::add(cells.as_mut_ptr(), 0, area.0.get(), 1) });
        assert_eq!(cells[0].0.get_mut(), &0);
    }

    /// Adds from as many threads as CPUs while `take` runs over and over; what was added, and what was taken in all.
    fn while_others_add(cells: &Cells, take: impl Fn() -> u64) -> (u64, u64) {
        let threads = std::thread::available_parallelism().map_or(2, |cpus| cpus.get());
        let (adds, done) = (2_000_000, AtomicU32::new(0));
        let mut taken = 0;
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    assert!((0..adds).all(|_| cells.add(1)));
                    done.fetch_add(1, AcqRel);
                });
            }
            while (done.load(Acquire) as usize) < threads {
                taken += take();
            }
        });
        (threads as u64 * adds, taken + take())
    }

    #[test]
    fn what_is_taken_is_all_there() {
        let (cells, taken) = (Cells::new(), Taken::new());
        if !cells.make(crate::cpu::possible()) {
            return skip(Need::RestartableSequences, "none are registered");
        }
        let (added, counted) = while_others_add(&cells, || taken.take(|| cells.total()));
        assert_eq!(counted, added);
    }

    /// The control: cells that are emptied by the reader, though with a locked instruction, beside plain adds. One that
    /// has read its cell before and writes it after brings back what was taken.
    #[test]
    fn emptying_the_cells_miscounts() {
        if std::thread::available_parallelism().map_or(1, |cpus| cpus.get()) < 2 {
            return skip(Need::Other { name: "second CPU", is_here: false }, "one CPU overtakes no add");
        }
        let cells = Cells::new();
        if !cells.make(crate::cpu::possible()) {
            return skip(Need::RestartableSequences, "none are registered");
        }
        let miscounts = (0..100).any(|_| {
            let (added, counted) =
                while_others_add(&cells, || cells.cells().iter().map(|cell| cell.swap(0, Relaxed)).sum());
            added != counted
        });
        assert!(miscounts, "this control is too weak to show anything");
    }
}
