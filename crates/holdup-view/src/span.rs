//! One span, and the slowest of each name.

use holdup_analysis::report::Confidence;
use holdup_analysis::spans::{self, Done, Drawn, SingleSpan, Standing};
use holdup_trace::ThreadIdx;
use serde::Serialize;

use crate::parts::touched;
use crate::people::{People, Row};
use crate::request::{SlowOf, SlowestOf, SpanOf};
use crate::spans::SpanRow;
use crate::study::Study;
use crate::{Answer, Cancel, Error, Result};

/// Parts of the trace through which one span is followed: some 15 MB each.
const MOST_PARTS: usize = 16;
/// Parts of a trace whose spans are all followed at once.
const MOST_PARTS_AT_ONCE: usize = 32;
/// Names that are listed, and spans of each.
const MOST_NAMES: usize = 40;
const MOST_SLOWEST: usize = 50;
/// The share that is called slow.
const SLOW: f64 = 0.01;

#[derive(Serialize)]
struct Shown {
    id: u32,
    name: String,
    argument: String,
    start: u64,
    end: u64,
    outcome: &'static str,
    standing: Standing,
    /// How many of its name are at least as long, and how many were seen whole; 0 where it was not.
    rank: u32,
    count: u64,
    /// Of all of its name, in nanoseconds.
    p50: u64,
    p99: u64,
    max: u64,
    thread: String,
    thread_row: String,
    /// Where it is drawn.
    row: String,
}

/// What its time was.
#[derive(Serialize)]
struct Followed {
    #[serde(flatten)]
    shown: Shown,
    /// The thread on which it ended, if that is another one.
    ended_on: Option<String>,
    queued: u64,
    pieces: Vec<PieceShown>,
    rest_s: f64,
    /// Why there are no pieces; else empty.
    note: String,
}

#[derive(Serialize)]
struct PieceShown {
    from_s: f64,
    length_s: f64,
    what: Done,
    said: String,
    function: String,
    /// The row of who did it.
    row: Option<String>,
}

#[derive(Serialize)]
struct Place {
    /// What is there; none.
    span: Option<Shown>,
}

#[derive(Serialize)]
struct Slowest {
    names: Vec<OfName>,
    further: usize,
    left_out: u64,
}

#[derive(Serialize)]
struct OfName {
    name: String,
    count: u64,
    open: u64,
    p50: u64,
    p99: u64,
    max: u64,
    slowest: Vec<Shown>,
}

#[derive(Serialize)]
struct Why {
    headline: String,
    doubt: String,
    confidence: Confidence,
    causes: Vec<CauseShown>,
}

#[derive(Serialize)]
struct CauseShown {
    said: String,
    function: String,
    slow_s: f64,
    typical_s: f64,
}

/// Answers `span`: the one with a number, with what its time was; or the one at a place of a row, or beside it.
///
/// # Errors
/// If there is no such row or span, if a table is damaged, or if nobody wants to know any more.
pub(crate) fn answer(study: &Study, people: &People, asked: &SpanOf, cancel: &Cancel) -> Result<Answer> {
    if let Some(id) = asked.id {
        return followed(study, people, id, cancel);
    }
    let (Some(row), Some(time)) = (&asked.row, asked.time) else {
        return Err(Error::Question("say which span: by its number, or by a row and a time".into()));
    };
    let row = SpanRow::parse(row, study, people)?;
    let t = (time.max(0.0) as u64).min(study.timeline.end);
    let found = match asked.step {
        0 => at(study, people, row, t, asked.slack.clamp(0.0, 1e18) as u64),
        step => beside(study, people, row, t, step > 0),
    };
    Ok(Answer::document(&Place { span: found.map(|(thread, span)| shown(study, people, row, thread, &span)) }))
}

/// What is at `t`: of several the slowest of its name, else what is nearest.
fn at(study: &Study, people: &People, row: SpanRow, t: u64, slack: u64) -> Option<(ThreadIdx, Drawn)> {
    let levels = row.levels(study, people);
    let near = |slack: u64| {
        let (from, to) = (t.saturating_sub(slack), t.saturating_add(slack).saturating_add(1));
        let all = levels.iter().flat_map(move |(thread, level)| level.within(from, to).map(|s| (*thread, *s)));
        all.max_by_key(|(_, s)| (study.spans.standing(s), s.length(), std::cmp::Reverse(s.id)))
    };
    near(0).or_else(|| near(slack))
}

/// The next one that begins after `t`, or the last before it.
fn beside(study: &Study, people: &People, row: SpanRow, t: u64, after: bool) -> Option<(ThreadIdx, Drawn)> {
    let levels = row.levels(study, people);
    let all = levels.iter().filter_map(|(thread, level)| Some((*thread, *level.beside(t, after)?)));
    if after { all.min_by_key(|(_, s)| (s.start, s.id)) } else { all.max_by_key(|(_, s)| (s.start, s.id)) }
}

fn shown(study: &Study, people: &People, row: SpanRow, thread: ThreadIdx, span: &Drawn) -> Shown {
    let trace = study.trace;
    let facts = study.spans.names.get(span.name as usize);
    let of = |pick: fn(&spans::NameFacts) -> u64| facts.map_or(0, pick);
    Shown {
        id: span.id,
        name: facts.map_or_else(String::new, |n| trace.text(n.name).to_owned()),
        argument: trace.text(span.argument).to_owned(),
        start: span.start,
        end: span.end,
        outcome: span.outcome.name(),
        standing: study.spans.standing(span),
        rank: span.rank,
        count: of(|n| n.whole),
        p50: of(|n| n.p50),
        p99: of(|n| n.p99),
        max: of(|n| n.max),
        thread: study.label(thread),
        thread_row: people.id(Row::Thread(thread)),
        row: row.id(people),
    }
}

fn followed(study: &Study, people: &People, id: u32, cancel: &Cancel) -> Result<Answer> {
    let (thread, level, drawn) = study.spans.find(id).ok_or_else(|| {
        let left_out = study.spans.left_out;
        Error::Question(format!("there is no span {id} here ({left_out} of the shortest are not kept)"))
    })?;
    let row = spans::row(study.trace, &study.name, u64::from(id))?;
    let parts = touched(&study.timeline, drawn.start, drawn.end);
    let (found, note) = if parts.len() > MOST_PARTS {
        let how = format!("holdup chain {} --span {id}", study.name);
        (None, format!("It is longer than what is followed at once. In a terminal: {how}"))
    } else {
        cancel.check()?;
        let intervals = study.timeline.range(parts)?;
        let of = (u64::from(id), &row);
        (Some(spans::one_within(study.trace, &study.name, of, &intervals, study.classifier)?), String::new())
    };
    let moved = row.end_thread.is_real() && row.end_thread != thread;
    Ok(Answer::document(&Followed {
        shown: shown(study, people, SpanRow { of: Row::Thread(thread), level }, thread, drawn),
        ended_on: moved.then(|| study.label(row.end_thread)),
        queued: row.queued.0,
        rest_s: found.as_ref().map_or(0.0, |f| f.span.rest_s),
        pieces: found.map_or_else(Vec::new, |f| pieces(study, people, &f)),
        note,
    }))
}

fn pieces(study: &Study, people: &People, found: &SingleSpan) -> Vec<PieceShown> {
    let row = |piece: &spans::Piece| {
        let t = holdup_trace::Timestamp::from_seconds(found.span.start_s + piece.from_s);
        study.thread(piece.who.pid, piece.who.tid, t).map(|thread| people.id(Row::Thread(thread)))
    };
    let shown = |piece: &spans::Piece| PieceShown {
        from_s: piece.from_s,
        length_s: piece.length_s,
        what: piece.what,
        said: spans::of_piece(piece),
        function: piece.function.clone(),
        row: row(piece),
    };
    found.span.pieces.iter().map(shown).collect()
}

/// Answers `slowest`: the names whose slow ones take longest beside the others, each with its slowest. O(spans).
///
/// # Errors
/// If nobody wants to know any more.
pub(crate) fn slowest(study: &Study, people: &People, asked: &SlowestOf, cancel: &Cancel) -> Result<Answer> {
    cancel.check()?;
    let names = &study.spans.names;
    let all = study.spans.longest(MOST_NAMES, asked.top.min(MOST_SLOWEST));
    let further = names.len() - all.len();
    let of = |(thread, level, span): &(ThreadIdx, usize, Drawn)| {
        shown(study, people, SpanRow { of: Row::Thread(*thread), level: *level }, *thread, span)
    };
    let of_name = |(facts, slowest): (&spans::NameFacts, Vec<(ThreadIdx, usize, Drawn)>)| OfName {
        name: study.trace.text(facts.name).to_owned(),
        count: facts.whole,
        open: facts.open,
        p50: facts.p50,
        p99: facts.p99,
        max: facts.max,
        slowest: slowest.iter().map(of).collect(),
    };
    let names = names.iter().zip(all).map(of_name).collect();
    Ok(Answer::document(&Slowest { names, further, left_out: study.spans.left_out }))
}

/// Answers `slow`: what the slow ones of a name have that the others have not. O(events): slow.
///
/// # Errors
/// If there is no such name, if a table is damaged, or if the trace is too long for it.
pub(crate) fn slow(study: &Study, asked: &SlowOf, cancel: &Cancel) -> Result<Answer> {
    if study.timeline.len() > MOST_PARTS_AT_ONCE {
        let how = format!("holdup explain {} --spans NAME", study.name);
        return Err(Error::Question(format!(
            "the recording is too long for this page to follow its spans: {how} does"
        )));
    }
    cancel.check()?;
    let options = spans::Options { name: asked.name.clone(), argument: String::new(), slow: SLOW };
    let found = spans::explain(study.trace, &study.name, &options)?;
    let shown = |cause: &spans::Cause| CauseShown {
        said: spans::of_cause(cause),
        function: cause.function.clone(),
        slow_s: cause.slow_s,
        typical_s: cause.typical_s,
    };
    Ok(Answer::document(&Why {
        headline: spans::headline(&found),
        doubt: found.doubt.clone(),
        confidence: found.confidence,
        causes: found.causes.iter().take(6).map(shown).collect(),
    }))
}
