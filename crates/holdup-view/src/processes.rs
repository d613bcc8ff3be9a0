//! When processes lived.

use holdup_analysis::label;
use holdup_analysis::lanes::Doing;
use holdup_trace::{Amount, Table, ThreadIdx};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::base::Base;
use crate::request::ProcessesOf;
use crate::study::Study;
use crate::{Answer, Result};

/// Rows at once.
const MOST_ROWS: usize = 2000;

#[derive(Serialize)]
struct Lived {
    pid: u32,
    name: String,
    from: u64,
    to: u64,
    parent: Option<u32>,
    threads: usize,
    cpu_s: f64,
}

#[derive(Serialize)]
struct Document {
    rows: Vec<Lived>,
    total: usize,
}

/// Answers `processes`: those that lived in the window, in the order of their beginnings, then of their CPU time.
///
/// # Errors
/// If there is no such window.
pub(crate) fn answer(study: &Study, base: &Base, asked: &ProcessesOf) -> Result<Answer> {
    let (from, to) = asked.window.within(study.timeline.end)?;
    let trace = study.trace;
    let mut all: Vec<Lived> = Vec::new();
    // Numbers are used again: a process that begins with its first thread is another one.
    let mut present: FxHashMap<u32, usize> = FxHashMap::default();
    for (i, row) in trace.threads.rows().enumerate().skip(1) {
        let thread = ThreadIdx(i as u32);
        let (start, end) = (row.start.nanos(), row.end.nanos().min(study.timeline.end));
        let first = row.tid == row.pid;
        let known = present.get(&row.pid).copied().filter(|&at| !first || start <= all[at].from);
        let at = known.unwrap_or_else(|| {
            let parent = trace.threads.pid.get(row.parent.index()).copied().filter(|&pid| pid != row.pid);
            let name = label::process_name(trace, thread).to_owned();
            all.push(Lived { pid: row.pid, name, from: start, to: end, parent, threads: 0, cpu_s: 0.0 });
            present.insert(row.pid, all.len() - 1);
            all.len() - 1
        });
        let sums = &base.sums[i];
        let process = &mut all[at];
        (process.from, process.to) = (process.from.min(start), process.to.max(end));
        process.threads += 1;
        process.cpu_s += Amount(sums[Doing::Runs as usize] + sums[Doing::Spins as usize]).seconds();
    }
    all.retain(|p| p.from < to && p.to >= from);
    all.sort_by(|a, b| a.from.cmp(&b.from).then(b.cpu_s.total_cmp(&a.cpu_s)).then(a.pid.cmp(&b.pid)));
    let total = all.len();
    let rows = all.into_iter().skip(asked.offset).take(asked.limit.min(MOST_ROWS)).collect();
    Ok(Answer::document(&Document { rows, total }))
}
