//! What is added up over the whole trace while it is followed for the first time.

use holdup_trace::tables::Sample;
use holdup_trace::{StackId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::Health;
use super::state::State;
use crate::focus::Focus;

/// Sums over threads and CPUs.
pub(super) struct Tally<'a> {
    focus: &'a Focus,
    /// CPU nanoseconds of every thread.
    pub(super) ran: Vec<u64>,
    /// How often each thread's state changed.
    pub(super) changes: Vec<u32>,
    /// Nanoseconds during which n threads of the focus ran at once.
    pub(super) parallelism: Vec<u64>,
    pub(super) health: Health,
    /// CPU samples.
    pub(super) samples: FxHashMap<(ThreadIdx, StackId), u32>,
    running: usize,
    since: u64,
}

impl<'a> Tally<'a> {
    pub(super) fn new(focus: &'a Focus, threads: usize, cpus: usize) -> Self {
        let (ran, parallelism) = (vec![0; threads], vec![0; cpus + 1]);
        Tally {
            focus,
            ran,
            changes: vec![0; threads],
            parallelism,
            health: Health::default(),
            samples: FxHashMap::default(),
            running: 0,
            since: 0,
        }
    }

    /// A thread leaves the state that it had `since` for another at `t`.
    #[inline]
    pub(super) fn change(&mut self, thread: ThreadIdx, before: State, since: u64, next: State, t: u64) {
        let changes = &mut self.changes[thread.index()];
        *changes = changes.saturating_add(1);
        let (ran, runs) = (matches!(before, State::Running(_)), matches!(next, State::Running(_)));
        if ran {
            self.ran[thread.index()] += t.saturating_sub(since);
        }
        if ran != runs && self.focus.contains(thread) {
            self.advance(t);
            self.running = if runs { self.running + 1 } else { self.running.saturating_sub(1) };
        }
    }

    pub(super) fn sample(&mut self, row: &Sample) {
        if row.stack != StackId::NONE {
            *self.samples.entry((row.thread, row.stack)).or_default() += 1;
        }
    }

    /// Counts up to `t`.
    pub(super) fn advance(&mut self, t: u64) {
        let last = self.parallelism.len() - 1;
        self.parallelism[self.running.min(last)] += t.saturating_sub(self.since);
        self.since = self.since.max(t);
    }
}
