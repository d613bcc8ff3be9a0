//! What the time of one span was.

use holdup_trace::tables::Span;
use holdup_trace::{StackId, ThreadIdx, Trace};
use rustc_hash::FxHashMap;

use super::history::History;
use super::report::Done;
use crate::chain::{EndKind, kind_of_end};
use crate::classify::{Classifier, WaitKind};
use crate::findings;
use crate::intervals::{Intervals, State};

/// Threads are followed no deeper.
const DEEPEST: usize = 64;
/// A span is cut into so many pieces at most; the rest is not known.
const MOST_PIECES: usize = 100_000;

/// A piece of a span's time. Pieces follow each other without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Charged {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) what: Done,
    /// Who did it, or waited for what no thread ends.
    pub(super) who: ThreadIdx,
    /// What its own thread did meanwhile.
    pub(super) own: Own,
    /// Where the thread waited, if it is a wait that no thread ends.
    pub(super) stack: StackId,
    /// Where its own thread waited, if it did.
    pub(super) own_stack: StackId,
}

/// What the span's own thread did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    Ran,
    Ready,
    Waited,
    Unknown,
}

/// Finds out what the time of spans was.
pub(super) struct Charger<'a> {
    pub(super) trace: &'a Trace,
    pub(super) classifier: &'a Classifier<'a>,
    pub(super) history: &'a History,
    pub(super) intervals: &'a Intervals,
}

impl<'a> Charger<'a> {
    pub(super) fn new(
        trace: &'a Trace,
        intervals: &'a Intervals,
        history: &'a History,
        classifier: &'a Classifier<'a>,
    ) -> Self {
        Charger { trace, classifier, history, intervals }
    }

    /// The pieces of a span's time: while it waited to be begun with, its thread did something else.
    pub(super) fn of_span(&self, span: &Span) -> Vec<Charged> {
        let (from, to) = (span.start.nanos(), span.t.nanos());
        let begun = from.saturating_add(span.queued.0).min(to);
        let mut pieces = self.pieces(span.thread, from, begun);
        for piece in &mut pieces {
            piece.own = if piece.own == Own::Ran { Own::Waited } else { piece.own };
            piece.what = if piece.what == Done::Ran { Done::WaitedFor } else { piece.what };
        }
        pieces.extend(self.pieces(span.thread, begun, to));
        pieces
    }

    /// The pieces of `thread`'s time from `from` to `to`. They add up to it. O(stretches of all threads that answer for it).
    fn pieces(&self, thread: ThreadIdx, from: u64, to: u64) -> Vec<Charged> {
        let mut pieces = Vec::new();
        let mut cursor = from;
        for segment in self.history.of(thread, from, to) {
            self.gap(&mut pieces, cursor, segment.from);
            cursor = segment.to;
            let own = match segment.state {
                State::Running(_) => Own::Ran,
                State::Runnable(_) | State::Yields(_) | State::Woken(_) => Own::Ready,
                State::Waiting(_) => Own::Waited,
                State::Unknown | State::Gone => Own::Unknown,
            };
            let own_stack = match segment.state {
                State::Waiting(i) => self.intervals.waits.get(i as usize).map_or(StackId::NONE, |w| w.stack),
                _ => StackId::NONE,
            };
            let first = pieces.len();
            self.follow(&mut vec![thread], thread, (segment.from, segment.to), &mut pieces);
            for piece in &mut pieces[first..] {
                (piece.own, piece.own_stack) = (own, own_stack);
                piece.what = if piece.what == Done::WaitedFor && own == Own::Ran { Done::Ran } else { piece.what };
            }
        }
        self.gap(&mut pieces, cursor, to);
        pieces
    }

    fn gap(&self, pieces: &mut Vec<Charged>, from: u64, to: u64) {
        if from < to {
            pieces.push(unknown(from, to));
        }
    }

    /// Charges `from..to` to what `thread` did, and to those that it waited for. `path` are the threads that wait for it.
    fn follow(&self, path: &mut Vec<ThreadIdx>, thread: ThreadIdx, time: (u64, u64), pieces: &mut Vec<Charged>) {
        let mut cursor = time.0;
        for segment in self.history.of(thread, time.0, time.1) {
            self.gap(pieces, cursor, segment.from);
            let (from, to) = (segment.from, segment.to);
            if pieces.len() >= MOST_PIECES {
                cursor = from; // what is left is a piece, too: the last one
                break;
            }
            cursor = to;
            let piece = |what, who| Charged {
                from,
                to,
                what,
                who,
                own: Own::Unknown,
                stack: StackId::NONE,
                own_stack: StackId::NONE,
            };
            match segment.state {
                State::Running(_) => pieces.push(piece(Done::WaitedFor, thread)),
                State::Runnable(cpu) | State::Yields(cpu) => {
                    pieces.push(piece(Done::Behind, self.runner(cpu, from, to)));
                }
                State::Woken(wait) => {
                    let cpu = self.intervals.waits[wait as usize].cpu;
                    pieces.push(piece(Done::Behind, self.runner(cpu, from, to)));
                }
                State::Waiting(wait) => self.wait(path, wait, (from, to), pieces),
                State::Unknown | State::Gone => pieces.push(unknown(from, to)),
            }
        }
        self.gap(pieces, cursor.min(time.1), time.1);
    }

    fn runner(&self, cpu: holdup_trace::Cpu, from: u64, to: u64) -> ThreadIdx {
        self.history.longest_on(cpu, from, to).unwrap_or(ThreadIdx::NONE)
    }

    fn wait(&self, path: &mut Vec<ThreadIdx>, index: u32, (from, to): (u64, u64), pieces: &mut Vec<Charged>) {
        let wait = &self.intervals.waits[index as usize];
        let ended_by_thread =
            !wait.open && wait.waker.is_real() && wait.kind != WaitKind::Timer && !wait.is_timed_out();
        let is_circle = ended_by_thread && path.contains(&wait.waker);
        if ended_by_thread && !is_circle && path.len() < DEEPEST {
            path.push(wait.waker);
            self.follow(path, wait.waker, (from, to), pieces);
            path.pop();
            return;
        }
        let what = match kind_of_end(wait, self.intervals.health.lost_events) {
            _ if is_circle => Done::Circle,
            EndKind::Disk => Done::Disk,
            EndKind::Timer => Done::Timer,
            EndKind::Network | EndKind::Input => Done::Outside,
            EndKind::Interrupt => Done::Interrupt,
            EndKind::Nobody => Done::Nobody,
            _ => Done::Unknown,
        };
        let (who, own, stack) = (wait.thread, Own::Unknown, wait.stack);
        pieces.push(Charged { from, to, what, who, own, stack, own_stack: StackId::NONE });
    }

    /// The function of a piece, and its source line: where it ran, or where it waited.
    pub(super) fn place(&self, piece: &Charged) -> Option<holdup_trace::tables::LocationRow> {
        match piece.what {
            Done::Ran | Done::WaitedFor => {
                let mut samples: FxHashMap<StackId, f64> = FxHashMap::default();
                for stack in self.history.samples(piece.who, piece.from, piece.to) {
                    *samples.entry(stack).or_default() += 1.0;
                }
                findings::specific_in(self.classifier, &samples, || &self.history.callers)
            }
            Done::Behind => None,
            _ => self.classifier.application_frames(piece.stack).first().map(|(_, location)| *location),
        }
    }
}

fn unknown(from: u64, to: u64) -> Charged {
    let (what, who, own, stack) = (Done::Unknown, ThreadIdx::NONE, Own::Unknown, StackId::NONE);
    Charged { from, to, what, who, own, stack, own_stack: StackId::NONE }
}
