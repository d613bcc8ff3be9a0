//! What the trace is.

use holdup_trace::{Host, Nanos, Note, Table, Timestamp};
use rustc_hash::FxHashSet;
use serde::Serialize;

use crate::documents::{self, PresetDocument, TableDocument};
use crate::study::Study;
use crate::{Answer, Result};

#[derive(Serialize)]
struct Summary<'a> {
    name: &'a str,
    format: &'a str,
    host: &'a Host,
    command: &'a [String],
    duration_ns: u64,
    cpus: usize,
    focus: &'a str,
    threads: usize,
    processes: usize,
    switches: u64,
    samples: u64,
    spans: u64,
    losses: Vec<Lost>,
    notes: &'a [Note],
    /// Whether the explanation is there at once.
    explained: bool,
    /// Set for a window that was cut out of a recording.
    part: Option<PartOf>,
    presets: Vec<PresetDocument>,
    tables: Vec<TableDocument>,
}

#[derive(Serialize)]
struct PartOf {
    of: Whole,
    /// In nanoseconds of the recording.
    windows: [[u64; 2]; 1],
}

#[derive(Serialize)]
struct Whole {
    duration_s: f64,
}

#[derive(Serialize)]
struct Lost {
    what: String,
    cpu: Option<u16>,
    from: u64,
    to: u64,
    count: u64,
}

/// Losses that are listed.
const MOST_LOSSES: usize = 10_000;

/// Answers `summary`.
///
/// # Errors
/// If a table is damaged.
pub(crate) fn answer(study: &Study, explained: bool) -> Result<Answer> {
    let trace = study.trace;
    let ns = |s: f64| Timestamp::from_seconds(s).nanos();
    let lost = |l: holdup_trace::Loss| {
        let (from, to) = (ns(l.from_s), ns(l.to_s));
        Lost { what: l.what, cpu: l.cpu, from, to, count: l.count }
    };
    let pids: FxHashSet<u32> = trace.threads.rows().skip(1).map(|t| t.pid).collect();
    let summary = Summary {
        name: &study.name,
        format: &trace.meta.format,
        host: &trace.meta.host,
        command: &trace.meta.command,
        duration_ns: Nanos(study.timeline.end).0,
        cpus: study.timeline.cpus,
        focus: study.focus.name(),
        threads: trace.threads.len().saturating_sub(1),
        processes: pids.len(),
        switches: trace.switches.rows(),
        samples: trace.samples.rows(),
        spans: trace.spans.rows(),
        losses: trace.losses()?.into_iter().take(MOST_LOSSES).map(lost).collect(),
        notes: &trace.meta.notes,
        explained,
        part: trace.meta.part.map(|part| {
            let windows = [[part.from_ns, part.from_ns + trace.meta.duration_ns]];
            PartOf { of: Whole { duration_s: Nanos(part.of_ns).seconds() }, windows }
        }),
        presets: documents::presets(),
        tables: documents::tables(),
    };
    Ok(Answer::document(&summary))
}
