//! What was found in a trace, and what it rests on, as one JSON document: for who wants the results and not the events, which are
//! in the Parquet export.
//!
//! It is the document of `holdup explain --json` with all findings, together with the facts about the recording, what is missing from
//! it, and what each thread did with its time.

use std::collections::BTreeMap;
use std::io::Write;

use holdup_analysis::blame::Study;
use holdup_analysis::intervals::Chunk;
use holdup_analysis::lanes::{Did, Doing};
use holdup_analysis::{Explanation, Options, explain_study, label};
use holdup_trace::{Loss, Meta, Nanos, Table, ThreadIdx, Trace};
use serde::Serialize;

use crate::study::{look, studied};
use crate::{Result, Source};

/// What this document says that it is.
pub const SCHEMA: &str = "holdup.export/1";

/// The document.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Document {
    /// `holdup.export/1`.
    pub schema: &'static str,
    /// Facts about the recording, as `meta.json` in a `.holdup` file has them.
    pub meta: Meta,
    /// What is missing from it.
    pub losses: Vec<Loss>,
    /// What `holdup explain --json` says, with all findings.
    pub explanation: Explanation,
    /// What each thread did with its time, in the order of the trace.
    pub threads: Vec<ThreadTime>,
}

/// What a thread did with its time.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ThreadTime {
    /// Thread id.
    pub tid: u32,
    /// Its name; empty if unknown.
    pub name: String,
    /// Process id.
    pub pid: u32,
    /// The name of its process.
    pub process: String,
    /// Whether it is in focus: only then is it ever held up.
    pub in_focus: bool,
    /// Seconds by what it did: running, spinning, runnable, lock, disk, outside, sleeping, idle, child, thread, lost. What is missing
    /// did not occur.
    pub seconds: BTreeMap<Doing, f64>,
}

/// The document about `source`. O(events), in memory that does not grow with them.
///
/// # Errors
/// If the trace is damaged, or if the focus names no process.
pub fn document(source: &Source) -> Result<Document> {
    let options = Options { top: usize::MAX, ..source.options.clone() };
    let (explanation, threads) = studied(source, |study| {
        let (explanation, _) = explain_study(study, source.name, &options, source.disassembler)?;
        Ok((explanation, threads(study)?))
    })?;
    let trace = source.trace;
    let meta = Meta { rows: trace.row_counts(), ..trace.meta.clone() };
    Ok(Document { schema: SCHEMA, meta, losses: trace.losses()?, explanation, threads })
}

/// Writes the document.
///
/// # Errors
/// As [`document`], or if `out` takes no more.
pub fn write(source: &Source, out: &mut dyn Write) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, &document(source)?)?;
    Ok(out.write_all(b"\n")?)
}

/// Nanoseconds by what a thread did.
type Time = [u64; Doing::COUNT];

fn threads(study: &Study) -> Result<Vec<ThreadTime>> {
    let look = look(study);
    let count = study.trace.threads.len();
    let part = |chunk: &Chunk| {
        let mut time: Vec<Time> = vec![[0; Doing::COUNT]; count];
        look.follow(chunk, |did: Did| {
            let sum = time.get_mut(did.thread.index()).and_then(|t| t.get_mut(usize::from(did.doing.code())));
            if let Some(sum) = sum {
                *sum = sum.saturating_add(did.to.saturating_sub(did.from));
            }
        });
        time
    };
    let mut all: Vec<Time> = vec![[0; Doing::COUNT]; count];
    study.timeline.each(0..study.timeline.len(), part, |time| {
        for (sums, more) in all.iter_mut().zip(time) {
            sums.iter_mut().zip(more).for_each(|(sum, ns)| *sum = sum.saturating_add(ns));
        }
    })?;
    let told = |(i, time): (usize, &Time)| thread(study, ThreadIdx(i as u32), time);
    Ok(all.iter().enumerate().skip(1).map(told).collect())
}

fn thread(study: &Study, thread: ThreadIdx, time: &Time) -> ThreadTime {
    let trace: &Trace = study.trace;
    let (tid, pid) = trace.thread(thread).map_or((0, 0), |t| (t.tid, t.pid));
    let did = Doing::ALL.iter().zip(time).filter(|(doing, ns)| **ns > 0 && **doing != Doing::Nothing);
    ThreadTime {
        tid,
        name: label::thread_name(trace, thread).to_owned(),
        pid,
        process: label::process_name(trace, thread).to_owned(),
        in_focus: study.focus.contains(thread),
        seconds: did.map(|(doing, ns)| (*doing, Nanos(*ns).seconds())).collect(),
    }
}
