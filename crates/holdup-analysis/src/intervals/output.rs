//! What the machine says of one part of the trace.

use holdup_trace::ThreadIdx;
use holdup_trace::tables::Sample;

use super::state::{State, Step};
use super::wait::Wait;

/// A change that lies in an earlier part than the one in which it was learned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Late {
    pub(super) t: u64,
    pub(super) thread: ThreadIdx,
    pub(super) before: State,
    pub(super) after: State,
}

/// Steps and waits of one part.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// When the part begins.
    pub(super) from: u64,
    /// When the trace ends.
    pub(super) end: u64,
    /// Whether steps and samples are wanted, or only what outlives the part.
    keep: bool,
    /// Changes in time order.
    pub(super) steps: Vec<Step>,
    /// Changes that were learned late: each behind all steps of its time.
    pub(super) inserted: Vec<Step>,
    pub(super) waits: Vec<Wait>,
    pub(super) samples: Vec<Sample>,
    pub(super) late: Vec<Late>,
    last: u64,
}

impl Output {
    pub(super) fn new(from: u64, end: u64, keep: bool) -> Self {
        Output { from, end, keep, last: from, ..Output::default() }
    }

    pub(super) fn keeps(&self) -> bool {
        self.keep
    }

    /// Begins another part with the same memory.
    pub(super) fn restart(&mut self, from: u64, keep: bool) {
        (self.from, self.last, self.keep) = (from, from, keep);
        self.steps.clear();
        self.inserted.clear();
        self.waits.clear();
        self.samples.clear();
        self.late.clear();
    }

    /// A change at `t`.
    #[inline]
    pub(super) fn step(&mut self, t: u64, thread: ThreadIdx, before: State, after: State) {
        if t < self.last {
            return self.insert(t, thread, before, after);
        }
        self.last = t;
        if self.keep {
            self.steps.push(Step::new(t, thread, before));
        }
    }

    /// A change in the past.
    pub(super) fn insert(&mut self, t: u64, thread: ThreadIdx, before: State, after: State) {
        if t < self.from {
            self.late.push(Late { t, thread, before, after });
        } else if self.keep {
            self.inserted.push(Step::new(t, thread, before));
        }
    }
}
