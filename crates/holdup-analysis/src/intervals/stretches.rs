//! The states of threads with their beginnings and ends in one part of the trace.

use holdup_trace::{Cpu, ThreadIdx};

use super::part::{Chunk, Extra};
use super::state::{State, Step};

/// A stretch of time in which a thread did one thing, in nanoseconds since the trace's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Which thread.
    pub thread: ThreadIdx,
    /// From when; the part's begin where it began before.
    pub from: u64,
    /// Until when; the part's end where it goes on.
    pub to: u64,
    /// What it did.
    pub state: State,
}

impl Chunk {
    /// Shows `see` what every thread but the idle task did here, in the order of the ends. O(steps + threads).
    pub fn stretches(&self, mut see: impl FnMut(Stretch)) {
        let mut since = vec![self.from; self.last.len()];
        let mut show = |thread: ThreadIdx, to: u64, state: State| {
            let Some(from) = since.get_mut(thread.index()) else { return };
            if to > *from {
                see(Stretch { thread, from: *from, to, state });
                *from = to;
            }
        };
        self.all_steps(|s| show(s.thread, s.t, s.before()));
        for (i, &state) in self.last.iter().enumerate().skip(1) {
            show(ThreadIdx(i as u32), self.to, state);
        }
    }

    /// All changes in time order; what was learned late comes behind the others of its time.
    fn all_steps(&self, mut see: impl FnMut(&Step)) {
        let mut late = self.inserted().iter().peekable();
        for step in self.steps() {
            while let Some(before) = late.next_if(|l| l.t < step.t) {
                see(before);
            }
            see(step);
        }
        late.for_each(see);
    }

    /// From when to when the records of which CPU are lost here.
    pub fn lost(&self) -> Vec<(Cpu, u64, u64)> {
        let mut found = Vec::new();
        let mut since: Vec<u64> = vec![self.from; self.lost_at_end.len()];
        let mut show = |cpu: Cpu, to: u64, lost: bool| {
            let Some(from) = since.get_mut(cpu.index()) else { return };
            if lost && to > *from {
                found.push((cpu, *from, to));
            }
            *from = to;
        };
        for (t, extra) in &self.extras {
            if let Extra::Lost(cpu, before) = extra {
                show(*cpu, *t, *before);
            }
        }
        for (i, &lost) in self.lost_at_end.iter().enumerate() {
            show(Cpu(i as u16), self.to, lost);
        }
        found
    }
}
