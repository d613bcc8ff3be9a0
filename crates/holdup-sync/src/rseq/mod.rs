//! Restartable sequences: a plain add to this CPU's cell that no preemption, migration or signal can split.
//!
//! The kernel looks, whenever it interrupts a thread, whether the thread's instruction pointer is inside the section that
//! the thread's `struct rseq` names. If so, the thread goes on at the section's abort address, which starts it again. So
//! what the section read (the CPU's number) still holds when its last instruction commits, without a locked instruction.
//!
//! ```text
//!   restart: rseq_cs = &descriptor        the only field that may be written
//!   ┌ start: cpu = rseq.cpu_id            read inside: outside it could be stale
//!   │        if cpu >= cells: leave
//!   │        cell = *bank + 128 · cpu
//!   └        *cell += n                   the commit: one instruction, the last
//!     end
//!   abort:   signature before it; jump to restart
//! ```
//!
//! glibc 2.35 and later registers `struct rseq` for each thread and exports where it lies.

use core::num::NonZeroIsize;
use core::sync::atomic::{AtomicPtr, AtomicU64};
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

/// `struct rseq` of this process's threads, if glibc has registered it and sections of other CPUs can be restarted.
pub fn area() -> Option<Area> {
    static AREA: OnceLock<Option<Area>> = OnceLock::new();
    *AREA.get_or_init(|| {
        arch::registered().filter(|_| crate::membarrier::supported()).and_then(NonZeroIsize::new).map(Area)
    })
}

impl Area {
    /// Number of the CPU that this thread was on a moment ago; `None` in a thread that glibc did not register.
    #[inline]
    pub fn cpu(self) -> Option<usize> {
        usize::try_from(arch::cpu_id(self.0.get())).ok()
    }
}

/// The cells that [`add`](Self::add) adds to: the section reads them all, and `bank` while others change it.
#[derive(Debug)]
#[repr(C)]
pub struct Cells {
    /// One cell for each CPU.
    pub bank: AtomicPtr<Cell>,
    pub area: Area,
    pub count: u32,
}

impl Cells {
    /// Adds `n` to this CPU's cell of the bank that `bank` points to at that moment. `false`, with nothing added, if the
    /// thread is not registered or its CPU's number is not below `count`.
    ///
    /// # Safety
    /// Any value that `bank` has during the call points to at least `count` cells that live as long as the call.
    #[inline]
    #[must_use]
    pub unsafe fn add(&self, n: u64) -> bool {
        // SAFETY: an `Area` exists only where glibc registered one for its threads; the rest is the caller's promise.
        unsafe { arch::add(self, n) }
    }
}

#[cfg(test)]
mod tests {
    use holdup_testing::{Need, skip};

    use super::*;

    #[test]
    fn cpu_is_one_that_the_kernel_may_use() {
        let Some(area) = area() else { return skip(Need::RestartableSequences, "none are registered") };
        assert!(area.cpu().is_some_and(|cpu| cpu < crate::cpu::possible()));
    }

    #[test]
    fn a_cpu_beyond_the_cells_adds_nothing() {
        let Some(area) = area() else { return skip(Need::RestartableSequences, "none are registered") };
        let mut cells = [Cell::default()];
        let bank = AtomicPtr::new(cells.as_mut_ptr());
        // SAFETY: no cell is promised, and none is touched.
        assert!(!unsafe { Cells { bank, area, count: 0 }.add(1) });
        assert_eq!(cells[0].0.get_mut(), &0);
    }
}
