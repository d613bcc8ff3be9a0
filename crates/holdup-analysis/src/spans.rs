//! Why was this one slow? Spans are units of work, such as requests; here is what their time was, and what the slow ones have that the
//! others have not.
//!
//! ```text
//!   span     ├─ran─┤──────────waited──────────├─ran─┤
//!   server                 ├──ran keys()──┤wake
//!   charged   own   input   keys() of server  own         adds up to the span's length
//! ```
//!
//! A span's time is that of its thread. While that one waits, the time is charged to whatever the one that ends the wait does at each instant, and to
//! who ends *its* waits, and so on: the rule of [`blame`](crate::blame), asked for one thread instead of all. What no thread ends is a
//! disk, a timer or the outside; what is ready waits behind who runs on its CPU.

mod charge;
mod compare;
mod drawn;
mod history;
pub(crate) mod nesting;
mod report;
mod select;
mod sentence;

use holdup_base::near;
use holdup_trace::tables::Span;
use holdup_trace::{Error, Result, StringId, Trace};

use crate::classify::Classifier;
use crate::focus::Focus;
use crate::intervals::{self, Intervals, Timeline};
use crate::report::TraceFacts;
pub use drawn::{Drawn, Level, NameFacts, SpanLanes, Standing};
pub use report::{Account, Cause, Done, Group, NamedSpans, OneSpan, Piece, SingleSpan, SpanReport};
pub use sentence::{headline, of_cause, of_piece};

/// Which spans.
#[derive(Debug, Clone)]
pub struct Options {
    /// Their name.
    pub name: String,
    /// Only those whose argument has this in it; empty for all.
    pub argument: String,
    /// Which share of them, the longest, is called slow: above 0, at most 0.5.
    pub slow: f64,
}

/// All names of spans, the most frequent first. O(spans log spans).
///
/// # Errors
/// If the trace is damaged.
pub fn names(trace: &Trace) -> Result<Vec<NamedSpans>> {
    select::names(trace)
}

/// One span, by its number in the table `span`, with all that its time was. O(events); those within it are in memory.
///
/// # Errors
/// If the trace is damaged, or has no such span.
pub fn one(trace: &Trace, path: &str, id: u64) -> Result<SingleSpan> {
    let span = row(trace, path, id)?;
    let focus = Focus::find(trace, None).map_err(|what| Error::Input(format!("{path}: {what}")))?;
    let classifier = Classifier::new(trace);
    let timeline = Timeline::new(trace, &focus, &classifier)?;
    let parts = timeline.part_at(span.start.nanos())..timeline.part_at(span.t.nanos()) + 1;
    one_within(trace, path, (id, &span), &timeline.range(parts)?, &classifier)
}

/// The span with this number in the table `span`. O(its number).
///
/// # Errors
/// If the trace is damaged, or has no such span.
pub fn row(trace: &Trace, path: &str, id: u64) -> Result<Span> {
    usize::try_from(id).ok().and_then(|id| trace.spans.iter().nth(id)).unwrap_or_else(|| {
        let count = trace.spans.rows();
        let hint = format!("there is no span {id}; there are {count}, see holdup table {path} spans");
        Err(Error::Input(format!("{path}: {hint}")))
    })
}

/// What the time of a span was, of which `intervals` hold all. O(their steps + samples of the trace).
///
/// # Errors
/// If the trace is damaged.
pub fn one_within(
    trace: &Trace,
    path: &str,
    (id, span): (u64, &Span),
    intervals: &Intervals,
    classifier: &Classifier,
) -> Result<SingleSpan> {
    let history = history::History::new(trace, intervals, classifier, (span.start.nanos(), span.t.nanos()))?;
    let charger = charge::Charger::new(trace, intervals, &history, classifier);
    let (name, outcome) = (text(trace, span.name), span.outcome.name());
    Ok(SingleSpan {
        schema: "holdup.span/1",
        trace: facts(trace, path, intervals.cpus),
        name,
        outcome,
        span: compare::one(&charger, id, span),
    })
}

fn facts(trace: &Trace, path: &str, cpus: usize) -> TraceFacts {
    TraceFacts {
        path: path.to_owned(),
        format: trace.meta.format.clone(),
        start_s: 0.0,
        duration_s: trace.meta.duration_ns as f64 / 1e9,
        cpus,
        focus: String::new(),
    }
}

/// What the slow spans of a name did, beside the others. `path` is only repeated in the answer. O(events + the time of the spans that are
/// followed), of which there are at most a thousand.
///
/// # Errors
/// If the trace is damaged, has no spans, or none of this name.
pub fn explain(trace: &Trace, path: &str, options: &Options) -> Result<SpanReport> {
    let names = select::names(trace)?;
    let refuse = |what: String| Error::Input(format!("{path}: {what}"));
    if names.is_empty() {
        return Err(refuse("there are no spans in this trace: record it with --span, see holdup record --help".into()));
    }
    let wanted = names.iter().find(|n| n.name == options.name).ok_or_else(|| {
        let all: Vec<&str> = names.iter().map(|n| n.name.as_str()).collect();
        let known = all.iter().take(8).copied().collect::<Vec<_>>().join(", ");
        refuse(format!(
            "there are no spans named {:?}{}; there are: {known}",
            options.name,
            near::hint(&options.name, all)
        ))
    })?;
    let chosen = select::choose(trace, options)?;
    if chosen.slow.is_empty() {
        let about = if options.argument.is_empty() { String::new() } else { format!(" about {:?}", options.argument) };
        return Err(refuse(format!("no span named {:?}{about} was seen from its begin to its end", options.name)));
    }
    let focus = Focus::find(trace, None).map_err(refuse)?;
    let classifier = Classifier::new(trace);
    let whole = intervals::build(trace, &focus, &classifier)?;
    let history = history::History::new(trace, &whole, &classifier, (0, u64::MAX))?;
    let charger = charge::Charger::new(trace, &whole, &history, &classifier);
    let facts = facts(trace, path, whole.cpus);
    Ok(compare::report(&charger, facts, wanted, &chosen, &names))
}

/// The text of a string's id.
fn text(trace: &Trace, id: StringId) -> String {
    trace.text(id).to_owned()
}
