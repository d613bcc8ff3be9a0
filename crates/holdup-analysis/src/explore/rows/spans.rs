//! `spans`: units of work, such as requests, with what their own threads did meanwhile.

use holdup_trace::tables::Span;
use holdup_trace::{SpanOutcome, ThreadIdx, WakeContext};
use rustc_hash::FxHashMap;

use super::{Actor, Def, Get, Provider, def};
use crate::classify::WaitKind;
use crate::explore::relation::MISSING;
use crate::explore::relation::Unit::{Count, Id, Instant, Nanos, Text};
use crate::explore::{Explorer, Result};
use crate::intervals::{Chunk, State, Stretch};
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
            WaitKind::Stopped | WaitKind::KernelIdle | WaitKind::Unknown => Doing::Other,
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
            let did = history.did(&span);
            each(&Row { index, span, parent: place.parent, depth: place.depth, did })
        })
    }
}

/// What threads did until the instants that are asked about.
#[derive(Default)]
struct Own {
    /// In order, each once.
    asked: Vec<u64>,
    /// For as many of them as are behind, what it had done by then.
    answers: Vec<[u64; DOINGS]>,
    did: [u64; DOINGS],
}

impl Own {
    fn see(&mut self, stretch: &Stretch, doing: Doing) {
        while let Some(&t) = self.asked.get(self.answers.len()).filter(|t| **t <= stretch.to) {
            let mut did = self.did;
            did[doing as usize] += t.saturating_sub(stretch.from);
            self.answers.push(did);
        }
        self.did[doing as usize] += stretch.to - stretch.from;
    }

    fn until(&self, t: u64) -> [u64; DOINGS] {
        let at = self.asked.partition_point(|asked| *asked < t);
        self.answers.get(at).copied().unwrap_or(self.did)
    }
}

/// What the threads that have spans had done at the beginning and at the end of each.
struct History(FxHashMap<ThreadIdx, Own>);

/// When a span's thread began with it, and when it ended, in nanoseconds.
fn ends(span: &Span) -> [u64; 2] {
    [span.start.after(span.queued).nanos(), span.t.nanos()]
}

impl History {
    /// O(steps + spans log spans); 80 bytes for each end of a span.
    fn new(explorer: &Explorer, spans: &[Span]) -> Result<History> {
        let mut all: FxHashMap<ThreadIdx, Own> = FxHashMap::default();
        for span in spans {
            all.entry(span.thread).or_default().asked.extend(ends(span));
        }
        for own in all.values_mut() {
            own.asked.sort_unstable();
            own.asked.dedup();
        }
        let timeline = explorer.followed()?;
        timeline.one_by_one(0..timeline.len(), |chunk| {
            chunk.stretches(|s| {
                if let Some(own) = all.get_mut(&s.thread) {
                    own.see(&s, doing(chunk, s.state));
                }
            });
        })?;
        Ok(History(all))
    }

    /// What the time of a span was: adds up to it. O(log spans).
    fn did(&self, span: &Span) -> [u64; DOINGS] {
        let [from, to] = ends(span);
        let until = |t| self.0.get(&span.thread).map_or([0; DOINGS], |own| own.until(t));
        let (begin, end) = (until(from), until(to));
        let mut did: [u64; DOINGS] = std::array::from_fn(|i| end[i].saturating_sub(begin[i]));
        let known: u64 = did.iter().sum();
        did[Doing::Unknown as usize] += to.saturating_sub(from).saturating_sub(known);
        did
    }
}

fn doing(chunk: &Chunk, state: State) -> Doing {
    match state {
        State::Running(_) => Doing::Ran,
        State::Runnable(_) | State::Yields(_) | State::Woken(_) => Doing::Ready,
        State::Waiting(i) => chunk.waits().get(i as usize).map_or(Doing::Unknown, |w| Doing::waits(w.kind)),
        State::Unknown | State::Gone => Doing::Unknown,
    }
}
