//! Spans within spans: which of a thread lies within which other of it.

use std::cmp::Reverse;

use holdup_trace::SpanOutcome;
use holdup_trace::tables::Span;

/// Spans around one that are remembered; of more the outermost are forgotten.
const DEEPEST: usize = 64;

/// Where a span lies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The innermost span around it, by its place among all.
    pub(crate) parent: Option<u32>,
    /// How many are around it.
    pub(crate) depth: u32,
}

/// The place of each of `spans`. One lies within another if both are of one thread, and that neither begins with it before nor ends it after; what
/// went from thread to thread lies nowhere, and only crosses others. O(spans × log).
pub(crate) fn of(spans: &[Span]) -> Vec<Place> {
    let mut places = vec![Place::default(); spans.len()];
    let mut order: Vec<usize> = (0..spans.len()).filter(|&i| spans[i].outcome != SpanOutcome::Moved).collect();
    // An inner one ends no later, and where both are alike ended first, so that it has the smaller number.
    let begun = |span: &Span| span.start.after(span.queued);
    order.sort_by_key(|&i| (spans[i].thread, begun(&spans[i]), Reverse(spans[i].t), Reverse(i)));
    let mut around: Vec<usize> = Vec::new();
    for i in order {
        let span = &spans[i];
        around.retain(|&o| spans[o].thread == span.thread && spans[o].t > begun(span));
        let holds = |o: &&usize| spans[**o].t >= span.t;
        places[i].parent = around.iter().rfind(holds).map(|&o| o as u32);
        places[i].depth = around.iter().filter(holds).count() as u32;
        if around.len() == DEEPEST {
            around.remove(0);
        }
        around.push(i);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_trace::{StringId, ThreadIdx, Timestamp};

    fn span(thread: u32, start: u64, end: u64) -> Span {
        let at = Timestamp::from_nanos_since_start;
        let (thread, name, outcome) = (ThreadIdx(thread), StringId(1), SpanOutcome::Complete);
        Span {
            t: at(end),
            thread,
            start: at(start),
            end_thread: thread,
            name,
            argument: StringId(0),
            key: 0,
            outcome,
            weight: 1,
            queued: holdup_trace::Nanos(0),
        }
    }

    #[test]
    fn spans_lie_within_those_of_their_thread() {
        // In the order of their ends, as in a trace: the innermost first.
        let moved = Span { outcome: SpanOutcome::Moved, ..span(1, 3, 4) };
        let all = [span(1, 2, 3), moved, span(2, 3, 4), span(1, 1, 5), span(1, 5, 7), span(1, 6, 8), span(1, 0, 9)];
        let places: Vec<_> = of(&all).iter().map(|p| (p.parent, p.depth)).collect();
        // The fifth and the sixth cross.
        assert_eq!(places, [(Some(3), 2), (None, 0), (None, 0), (Some(6), 1), (Some(6), 1), (Some(6), 1), (None, 0)]);
    }

    #[test]
    fn very_many_open_ones_take_no_time() {
        let all: Vec<Span> = (0..100_000).map(|i| span(1, i, 1_000_000 - i)).collect();
        assert_eq!(of(&all).last().map(|p| p.depth), Some(DEEPEST as u32));
        let crossing: Vec<Span> = (0..100_000).map(|i| span(1, i, 1_000_000 + i)).collect();
        assert!(of(&crossing).iter().all(|p| p.parent.is_none()));
    }
}
