//! One wait of a thread.

use holdup_trace::{Cpu, LATE_ACK, LockId, StackId, ThreadIdx, WakeContext};

use super::place::Place;
use crate::classify::{Verdict, WaitKind};

/// One wait: from leaving the CPU to running again.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    /// When it left its CPU, in nanoseconds since the trace's start.
    pub start: u64,
    /// When it was first woken; the trace's end if never.
    pub woken: u64,
    /// When it ran again; the trace's end if never.
    pub resumed: u64,
    /// Whose.
    pub thread: ThreadIdx,
    /// Who woke it, in process context; [`ThreadIdx::NONE`] if an interrupt or nobody did.
    pub waker: ThreadIdx,
    /// For what.
    pub lock: LockId,
    /// Where it blocked.
    pub stack: StackId,
    /// Where its waker was.
    pub waker_stack: StackId,
    /// This wait timed out and goes on in that later one; 0 for none, else index + 1, or [`GOES_ON_BEYOND`].
    pub goes_on: u32,
    /// When the last one began with which it goes on: its own beginning if it does not.
    pub(super) last_start: u64,
    /// Interrupt number or softirq vector; of a thread, the file to which it writes, plus 1.
    pub source: u16,
    /// The system call, or -1.
    pub syscall: i16,
    /// The CPU on which it ran again.
    pub cpu: Cpu,
    /// In which context it was woken.
    pub context: WakeContext,
    /// For what, in kind.
    pub kind: WaitKind,
    /// Whether nobody ended it within the trace.
    pub open: bool,
    /// Whether the kernel counts it as I/O.
    pub io_wait: bool,
    /// Whether the thread is a kernel thread idling by the kernel's word (state I).
    pub idle_state: bool,
    /// What its place is to those that wait there.
    pub place: Place,
    /// What its functions say of that place, or those of its kin where it has no stack.
    pub verdict: Option<Verdict>,
    /// Never held up, whoever it waits for: a join, or a wait ended only so that the thread could exit.
    pub exempt: bool,
    /// Whether the wait before this one cannot go on in it: the thread woke somebody between both, or sleeps.
    pub(super) is_fresh: bool,
}

/// A wait that goes on in one of a later part of the trace.
pub(super) const GOES_ON_BEYOND: u32 = u32::MAX;

/// The softirq in which the network's packets arrive, by Linux's number.
const NET_RX: u16 = 3;

impl Wait {
    /// From leaving the CPU to running again, in nanoseconds.
    pub fn length(&self) -> u64 {
        self.resumed.saturating_sub(self.start)
    }

    /// Whether a timer ended it.
    pub(crate) fn is_timed_out(&self) -> bool {
        self.context == WakeContext::Timer
    }

    /// Whether it was the network that ended it, and no thread of this machine is known to have sent something.
    pub(crate) fn is_from_network(&self) -> bool {
        self.context == WakeContext::SoftIrq && matches!(self.source, NET_RX | LATE_ACK)
    }

    /// Whether what ended it had been held back until an acknowledgement came that was sent by its timer.
    pub(crate) fn is_by_late_ack(&self) -> bool {
        self.context == WakeContext::SoftIrq && self.source == LATE_ACK
    }
}
