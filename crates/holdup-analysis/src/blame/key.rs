//! What a charge is about.

use holdup_trace::{LockId, StackId, ThreadIdx};

use crate::classify::WaitKind;

/// What a chain ends at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Terminal {
    /// A thread that runs.
    Running,
    /// A thread that could run and does not.
    NotRunning,
    /// A thread that a signal has stopped, or that is frozen with its control group.
    Stopped,
    /// A thread that has just been woken for the lock.
    Handoff,
    /// A disk.
    Disk,
    /// The timer of another thread.
    Timer,
    /// A lock whose holder is not known.
    UnknownHolder,
    /// A lock that nobody lets go any more, whoever has it.
    Stuck,
    /// CPU time of the lock's own machinery.
    Overhead,
    /// A thread that runs while others of its program have nothing to do: nobody waits for it, and yet CPUs are idle because
    /// of what it does.
    Serial,
    /// A thread that has just been woken and is on its way to a CPU that is idle.
    Waking,
    /// Runnable, nobody waits for it, and the CPU on which it is to run is idle for longer.
    Stalled,
    /// The same for a moment, where another CPU is idle on which it may run.
    Turn,
    /// The same for longer.
    Misplaced,
    /// The same, where only CPUs are idle, or used by others, on which it may not run.
    Barred,
    /// The same, where none is idle and others run.
    Starved,
    /// The world outside, waited for in the middle of work by one whom others may wait for.
    Outside,
    /// Not held up: the wait is idle by design.
    IdleByDesign,
    /// Not known.
    #[default]
    Unknown,
}

impl Terminal {
    /// Whether the thread of a key with it is one that others waited for, not one that could run itself.
    pub(crate) const fn is_of_culprit(self) -> bool {
        use Terminal::*;
        matches!(self, Running | NotRunning | Stopped | Handoff | Disk | Timer | Overhead | Serial | Outside)
    }
}

/// What identifies a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// What the chain ends at.
    pub terminal: Terminal,
    /// The thread at the chain's end, or the one that the finding is about.
    pub thread: ThreadIdx,
    /// The lock of the chain's last wait, if that is for a lock.
    pub lock: LockId,
    /// The kind of the chain's last wait.
    pub kind: WaitKind,
    /// Where the terminal waits, if it waits.
    pub site: StackId,
}

impl Key {
    /// Whether one waits for a thread that has work to do, not for a lock, a disk or a time.
    pub(crate) fn is_for_thread(&self) -> bool {
        use Terminal::*;
        let runs = matches!(self.terminal, Running | NotRunning | Stopped | Handoff | Waking);
        self.terminal == Serial || runs && self.kind != WaitKind::Lock
    }

    /// What a finding can be about: this without what changes while one waits for the same. Whether the thread at the end
    /// runs or is not let run, and in which ways others wait for it, is one subject; and so is a lock in one thread's hands.
    #[must_use]
    pub fn subject(self) -> Key {
        let kind = if self.kind == WaitKind::Lock { WaitKind::Lock } else { WaitKind::Unknown };
        use Terminal::{Handoff, NotRunning, Running, Stopped};
        let works = matches!(self.terminal, NotRunning | Stopped | Handoff) && kind != WaitKind::Lock;
        Key { kind, terminal: if works { Running } else { self.terminal }, ..self }
    }

    /// Whether both are charges of one finding, so that a wait that met both is one wait.
    pub(super) fn is_like(&self, other: &Key) -> bool {
        let (a, b) = (self.subject(), other.subject());
        let locked = |k: &Key| k.kind == WaitKind::Lock && k.terminal != Terminal::IdleByDesign;
        a == b || locked(&a) && locked(&b) && a.lock == b.lock
    }
}
