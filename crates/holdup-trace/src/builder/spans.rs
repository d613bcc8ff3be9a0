//! Pairs begins and ends of spans, thread by thread, or by a key that both tell.
//!
//! A thread's open spans lie on a stack, each with the frame in which it began. Stacks grow downwards: a span that begins where an
//! open one's frame would have to be gone already has shown that the open one was abandoned (an exception, `longjmp`).

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::event::{Pairing, SpanEdgeEvent};
use crate::tables::Span;
use crate::{Nanos, SpanOutcome, StringId, ThreadIdx, Timestamp};

/// Most spans of a thread that are open at once; the outermost beyond are given up.
const DEEPEST: usize = 64;
/// Most spans that wait for their key at once.
const MOST_KEYS: usize = 1 << 16;

/// A span that has begun.
#[derive(Debug, Clone, Copy)]
struct Open {
    edge: SpanEdgeEvent,
    thread: ThreadIdx,
    start: Timestamp,
}

impl Open {
    fn end(&self, t: Timestamp, end_thread: ThreadIdx, outcome: SpanOutcome) -> Span {
        let SpanEdgeEvent { name, argument, at, weight, pairing, .. } = self.edge;
        let key = if pairing == Pairing::Key { at } else { 0 };
        Span {
            t,
            thread: self.thread,
            start: self.start,
            end_thread,
            name,
            argument,
            key,
            outcome,
            weight,
            queued: Nanos(0),
        }
    }

    fn close(&self, t: Timestamp, outcome: SpanOutcome) -> Span {
        self.end(t, ThreadIdx::NONE, outcome)
    }
}

/// All spans that are open.
#[derive(Debug, Default)]
pub(super) struct OpenSpans {
    by_thread: FxHashMap<ThreadIdx, Vec<Open>>,
    by_key: FxHashMap<(StringId, u64), Open>,
    /// Ends that nothing had begun, as far as is known.
    pub unmatched: u64,
    /// Begins that found no room.
    pub left_out: u64,
}

impl OpenSpans {
    /// A span begins or ends; gives the spans that are over by that, the innermost first.
    pub fn edge(&mut self, t: Timestamp, thread: ThreadIdx, edge: SpanEdgeEvent) -> Vec<Span> {
        match (edge.begin, edge.pairing) {
            (true, Pairing::Key) => self.begin_keyed(Open { edge, thread, start: t }),
            (false, Pairing::Key) => self.end_keyed(t, thread, edge),
            (true, _) => self.begin(Open { edge, thread, start: t }),
            (false, pairing) => self.end(t, thread, edge, pairing),
        }
    }

    fn begin_keyed(&mut self, open: Open) -> Vec<Span> {
        let full = self.by_key.len() >= MOST_KEYS;
        match self.by_key.entry((open.edge.name, open.edge.at)) {
            Entry::Occupied(mut before) => {
                vec![before.insert(open).close(open.start, SpanOutcome::Abandoned)]
            }
            Entry::Vacant(_) if full => {
                self.left_out += 1;
                Vec::new()
            }
            Entry::Vacant(room) => {
                room.insert(open);
                Vec::new()
            }
        }
    }

    fn end_keyed(&mut self, t: Timestamp, thread: ThreadIdx, edge: SpanEdgeEvent) -> Vec<Span> {
        let Some(open) = self.by_key.remove(&(edge.name, edge.at)) else {
            self.unmatched += 1;
            return Vec::new();
        };
        let outcome = if open.thread == thread { SpanOutcome::Complete } else { SpanOutcome::Moved };
        vec![open.end(t, thread, outcome)]
    }

    fn begin(&mut self, open: Open) -> Vec<Span> {
        let stack = self.by_thread.entry(open.thread).or_default();
        let mut over = Vec::new();
        // Only spans of one program's stack can be told apart by it; markers tell no frame.
        while open.edge.pairing == Pairing::Frame
            && let Some(top) = stack
                .pop_if(|top| top.edge.pairing == Pairing::Frame && top.edge.at <= open.edge.at && is_gone(top, &open))
        {
            over.push(top.close(open.start, SpanOutcome::Abandoned));
        }
        if stack.len() == DEEPEST {
            stack.remove(0);
            self.left_out += 1;
        }
        stack.push(open);
        over
    }

    fn end(&mut self, t: Timestamp, thread: ThreadIdx, edge: SpanEdgeEvent, pairing: Pairing) -> Vec<Span> {
        let stack = self.by_thread.entry(thread).or_default();
        let is_it = |open: &Open| match pairing {
            Pairing::Frame if edge.returns => open.edge.name == edge.name && open.edge.at == edge.at,
            Pairing::Frame => open.edge.name == edge.name,
            // A marker that ends names nothing: it ends what began last.
            _ => open.edge.pairing == pairing && (edge.name == StringId::default() || open.edge.name == edge.name),
        };
        let Some(at) = stack.iter().rposition(is_it) else {
            self.unmatched += 1;
            return Vec::new();
        };
        // What began within it and has not ended is left of frames that are gone, or crosses it: that one goes on.
        let mut over = Vec::new();
        if edge.returns {
            let inner = stack.drain(at + 1..).rev();
            over.extend(inner.map(|open| open.close(t, SpanOutcome::Abandoned)));
        }
        let open = stack.remove(at);
        over.push(open.end(t, thread, SpanOutcome::Complete));
        over
    }

    /// The thread ends, and with it what it had begun.
    pub fn exit(&mut self, t: Timestamp, thread: ThreadIdx) -> Vec<Span> {
        let stack = self.by_thread.remove(&thread).unwrap_or_default();
        stack.iter().rev().map(|open| open.close(t, SpanOutcome::Abandoned)).collect()
    }

    /// The trace ends; in the order of their begins.
    pub fn finish(&mut self, t: Timestamp) -> Vec<Span> {
        let stacks = std::mem::take(&mut self.by_thread);
        let keyed = std::mem::take(&mut self.by_key);
        let mut open: Vec<Open> = stacks.into_values().flatten().chain(keyed.into_values()).collect();
        open.sort_by_key(|open| (open.start, open.thread, std::cmp::Reverse(open.edge.at)));
        open.iter().map(|open| open.close(t, SpanOutcome::Open)).collect()
    }
}

/// Whether the frame of an open span must be gone when another begins at or above it. One function may be entered again from the same
/// frame only after it was left; two different ones share a stack pointer where one jumps to the other.
fn is_gone(top: &Open, next: &Open) -> bool {
    top.edge.at < next.edge.at || top.edge.name == next.edge.name
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: StringId = StringId(1);
    const B: StringId = StringId(2);

    fn edge(begin: bool, name: StringId, at: u64) -> SpanEdgeEvent {
        let (pairing, returns) = (Pairing::Frame, !begin);
        SpanEdgeEvent { tid: 1, begin, returns, name, argument: StringId(0), at, pairing, weight: 1 }
    }

    fn run(edges: &[SpanEdgeEvent]) -> (Vec<(u32, u64, u64, SpanOutcome)>, OpenSpans) {
        let mut open = OpenSpans::default();
        let mut over = Vec::new();
        for (t, edge) in edges.iter().enumerate() {
            over.extend(open.edge(Timestamp::from_nanos_since_start(t as u64), ThreadIdx(edge.tid), *edge));
        }
        over.extend(open.finish(Timestamp::from_nanos_since_start(100)));
        (over.iter().map(|s| (s.name.0, s.start.nanos(), s.t.nanos(), s.outcome)).collect(), open)
    }

    #[test]
    fn nested_and_recursive_spans_pair_by_their_frames() {
        let calls = [edge(true, A, 90), edge(true, B, 80), edge(true, A, 70)];
        let returns = [edge(false, A, 70), edge(false, B, 80), edge(false, A, 90)];
        let (over, open) = run(&[calls, returns].concat());
        let done = SpanOutcome::Complete;
        assert_eq!(over, [(1, 2, 3, done), (2, 1, 4, done), (1, 0, 5, done)]);
        assert_eq!(open.unmatched, 0);
    }

    #[test]
    fn what_a_jump_left_behind_is_abandoned_and_not_given_a_strange_end() {
        // B, within A, is left by longjmp to A, which returns; A is then called anew, left, and called again.
        let (over, _) =
            run(&[edge(true, A, 90), edge(true, B, 80), edge(false, A, 90), edge(true, A, 90), edge(true, A, 90)]);
        let gone = SpanOutcome::Abandoned;
        assert_eq!(
            over,
            [(2, 1, 2, gone), (1, 0, 2, SpanOutcome::Complete), (1, 3, 4, gone), (1, 4, 100, SpanOutcome::Open)]
        );
    }

    #[test]
    fn a_probe_that_fires_again_at_the_same_place_left_its_first_span() {
        let probe = |begin, at| SpanEdgeEvent { returns: false, ..edge(begin, A, at) };
        let (over, _) = run(&[probe(true, 50), probe(true, 50), probe(false, 20)]);
        assert_eq!(over, [(1, 0, 1, SpanOutcome::Abandoned), (1, 1, 2, SpanOutcome::Complete)]);
    }

    #[test]
    fn an_end_without_a_begin_is_counted() {
        let (over, open) = run(&[edge(false, A, 9), edge(true, A, 5), edge(false, A, 6)]);
        assert_eq!(over, [(1, 1, 100, SpanOutcome::Open)]);
        assert_eq!(open.unmatched, 2);
    }

    #[test]
    fn a_key_pairs_over_threads() {
        let keyed = |tid, begin, at| SpanEdgeEvent { tid, pairing: Pairing::Key, ..edge(begin, A, at) };
        let (over, open) =
            run(&[keyed(1, true, 7), keyed(1, true, 8), keyed(2, false, 7), keyed(1, false, 8), keyed(3, false, 9)]);
        assert_eq!(over, [(1, 0, 2, SpanOutcome::Moved), (1, 1, 3, SpanOutcome::Complete)]);
        assert_eq!(open.unmatched, 1);
    }

    #[test]
    fn what_is_open_is_bounded() {
        let begins: Vec<_> = (0..1000).map(|i| edge(true, A, 10_000 - i)).collect();
        let (over, open) = run(&begins);
        assert_eq!((over.len(), open.left_out), (DEEPEST, 1000 - DEEPEST as u64));
        let keyed: Vec<_> =
            (0..70_000).map(|at| SpanEdgeEvent { pairing: Pairing::Key, ..edge(true, A, at) }).collect();
        let (over, open) = run(&keyed);
        assert_eq!((over.len(), open.left_out), (MOST_KEYS, 70_000 - MOST_KEYS as u64));
    }
}
