//! What of each thread, lock and stack belongs to which finding.

use holdup_trace::{LockId, StackId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::clocks::Set;
use super::taken::{Spans, Taken, Work};
use crate::classify::WaitKind;
use crate::intervals::Wait;

/// Spans in time order, asked for in time order.
#[derive(Debug, Default)]
pub(super) struct Ordered {
    spans: Vec<(u64, u64)>,
    at: usize,
}

impl Ordered {
    pub(super) fn new(mut spans: Vec<(u64, u64)>) -> Self {
        spans.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(spans.len());
        for (from, to) in spans {
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        Ordered { spans: merged, at: 0 }
    }

    /// How much of `from..to` lies in the spans. `from` never goes back.
    pub(super) fn within(&mut self, from: u64, to: u64) -> u64 {
        while self.spans.get(self.at).is_some_and(|span| span.1 <= from) {
            self.at += 1;
        }
        let ahead = self.spans[self.at..].iter().take_while(|span| span.0 < to);
        ahead.map(|span| span.1.min(to) - span.0.max(from)).sum()
    }

    /// Whether the last span that [`within`](Self::within) has passed, or one behind it, has a part in `from..to`.
    fn touches(&self, from: u64, to: u64) -> bool {
        self.spans[self.at.saturating_sub(1)..].iter().take_while(|span| span.0 < to).any(|span| span.1 > from)
    }

    /// Whether an instant lies in the spans that [`within`](Self::within) has not passed.
    pub(super) fn contains(&self, t: u64) -> bool {
        self.spans[self.at..].iter().take_while(|span| span.0 <= t).any(|span| t < span.1)
    }
}

/// What of one thread belongs to one finding.
#[derive(Debug, Default)]
pub(super) struct Piece {
    /// The finding's clock.
    pub(super) clock: usize,
    pub(super) runs: Ordered,
    pub(super) ready: Ordered,
    /// Sampled time of its work that has not been taken out yet, in nanoseconds.
    pub(super) sampled: u64,
}

impl Piece {
    /// How much of having run from `from` to `to` is taken out.
    pub(super) fn of_run(&mut self, from: u64, to: u64) -> u64 {
        let charged = self.runs.within(from, to);
        let sampled = self.sampled.min(to - from - charged);
        self.sampled -= sampled;
        charged + sampled
    }
}

/// All that is taken out, ready to be asked in time order.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    of: Vec<Vec<Piece>>,
    locks: FxHashMap<LockId, Set>,
    sites: FxHashMap<(ThreadIdx, StackId), Set>,
    stacks: FxHashMap<StackId, Set>,
    moved: FxHashMap<StackId, Set>,
    overhead: FxHashMap<StackId, Set>,
}

impl Pieces {
    pub(super) fn new(taken: &[Taken], threads: usize) -> Self {
        let mut pieces = Pieces { of: (0..threads).map(|_| Vec::new()).collect(), ..Pieces::default() };
        for (n, finding) in taken.iter().enumerate() {
            let bit = 1 << n;
            finding.locks.iter().for_each(|lock| *pieces.locks.entry(*lock).or_default() |= bit);
            finding.sites.iter().for_each(|site| *pieces.sites.entry(*site).or_default() |= bit);
            finding.stacks.iter().for_each(|stack| *pieces.stacks.entry(*stack).or_default() |= bit);
            finding.moved.iter().for_each(|stack| *pieces.moved.entry(*stack).or_default() |= bit);
            finding.overhead.iter().for_each(|stack| *pieces.overhead.entry(*stack).or_default() |= bit);
            if finding.work != Work::Stays {
                pieces.add(n, &finding.runs, |piece| &mut piece.runs);
            }
            pieces.add(n, &finding.ready, |piece| &mut piece.ready);
        }
        pieces
    }

    fn add(&mut self, n: usize, spans: &Spans, of: impl Fn(&mut Piece) -> &mut Ordered) {
        for (thread, spans) in spans {
            if thread.index() < self.of.len() {
                *of(self.piece(thread.index(), n)) = Ordered::new(spans.clone());
            }
        }
    }

    /// What of a thread belongs to finding `n`.
    pub(super) fn piece(&mut self, thread: usize, n: usize) -> &mut Piece {
        let own = &mut self.of[thread];
        let at = own.iter().position(|piece| piece.clock == n + 1).unwrap_or_else(|| {
            own.push(Piece { clock: n + 1, ..Piece::default() });
            own.len() - 1
        });
        &mut own[at]
    }

    pub(super) fn of(&mut self, thread: usize) -> &mut [Piece] {
        &mut self.of[thread]
    }

    /// The findings without which this wait would not be.
    pub(super) fn of_wait(&self, wait: &Wait) -> Set {
        let lock = if wait.kind == WaitKind::Lock { self.locks.get(&wait.lock) } else { None };
        let site = self.sites.get(&(wait.thread, wait.stack));
        lock.copied().unwrap_or_default() | site.copied().unwrap_or_default()
    }

    /// The findings without which a sample would not be there, those without which it might be another thread's, and those with whose
    /// waits it may go.
    pub(super) fn of_stack(&self, stack: StackId) -> [Set; 3] {
        let of = |stacks: &FxHashMap<StackId, Set>| stacks.get(&stack).copied().unwrap_or_default();
        let (gone, moved) = (of(&self.stacks), of(&self.moved));
        [gone, moved & !gone, of(&self.overhead) & !gone & !moved]
    }

    /// The findings whose work the thread did in part of the time from `from` to `to`, which is when it has been followed to.
    pub(super) fn by(&self, thread: usize, from: u64, to: u64) -> Set {
        let own = self.of[thread].iter().filter(|piece| piece.runs.touches(from, to));
        own.fold(0, |set, piece| set | 1 << (piece.clock - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_merged_and_cut() {
        let mut spans = Ordered::new(vec![(50, 60), (10, 20), (15, 30)]);
        assert_eq!(spans.within(0, 12), 2);
        assert_eq!(spans.within(12, 55), 18 + 5);
        assert_eq!(spans.within(55, 100), 5);
        assert_eq!(spans.within(100, 200), 0);
    }

    #[test]
    fn no_more_is_taken_out_than_ran() {
        let mut piece = Piece { runs: Ordered::new(vec![(0, 4)]), sampled: 10, ..Piece::default() };
        assert_eq!((piece.of_run(0, 6), piece.sampled), (6, 8));
        assert_eq!((piece.of_run(6, 20), piece.sampled), (8, 0));
    }
}
