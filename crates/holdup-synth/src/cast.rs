//! What threads do and where: places in the code, and what comes after a stretch of running.

use holdup_trace::{ChainId, LockId, SwitchState};

use crate::code::LEAVES;
use crate::spec::Truth;

/// A thread by its index.
pub(crate) type Who = u32;

/// A place in the code where threads run, wait, or wake others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Which process, by its index.
    pub(crate) process: usize,
    /// The system call in which threads wait here; -1 where they run.
    pub(crate) syscall: i16,
    /// Kernel functions, the innermost first.
    pub(crate) kernel: &'static [&'static str],
    /// User functions, the innermost first.
    pub(crate) user: &'static [&'static str],
}

/// x86-64 numbers of the system calls in which threads wait.
pub(crate) mod calls {
    pub(crate) const NONE: i16 = -1;
    pub(crate) const FUTEX: i16 = 202;
    pub(crate) const POLL: i16 = 232;
    pub(crate) const SLEEP: i16 = 230;
    pub(crate) const PREAD: i16 = 17;
    pub(crate) const FDATASYNC: i16 = 75;
    pub(crate) const RECEIVE: i16 = 45;
}

impl Place {
    pub(crate) fn is_disk(&self) -> bool {
        matches!(self.syscall, calls::PREAD | calls::FDATASYNC)
    }

    /// In which state a thread waits here.
    pub(crate) fn state(&self) -> SwitchState {
        if self.is_disk() { SwitchState::Uninterruptible } else { SwitchState::Sleeping }
    }
}

/// A place whose stacks are interned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site {
    pub(crate) place: Place,
    pub(crate) chains: [(ChainId, u64); LEAVES],
}

/// What a thread does next.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Next {
    /// It runs for so many nanoseconds at the site of this index.
    Run(u64, usize),
    /// It waits at the site of this index, for that lock.
    Block(usize, LockId),
    /// It ends.
    Exit,
}

/// Threads by number, and what they are called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crew {
    pub(crate) name: &'static str,
    pub(crate) process: usize,
    pub(crate) count: u32,
}

/// A program for a machine `M`.
pub(crate) trait Program<M>: Send {
    /// `who` has done what it was told, or runs again after a wait. What next?
    fn step(&mut self, machine: &mut M, who: Who) -> Next;

    /// What was set with the machine's `alarm` rings.
    fn alarm(&mut self, machine: &mut M, what: u32);

    /// What is planted.
    fn truth(&self, machine: &M) -> Truth;
}

/// Who is in a program, and where they can be.
pub(crate) struct Cast {
    /// Names of processes; the first thread of each is its main thread.
    pub(crate) processes: &'static [&'static str],
    /// Threads in the order of their indexes, behind the main threads.
    pub(crate) crews: Vec<Crew>,
    /// Places by index.
    pub(crate) places: &'static [Place],
}
