//! What is known at an instant of threads and CPUs.

use holdup_trace::{Cpu, StackId, ThreadIdx, WakeContext};

use super::state::State;

/// What is known of a thread at an instant.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadNow {
    pub(super) state: State,
    pub(super) since: u64,
    /// Where it ran last.
    pub(super) cpu: Cpu,
    /// The last wait and the one before, as index + 1.
    pub(super) waits: [u32; 2],
    /// Whether it has woken somebody since its last wait.
    pub(super) woke: bool,
}

impl ThreadNow {
    /// It is in this state from `t` on.
    pub(super) fn begin(&mut self, state: State, t: u64) {
        (self.state, self.since) = (state, t);
    }
}

/// A wake that came while the thread still ran.
#[derive(Debug, Clone, Copy)]
pub(super) struct Early {
    pub(super) t: u64,
    pub(super) waker: ThreadIdx,
    pub(super) context: WakeContext,
    pub(super) source: u16,
    pub(super) stack: StackId,
}

/// What a CPU runs at an instant.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuNow {
    pub(super) running: ThreadIdx,
    pub(super) since: u64,
}

/// The timed-out wait of a thread that may go on in its next one.
#[derive(Debug, Clone, Default)]
pub(super) struct Recent {
    pub(super) resumed: u64,
    /// Crossing waits that end as the next one does.
    pub(super) same: Vec<u32>,
}
