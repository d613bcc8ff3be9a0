//! Threads, programs, functions and locks by a part of their names.

use std::cmp::Reverse;

use holdup_analysis::label;
use holdup_trace::{FrameId, LockId, StringId, Table, ThreadIdx};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::people::{People, Row};
use crate::request::SearchOf;
use crate::rows::matches;
use crate::study::Study;
use crate::{Answer, Result};

/// Hits of each kind.
const MOST: usize = 200;

#[derive(Serialize)]
struct Found {
    threads: Vec<Named>,
    functions: Vec<Function>,
    locks: Vec<Lock>,
    processes: Vec<Named>,
}

#[derive(Serialize)]
struct Named {
    row: String,
    label: String,
    detail: String,
}

#[derive(Serialize)]
struct Function {
    function: String,
    module: String,
    samples: u64,
}

#[derive(Serialize)]
struct Lock {
    key: String,
    label: String,
}

/// Answers `search`.
///
/// # Errors
/// If a table is damaged.
pub(crate) fn answer(study: &Study, people: &People, asked: &SearchOf) -> Result<Answer> {
    let (wanted, limit) = (asked.text.trim().to_lowercase(), asked.limit.min(MOST));
    if wanted.is_empty() {
        let none = Found { threads: Vec::new(), functions: Vec::new(), locks: Vec::new(), processes: Vec::new() };
        return Ok(Answer::document(&none));
    }
    let trace = study.trace;
    let threads = (1..trace.threads.len()).map(|i| ThreadIdx(i as u32)).filter(|t| matches(study, *t, &wanted));
    let threads = threads.take(limit).map(|t| Named {
        row: people.id(Row::Thread(t)),
        label: study.label(t),
        detail: label::process_name(trace, t).to_owned(),
    });
    let named = |p: &usize| trace.text(people.programs[*p].id).to_lowercase().contains(&wanted);
    let programs = (0..people.programs.len()).filter(named).take(limit).map(|p| Named {
        row: people.id(Row::Program(p)),
        label: trace.text(people.programs[p].id).to_owned(),
        detail: format!("{} threads", people.programs[p].threads),
    });
    let locks = (1..trace.locks.len()).filter_map(|i| {
        let facts = label::lock(trace, LockId(i as u32))?;
        let label = if facts.name.is_empty() { format!("{} {}", facts.kind.name(), facts.address) } else { facts.name };
        label.to_lowercase().contains(&wanted).then(|| Lock { key: label.clone(), label })
    });
    Ok(Answer::document(&Found {
        threads: threads.collect(),
        functions: functions(study, &wanted, limit)?,
        locks: locks.take(limit).collect(),
        processes: programs.collect(),
    }))
}

/// Functions by name, those with most samples of their own first.
fn functions(study: &Study, wanted: &str, limit: usize) -> Result<Vec<Function>> {
    let trace = study.trace;
    let mut fits: FxHashMap<StringId, bool> = FxHashMap::default();
    let mut found: FxHashMap<(StringId, StringId), u64> = FxHashMap::default();
    let mut of_frame: FxHashMap<FrameId, (StringId, StringId)> = FxHashMap::default();
    for frame in (0..trace.stacks.frame_count()).map(|i| FrameId(i as u32)) {
        for l in trace.names.locations(frame) {
            if *fits.entry(l.function).or_insert_with(|| trace.text(l.function).to_lowercase().contains(wanted)) {
                found.entry((l.function, l.module)).or_default();
                of_frame.entry(frame).or_insert((l.function, l.module));
            }
        }
    }
    if !found.is_empty() {
        for sample in trace.samples.iter() {
            let leaf = trace.stacks.frames(sample?.stack).next();
            if let Some(n) = leaf.and_then(|f| of_frame.get(&f)).and_then(|key| found.get_mut(key)) {
                *n += 1;
            }
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|((function, _), n)| (Reverse(*n), trace.text(*function)));
    let text = |id: StringId| trace.text(id).to_owned();
    let function =
        |((f, m), samples): ((StringId, StringId), u64)| Function { function: text(f), module: text(m), samples };
    Ok(found.into_iter().take(limit).map(function).collect())
}
