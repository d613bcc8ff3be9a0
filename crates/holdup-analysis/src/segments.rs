//! The states of threads with their beginnings and ends, from the steps, which have only the ends.

use holdup_trace::{ThreadIdx, Trace};

use crate::intervals::{Intervals, State};

/// A stretch of time in which a thread did one thing, in nanoseconds since the trace's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) thread: ThreadIdx,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) state: State,
}

impl Segment {
    /// How long it lies within `from..to`, in nanoseconds.
    pub(crate) fn within(&self, from: u64, to: u64) -> u64 {
        self.to.min(to).saturating_sub(self.from.max(from))
    }
}

/// Shows `see` every stretch of every thread, in the order of their ends. O(steps).
pub(crate) fn each(trace: &Trace, intervals: &Intervals, mut see: impl FnMut(Segment)) {
    let mut since: Vec<u64> = trace.threads.start.iter().map(|t| t.nanos().max(intervals.from)).collect();
    let mut show = |thread: ThreadIdx, to: u64, state: State| {
        let Some(from) = since.get_mut(thread.index()) else { return };
        if to > *from {
            see(Segment { thread, from: *from, to, state });
            *from = to;
        }
    };
    intervals.steps.iter().for_each(|s| show(s.thread, s.t, s.before()));
    for (i, &state) in intervals.last.iter().enumerate().skip(1) {
        show(ThreadIdx(i as u32), intervals.end, state);
    }
}
