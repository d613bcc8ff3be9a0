//! What any thread does at any instant of a part.

use std::cell::OnceCell;

use holdup_trace::tables::Sample;
use holdup_trace::{LockId, StackId, ThreadIdx, Trace};
use rustc_hash::FxHashMap;

use crate::blame::Study;
use crate::intervals::{Chunk, OwnerSpan, State, Step, Wait};

/// A sample tells what a thread ran up to so many periods away.
const NEAR_PERIODS: u64 = 8;

/// A part of the trace, by thread.
pub(super) struct Look<'a> {
    pub(super) chunk: &'a Chunk,
    pub(super) study: &'a Study<'a>,
    /// Sorted only where something is asked.
    steps: OnceCell<ByThread<Step>>,
    samples: OnceCell<ByThread<Sample>>,
    owners: OnceCell<FxHashMap<LockId, Vec<OwnerSpan>>>,
}

impl<'a> Look<'a> {
    pub(super) fn new(chunk: &'a Chunk, study: &'a Study<'a>) -> Self {
        let (steps, samples, owners) = Default::default();
        Look { chunk, study, steps, samples, owners }
    }

    pub(super) fn trace(&self) -> &'a Trace {
        self.study.trace
    }

    /// Whether a part of `from..to` lies in the window.
    pub(super) fn is_inside(&self, from: u64, to: u64) -> bool {
        from < self.study.window.to && to > self.study.window.from
    }

    /// Whether no other part knows anything of `from..to`.
    pub(super) fn is_whole(&self, from: u64, to: u64) -> bool {
        from >= self.chunk.from && (to < self.chunk.to || self.chunk.to >= self.study.timeline.end)
    }

    /// For following waits that time out and begin again.
    pub(super) fn beginnings(&self) -> Beginnings {
        Beginnings::default()
    }

    /// What the thread does at `t`, which lies in the part. O(log steps).
    pub(super) fn state(&self, thread: ThreadIdx, t: u64) -> State {
        let steps = self.steps.get_or_init(|| {
            let all = self.chunk.steps().iter().chain(self.chunk.inserted());
            ByThread::new(all, self.chunk.last.len(), |s| (s.thread, s.t))
        });
        let own = steps.of(thread);
        match own.get(own.partition_point(|s| s.t <= t)) {
            Some(next) => next.before(),
            None => self.chunk.last.get(thread.index()).copied().unwrap_or(State::Unknown),
        }
    }

    /// What the thread ran around `t`, by its nearest sample.
    pub(super) fn ran(&self, thread: ThreadIdx, t: u64) -> StackId {
        let samples = self.samples.get_or_init(|| {
            ByThread::new(self.chunk.samples().iter(), self.chunk.last.len(), |s| (s.thread, s.t.nanos()))
        });
        let own = samples.of(thread);
        let at = own.partition_point(|s| s.t.nanos() <= t);
        let near = own[at.saturating_sub(1)..].iter().take(2);
        let most = NEAR_PERIODS * self.trace().meta.sample_period_ns;
        let nearest = near.map(|s| (s.t.nanos().abs_diff(t), s.stack)).filter(|s| s.0 <= most).min();
        nearest.map_or(StackId::NONE, |s| s.1)
    }

    /// Who is known to own the lock at `t`.
    pub(super) fn owner(&self, lock: LockId, t: u64) -> Option<ThreadIdx> {
        let owners = self.owners.get_or_init(|| {
            let mut by_lock: FxHashMap<LockId, Vec<OwnerSpan>> = FxHashMap::default();
            for span in self.chunk.owners.iter().chain(&self.chunk.owners_at_end) {
                by_lock.entry(span.lock).or_default().push(*span);
            }
            by_lock
        });
        let spans = owners.get(&lock)?;
        // In the order of their ends.
        let next = spans.get(spans.partition_point(|s| s.to <= t))?;
        (next.from <= t).then_some(next.owner)
    }
}

/// Where waits that went on after a time-out began.
#[derive(Debug, Default)]
pub(super) struct Beginnings(FxHashMap<u32, u64>);

impl Beginnings {
    /// When the wait `index` began, asked in the order of the waits.
    pub(super) fn of(&mut self, index: u32, wait: &Wait) -> u64 {
        let from = if self.0.is_empty() { None } else { self.0.remove(&index) }.unwrap_or(wait.start);
        // Index + 1, or one beyond this part, for which nobody asks.
        if let Some(next) = wait.goes_on.checked_sub(1) {
            self.0.insert(next, from);
        }
        from
    }
}

/// Things in the order of time, those of each thread together.
struct ByThread<T> {
    first: Vec<u32>,
    things: Vec<T>,
}

impl<T: Copy> ByThread<T> {
    /// O(n log n) where the things of a thread are out of order, else O(n).
    fn new<'t>(all: impl Iterator<Item = &'t T> + Clone, threads: usize, of: impl Fn(&T) -> (ThreadIdx, u64)) -> Self
    where
        T: 't,
    {
        let mut first = vec![0u32; threads + 1];
        let known = |thing: &&T| of(thing).0.index() < threads;
        all.clone().filter(known).for_each(|thing| first[of(thing).0.index() + 1] += 1);
        (0..threads).for_each(|i| first[i + 1] += first[i]);
        let mut things: Vec<T> = Vec::new();
        if let Some(filler) = all.clone().next() {
            things.resize(first[threads] as usize, *filler);
        }
        let mut next = first.clone();
        for thing in all.filter(known) {
            let at = &mut next[of(thing).0.index()];
            things[*at as usize] = *thing;
            *at += 1;
        }
        for i in 0..threads {
            let own = &mut things[first[i] as usize..first[i + 1] as usize];
            if !own.is_sorted_by_key(|thing| of(thing).1) {
                own.sort_by_key(|thing| of(thing).1);
            }
        }
        ByThread { first, things }
    }

    fn of(&self, thread: ThreadIdx) -> &[T] {
        match (self.first.get(thread.index()), self.first.get(thread.index() + 1)) {
            (Some(&from), Some(&to)) => &self.things[from as usize..to as usize],
            _ => &[],
        }
    }
}
