//! Spans that were told elsewhere: OpenTelemetry's exports, and tables of times.
//!
//! Neither knows which thread of the kernel worked on a span. But a span's times are read by the code that it is about: the thread that ran when it
//! began and when it ended is its own, if it is the only one of its process that did both.

mod csv;
mod otlp;
mod place;

use std::collections::BTreeMap;

use holdup_trace::tables::{LossRow, Span};
use holdup_trace::{Cpu, Error, LossKind, Nanos, Result, SpanOutcome, ThreadIdx, Timestamp, Trace};

use place::{Placed, place};

/// Most spans of a file.
const MOST_SPANS: usize = 10_000_000;
/// Most different names and arguments that are told.
const MOST_TEXTS: usize = 1_000_000;
/// What stands for all the others.
const OTHER: &str = "(other)";
/// With more of the spans in the trace that nobody worked on, the clocks are not the same.
const MOST_UNPLACED: f64 = 0.75;

/// A span as a file tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Told {
    start: u64,
    end: u64,
    clock: Clock,
    whom: Whom,
    name: String,
    argument: String,
}

/// What times count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Clock {
    /// Nanoseconds since 1970.
    #[default]
    Day,
    /// Nanoseconds of the trace's own clock.
    Machine,
    /// Nanoseconds since the trace began.
    Trace,
}

/// Whose span it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Whom {
    /// A thread's number.
    tid: Option<u32>,
    /// A thread's name.
    thread: Option<String>,
    /// A process' number.
    pid: Option<u32>,
    /// A process' name.
    process: Option<String>,
    /// Whether whoever wrote it knew the kernel's threads.
    is_sure: bool,
}

/// How many of a file's spans the trace has now, and why not the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Added {
    /// In the trace.
    pub spans: u64,
    /// The names of these, the most frequent first.
    pub names: Vec<String>,
    /// Names and arguments of these that are told as one, because there are too many.
    pub others: u64,
    /// Reasons, and how many were left out for each.
    pub left_out: BTreeMap<&'static str, u64>,
}

/// Adds the spans of a file, which is OTLP in JSON (one document, or one each line) or a table with a line of names, to a trace. What cannot be placed
/// is a loss of the trace, too. O(events + spans log spans).
///
/// # Errors
/// If the file is neither, with where it is not; or if its times are not those of the trace.
pub fn add(trace: &mut Trace, bytes: &[u8]) -> Result<Added> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace() && !b"\xef\xbb\xbf".contains(byte));
    let mut added = Added::default();
    let told = match first {
        None => {
            return Err(Error::Input(
                "is empty: expected an OTLP export in JSON, or a table with a line of names".into(),
            ));
        }
        Some(b'{' | b'[') => otlp::read(bytes, &mut added)?,
        Some(_) => csv::read(bytes, &mut added)?,
    };
    if told.is_empty() && added.left_out.is_empty() {
        let what = "has no spans: expected OTLP in JSON, with resourceSpans, scopeSpans and spans, or a table with a line of names";
        return Err(Error::Input(what.into()));
    }
    let inside = within(trace, told, &mut added)?;
    let placed = place(trace, &inside)?;
    settle(trace, &inside, &placed, &mut added)?;
    Ok(added)
}

impl Added {
    fn leave_out(&mut self, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
    }
}

/// Those that lie in the trace, by its clock.
fn within(trace: &Trace, told: Vec<Told>, added: &mut Added) -> Result<Vec<Told>> {
    let meta = &trace.meta;
    if meta.time_of_day_ns.is_none() && told.iter().any(|t| t.clock == Clock::Day) {
        return Err(Error::Input(
            "has times of day, and the trace does not tell which time of day it was: record it with this version, or give times by the trace's \
             clock, as a table with start_s and end_s"
                .into(),
        ));
    }
    let ahead = meta.time_of_day_ns.unwrap_or(0);
    let total = told.len();
    let mut inside = Vec::new();
    for mut span in told {
        let offset = match span.clock {
            Clock::Day => ahead.saturating_add(meta.start_ns),
            Clock::Machine => meta.start_ns,
            Clock::Trace => 0,
        };
        let (Some(start), Some(end)) = (span.start.checked_sub(offset), span.end.checked_sub(offset)) else {
            added.leave_out("began before the trace");
            continue;
        };
        if end < start {
            added.leave_out("ended before they began");
        } else if end > meta.duration_ns {
            added.leave_out("ended after the trace");
        } else {
            (span.start, span.end) = (start, end);
            inside.push(span);
        }
    }
    if inside.is_empty() && total > 0 {
        let why: Vec<String> = added.left_out.iter().map(|(why, count)| format!("{count} {why}")).collect();
        return Err(Error::Input(format!(
            "has no span that lies within the trace ({}): are both of one machine and one time?",
            why.join(", ")
        )));
    }
    Ok(inside)
}

/// Writes what was placed into the trace.
fn settle(trace: &mut Trace, inside: &[Told], placed: &[Placed], added: &mut Added) -> Result<()> {
    let (mut rows, mut names) = (Vec::new(), BTreeMap::<&str, u64>::new());
    for (told, placed) in inside.iter().zip(placed) {
        let thread = match placed {
            Placed::On(thread) => *thread,
            Placed::Nobody => {
                added.leave_out("fit no thread: none ran both when they began and when they ended");
                continue;
            }
            Placed::Several => {
                added.leave_out("fit several threads");
                continue;
            }
            Placed::Unknown => {
                added.leave_out(
                    "are of a thread or process that the trace does not have (a container has numbers of its own)",
                );
                continue;
            }
        };
        *names.entry(&told.name).or_default() += 1;
        rows.push((thread, told));
    }
    let nobody = placed.iter().filter(|placed| **placed == Placed::Nobody).count();
    if nobody as f64 > MOST_UNPLACED * inside.len() as f64 {
        return Err(Error::Input(format!(
            "has {} spans that lie within the trace, and no thread ran when {nobody} of them began and when they ended: its clock is not that of the trace, or it is of another machine",
            inside.len()
        )));
    }
    if rows.is_empty() {
        let why: Vec<String> = added.left_out.iter().map(|(why, count)| format!("{count} {why}")).collect();
        return Err(Error::Input(format!("has no span that could be added to the trace: {}", why.join(", "))));
    }
    let mut by_count: Vec<(&str, u64)> = names.into_iter().collect();
    by_count.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    added.names = by_count.into_iter().map(|(name, _)| name.to_owned()).collect();
    added.spans = rows.len() as u64;
    let mut texts = 0;
    let spans: Vec<Span> = rows.into_iter().map(|(thread, told)| row(trace, thread, told, &mut texts)).collect();
    added.others = texts.saturating_sub(MOST_TEXTS) as u64;
    trace.add_spans(spans)?;
    lose(trace, added)
}

fn row(trace: &mut Trace, thread: ThreadIdx, told: &Told, texts: &mut usize) -> Span {
    let [name, argument] = [&told.name, &told.argument].map(|text| {
        if let Some(known) = trace.strings.find(text) {
            return known;
        }
        *texts += 1;
        trace.strings.intern(if *texts > MOST_TEXTS { OTHER } else { text })
    });
    let [start, t] = [told.start, told.end].map(Timestamp::from_nanos_since_start);
    let (key, outcome, weight, queued, end_thread) = (0, SpanOutcome::Complete, 1, Nanos(0), thread);
    Span { t, thread, start, end_thread, name, argument, key, outcome, weight, queued }
}

/// Tells the trace of those that it does not have.
fn lose(trace: &mut Trace, added: &Added) -> Result<()> {
    let end = Timestamp::from_nanos_since_start(trace.meta.duration_ns);
    let rows: Vec<LossRow> = added
        .left_out
        .iter()
        .map(|(why, count)| {
            let what = trace.strings.intern(&format!("spans told elsewhere that {why}"));
            let (from, to) = (Timestamp::ZERO, end);
            LossRow { kind: LossKind::Spans, what, cpu: Cpu::NONE, from, to, count: *count }
        })
        .collect();
    trace.add_losses(rows)
}

#[cfg(test)]
mod tests;
