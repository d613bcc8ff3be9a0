//! When somebody waited for what: the union of time, however many waited and in how many ways.

use rustc_hash::FxHashMap;

use super::key::Key;

/// A stretch of time, in nanoseconds since the trace's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// From when.
    pub from: u64,
    /// Until when.
    pub to: u64,
    /// How much of it: stretches that lie close to each other are one.
    pub covered: u64,
}

impl Span {
    /// All of the time between these two.
    pub(crate) fn whole(from: u64, to: u64) -> Span {
        Span { from, to, covered: to.saturating_sub(from) }
    }
}

/// When somebody waited for one subject, latest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Spans {
    spans: Vec<Span>,
    active: u32,
    since: u64,
}

impl Spans {
    /// One more waits from `t` on, going backwards.
    #[inline]
    pub(super) fn enter(&mut self, t: u64) {
        if self.active == 0 {
            self.since = t;
        }
        self.active += 1;
    }

    /// One less, at the earlier time `t`. Stretches closer than `gap` are one.
    #[inline]
    pub(super) fn leave(&mut self, t: u64, gap: u64) {
        self.active -= 1;
        if self.active == 0 && self.since != t {
            self.add(Span { from: t, to: self.since, covered: self.since - t }, gap);
        }
    }

    /// A stretch earlier than those before, but perhaps for longer.
    pub(super) fn add(&mut self, span: Span, gap: u64) {
        match self.spans.last_mut() {
            Some(last) if last.from <= span.to.saturating_add(gap) => {
                (last.from, last.to) = (last.from.min(span.from), last.to.max(span.to));
                last.covered = last.covered.saturating_add(span.covered);
            }
            _ => self.spans.push(span),
        }
    }

    /// Adds what lies in an earlier part of the trace.
    pub(super) fn absorb(&mut self, earlier: Spans, gap: u64) {
        earlier.spans.into_iter().for_each(|span| self.add(span, gap));
    }
}

/// All of them, by what was waited for.
pub(super) type BySubject = FxHashMap<Key, Spans>;

/// Without what is only needed while they grow.
pub(super) fn finished(spans: BySubject) -> FxHashMap<Key, Vec<Span>> {
    spans.into_iter().filter(|(_, s)| !s.spans.is_empty()).map(|(key, s)| (key, s.spans)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_as_one_is_not_counted_as_one() {
        let mut spans = Spans::default();
        for (from, to) in [(90, 100), (60, 80), (10, 20)] {
            spans.enter(to);
            spans.enter(to - 1);
            spans.leave(from + 1, 10);
            spans.leave(from, 10);
        }
        let found = finished(BySubject::from_iter([(Key::default(), spans)]));
        let wanted = [Span { from: 60, to: 100, covered: 30 }, Span { from: 10, to: 20, covered: 10 }];
        assert_eq!(found[&Key::default()], wanted);
    }
}
