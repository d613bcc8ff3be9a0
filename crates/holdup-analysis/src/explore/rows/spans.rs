//! `spans`: units of work, such as requests, with what their own threads did meanwhile.

use holdup_trace::tables::Span;
use holdup_trace::{SpanOutcome, ThreadIdx, WakeContext};
use rustc_hash::FxHashMap;

use super::{Actor, Def, Get, Provider, def};
use crate::classify::WaitKind;
use crate::explore::relation::MISSING;
use crate::explore::relation::Unit::{Count, Id, Instant, Nanos, Text};
use crate::explore::{Explorer, Result};
use crate::intervals::State;
use crate::segments;
use crate::spans::nesting;

pub(super) struct Spans;

/// A span and what became of its time.
pub(super) struct Row {
    index: usize,
    span: Span,
    /// The span around it on its thread.
    parent: Option<u32>,
    depth: u32,
    /// By [`Doing`].
    did: [u64; DOINGS],
}

/// What a thread does.
#[derive(Debug, Clone, Copy)]
enum Doing {
    Ran,
    Ready,
    Lock,
    Disk,
    Sleep,
    Input,
    Other,
    Unknown,
}

const DOINGS: usize = 8;

impl Doing {
    fn waits(kind: WaitKind) -> Doing {
        match kind {
            WaitKind::Lock | WaitKind::Futex | WaitKind::Condition | WaitKind::Join => Doing::Lock,
            WaitKind::Disk | WaitKind::PageFault => Doing::Disk,
            WaitKind::Timer => Doing::Sleep,
            WaitKind::Input | WaitKind::Read | WaitKind::Write | WaitKind::Signal => Doing::Input,
            WaitKind::KernelIdle | WaitKind::Unknown => Doing::Other,
        }
    }
}

impl Row {
    fn time(&self, doing: Doing) -> u64 {
        self.did[doing as usize]
    }

    fn waited(&self) -> u64 {
        [Doing::Lock, Doing::Disk, Doing::Sleep, Doing::Input, Doing::Other].map(|d| self.time(d)).iter().sum()
    }

    fn length(&self) -> u64 {
        self.span.t.nanos().saturating_sub(self.span.start.nanos())
    }

    /// Its length, if it was seen from its begin to its end.
    fn whole(&self) -> u64 {
        let is_whole = matches!(self.span.outcome, SpanOutcome::Complete | SpanOutcome::Moved);
        if is_whole { self.length() } else { MISSING }
    }

    fn end_thread(&self) -> ThreadIdx {
        self.span.end_thread
    }
}

fn number(of: Option<u32>) -> u64 {
    of.map_or(MISSING, u64::from)
}

impl Provider for Spans {
    type Row = Row;

    const COLUMNS: &'static [Def<Row>] = &[
        def("id", Id, &[], "Its number, for `holdup chain --span`.", Get::Number(|r| r.index as u64)),
        def("start", Instant, &["Ts"], "When it began.", Get::Number(|r| r.span.start.nanos())),
        def("end", Instant, &[], "When it ended; the trace's end if never.", Get::Number(|r| r.span.t.nanos())),
        def(
            "length",
            Nanos,
            &["Dur", "Duration"],
            "From its begin to its end; unknown if not both were seen.",
            Get::Number(Row::whole),
        ),
        def("name", Text, &["Slice"], "What kind of work it is.", Get::Text(|r| r.span.name)),
        def("argument", Text, &["Arg"], "What it was about.", Get::Text(|r| r.span.argument)),
        def("process", Text, &[], "Whose process.", Get::Process(|r| r.span.thread.into())),
        def("pid", Id, &[], "Its number.", Get::ThreadNumber(|r| r.span.thread, |t| t.pid)),
        def("thread", Text, &[], "On which thread it began.", Get::Thread(|r| r.span.thread.into())),
        def("tid", Id, &["Utid"], "Its number.", Get::ThreadNumber(|r| r.span.thread, |t| t.tid)),
        def(
            "end-thread",
            Text,
            &[],
            "On which thread it ended.",
            Get::Thread(|r| Actor(r.end_thread(), WakeContext::Unknown)),
        ),
        def(
            "outcome",
            Text,
            &[],
            "complete, moved (ended on another thread), abandoned (its end was not seen), open (at the trace's end), begun (before the \
             trace).",
            Get::Word(|r| r.span.outcome.name()),
        ),
        def(
            "key",
            Id,
            &[],
            "What ties it to others.",
            Get::Number(|r| if r.span.key == 0 { MISSING } else { r.span.key }),
        ),
        def("depth", Count, &[], "How many spans of its thread are around it.", Get::Number(|r| u64::from(r.depth))),
        def("parent", Id, &["Parent Id"], "The number of the innermost of these.", Get::Number(|r| number(r.parent))),
        def(
            "weight",
            Count,
            &[],
            "How many spans it stands for, where only some were recorded; all measures count it so often.",
            Get::Number(|r| u64::from(r.span.weight.max(1))),
        ),
        def(
            "queued",
            Nanos,
            &[],
            "How long it waited at first, while its thread did other things.",
            Get::Number(|r| r.span.queued.0),
        ),
        def("ran", Nanos, &[], "How long its thread then ran.", Get::Number(|r| r.time(Doing::Ran))),
        def(
            "ready",
            Nanos,
            &[],
            "How long its thread could have run and had no CPU.",
            Get::Number(|r| r.time(Doing::Ready)),
        ),
        def("waited", Nanos, &[], "How long its thread waited.", Get::Number(Row::waited)),
        def(
            "waited-lock",
            Nanos,
            &[],
            "For a lock, a condition or another thread's end.",
            Get::Number(|r| r.time(Doing::Lock)),
        ),
        def("waited-disk", Nanos, &[], "For a disk, a file or a page.", Get::Number(|r| r.time(Doing::Disk))),
        def("waited-sleep", Nanos, &[], "For a time to pass.", Get::Number(|r| r.time(Doing::Sleep))),
        def(
            "waited-input",
            Nanos,
            &[],
            "For input, room to write, or a signal.",
            Get::Number(|r| r.time(Doing::Input)),
        ),
        def("waited-other", Nanos, &[], "For anything else.", Get::Number(|r| r.time(Doing::Other))),
        def(
            "unknown",
            Nanos,
            &[],
            "How long it is not known what its thread did.",
            Get::Number(|r| r.time(Doing::Unknown)),
        ),
    ];

    fn thread(row: &Row) -> ThreadIdx {
        row.span.thread
    }

    fn span(row: &Row) -> (u64, u64) {
        (row.span.start.nanos(), row.span.t.nanos())
    }

    fn scan(explorer: &Explorer, each: &mut dyn FnMut(&Row) -> Result<()>) -> Result<()> {
        let spans: Vec<Span> = explorer.trace.spans.iter().collect::<holdup_trace::Result<_>>()?;
        if spans.is_empty() {
            return Ok(());
        }
        let history = History::new(explorer, &spans)?;
        let nesting = nesting::of(&spans);
        let mut order: Vec<usize> = (0..spans.len()).collect();
        order.sort_by_key(|&i| (spans[i].start, i));
        order.into_iter().try_for_each(|index| {
            let (span, place) = (spans[index], nesting[index]);
            let did = history.did(span.thread, span.start.after(span.queued).nanos(), span.t.nanos());
            each(&Row { index, span, parent: place.parent, depth: place.depth, did })
        })
    }
}

/// A stretch in which a thread did one thing.
struct Stretch {
    from: u64,
    to: u64,
    doing: Doing,
    /// What it did before, since its first stretch.
    before: [u64; DOINGS],
}

impl Stretch {
    /// What its thread did until `t`.
    fn until(&self, t: u64) -> [u64; DOINGS] {
        let mut did = self.before;
        did[self.doing as usize] += t.min(self.to).saturating_sub(self.from);
        did
    }
}

/// What the threads that have spans did, in time order.
struct History(FxHashMap<ThreadIdx, Vec<Stretch>>);

impl History {
    /// O(steps), 88 bytes for each of these threads.
    fn new(explorer: &Explorer, spans: &[Span]) -> Result<History> {
        let intervals = explorer.intervals()?;
        let mut all: FxHashMap<ThreadIdx, Vec<Stretch>> = spans.iter().map(|s| (s.thread, Vec::new())).collect();
        segments::each(explorer.trace, intervals, |s| {
            let Some(own) = all.get_mut(&s.thread) else { return };
            let doing = match s.state {
                State::Running(_) => Doing::Ran,
                State::Runnable(_) | State::Yields(_) | State::Woken(_) => Doing::Ready,
                State::Waiting(i) => intervals.waits.get(i as usize).map_or(Doing::Unknown, |w| Doing::waits(w.kind)),
                State::Unknown | State::Gone => Doing::Unknown,
            };
            let before = own.last().map_or([0; DOINGS], |last| last.until(last.to));
            own.push(Stretch { from: s.from, to: s.to, doing, before });
        });
        Ok(History(all))
    }

    /// What the time from `from` to `to` was: adds up to it. O(log stretches), however many lie within.
    fn did(&self, thread: ThreadIdx, from: u64, to: u64) -> [u64; DOINGS] {
        let own = self.0.get(&thread).map_or(&[][..], Vec::as_slice);
        let until = |t: u64| {
            let at = own.partition_point(|s| s.from < t);
            at.checked_sub(1).map_or([0; DOINGS], |at| own[at].until(t))
        };
        let (begin, end) = (until(from), until(to));
        let mut did: [u64; DOINGS] = std::array::from_fn(|i| end[i].saturating_sub(begin[i]));
        let known: u64 = did.iter().sum();
        did[Doing::Unknown as usize] += to.saturating_sub(from).saturating_sub(known);
        did
    }
}
