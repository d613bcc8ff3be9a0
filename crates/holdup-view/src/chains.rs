//! From a wait to its cause, hop by hop.

use std::sync::{PoisonError, RwLock};

use holdup_analysis::chain::{self, Chain, Hop};
use holdup_analysis::intervals::{Chunk, State, Wait};
use holdup_trace::{ThreadIdx, Timestamp};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use serde_json::Value;

use crate::at;
use crate::explained::Explained;
use crate::parts::{Parts, touched};
use crate::people::{People, Row};
use crate::request::ChainOf;
use crate::study::Study;
use crate::{Answer, Cancel, Error, Result};

/// Parts of the trace that one chain is followed through: some 4 MB each.
const MOST_PARTS: usize = 64;
/// Parts that are looked through for a finding's longest wait.
const SEARCHED: usize = 16;

/// Chains of findings that are asked for first: each takes a search through the trace.
#[derive(Default)]
pub(crate) struct Ready(RwLock<FxHashMap<String, Answer>>);

impl Ready {
    /// The answer, if it was made.
    pub(crate) fn get(&self, asked: &ChainOf) -> Option<Answer> {
        let ChainOf { wait: None, row: None, time: None, finding: Some(finding) } = asked else { return None };
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(finding).cloned()
    }

    /// Keeps an answer.
    pub(crate) fn keep(&self, finding: &str, answer: Answer) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(finding.to_owned(), answer);
    }
}

#[derive(Serialize)]
struct Document {
    chain: Chain,
    hops: Vec<Drawn>,
}

/// A hop, as it is drawn.
#[derive(Serialize)]
struct Drawn {
    row: Option<String>,
    thread: String,
    from: u64,
    to: u64,
    /// From when its own wait lasted, by which the chain goes on.
    wait_from: Option<u64>,
    what: &'static str,
    function: String,
    by: Value,
}

/// Answers `chain`; `explained` is there if it is asked for a finding.
///
/// # Errors
/// If there is no such wait, if a table is damaged, or if nobody wants to know any more.
pub(crate) fn answer(
    study: &Study,
    people: &People,
    parts: &Parts,
    explained: Option<&Explained>,
    asked: &ChainOf,
    cancel: &Cancel,
) -> Result<Answer> {
    let wait = pick(study, people, parts, explained, asked, cancel)?;
    let whole = touched(&study.timeline, wait.start, wait.resumed.max(wait.start + 1));
    let first = whole.start.max(whole.end.saturating_sub(MOST_PARTS));
    cancel.check()?;
    let intervals = study.timeline.range(first..whole.end)?;
    let at = chain::Study {
        trace: study.trace,
        focus: &study.focus,
        intervals: &intervals,
        classifier: study.classifier,
        disassembler: study.disassembler,
    };
    let found = at.chain(&study.name, &wait)?;
    let hops = found.hops.iter().map(|hop| drawn(study, people, hop)).collect();
    Ok(Answer::document(&Document { chain: found, hops }))
}

fn drawn(study: &Study, people: &People, hop: &Hop) -> Drawn {
    let ns = |s: f64| Timestamp::from_seconds(s).nanos();
    let thread = thread_of(study, hop);
    let wait_from = hop.wait.as_ref().map(|w| ns(w.start_s));
    Drawn {
        row: thread.map(|t| people.id(Row::Thread(t))),
        thread: format!("{} ({})", hop.who.thread, hop.who.tid),
        from: ns(hop.did.from_s),
        to: ns(hop.did.to_s),
        wait_from,
        what: if hop.did.ran_s >= hop.did.ready_s { "ran" } else { "was ready" },
        function: hop.did.function.clone(),
        by: serde_json::to_value(hop.by).unwrap_or_default(),
    }
}

/// The thread of a hop: of several with its number the one that lived then.
fn thread_of(study: &Study, hop: &Hop) -> Option<ThreadIdx> {
    let t = Timestamp::from_seconds(hop.did.from_s);
    study.thread(hop.who.pid, hop.who.tid, t)
}

fn pick(
    study: &Study,
    people: &People,
    parts: &Parts,
    explained: Option<&Explained>,
    asked: &ChainOf,
    cancel: &Cancel,
) -> Result<Wait> {
    if let Some(id) = asked.wait {
        return by_number(study, parts, id);
    }
    let t = asked.time.map(|t| (t.max(0.0) as u64).min(study.timeline.end.saturating_sub(1)));
    if let (Some(id), Some(explained)) = (&asked.finding, explained) {
        let finding = explained.finding(id)?;
        let then = of_finding(study, parts, explained, finding, t, cancel);
        // Where nobody waits at that instant, somebody does in the longest stretch.
        return if then.is_err() && t.is_some() {
            of_finding(study, parts, explained, finding, None, cancel)
        } else {
            then
        };
    }
    let t = t.ok_or_else(|| Error::Question("say which wait: by its number, or by a time".into()))?;
    let Some(row) = &asked.row else { return longest_at(study, parts, t, |_| true) };
    let threads = people.threads(people.row(row, study)?);
    match threads.as_slice() {
        [one] => {
            let found = at::of_thread(study, parts, *one, t, cancel)?;
            let wait = found.wait.map(|(wait, _)| wait);
            wait.ok_or_else(|| Error::Question(format!("{} does not wait then", study.label(*one))))
        }
        _ => {
            let among: FxHashSet<ThreadIdx> = threads.into_iter().collect();
            longest_at(study, parts, t, |wait| among.contains(&wait.thread))
        }
    }
}

fn by_number(study: &Study, parts: &Parts, id: u64) -> Result<Wait> {
    let none = || Error::Question(format!("there is no wait {id}"));
    let index = study.timeline.part_of_wait(id).ok_or_else(none)?;
    let chunk = parts.get(&study.timeline, index)?;
    let found = chunk.waits_begun().get((id - study.timeline.first_wait(index)) as usize);
    found.copied().ok_or_else(none)
}

/// All waits that are open at some time in a part.
fn open_waits(chunk: &Chunk, (from, to): (u64, u64), mut see: impl FnMut(&Wait)) {
    chunk.stretches(|s| {
        if let State::Waiting(w) = s.state
            && s.from < to
            && s.to > from
        {
            see(&chunk.waits()[w as usize]);
        }
    });
}

fn longest_at(study: &Study, parts: &Parts, t: u64, wanted: impl Fn(&Wait) -> bool) -> Result<Wait> {
    let chunk = parts.get(&study.timeline, touched(&study.timeline, t, t + 1).start)?;
    let mut best: Option<((bool, bool, u64), Wait)> = None;
    let look = study.look();
    open_waits(&chunk, (t, t + 1), |wait| {
        let rank = (study.focus.contains(wait.thread), look.at_wait(wait).is_held(), wait.woken - wait.start);
        if wanted(wait) && best.as_ref().is_none_or(|(most, _)| rank > *most) {
            best = Some((rank, *wait));
        }
    });
    best.map(|(_, wait)| wait).ok_or_else(|| Error::Question("nobody waits then".into()))
}

/// A telling wait of a finding: of those that its culprit ended, the longest; else the longest of its waiters.
fn of_finding(
    study: &Study,
    parts: &Parts,
    explained: &Explained,
    finding: usize,
    t: Option<u64>,
    cancel: &Cancel,
) -> Result<Wait> {
    let found = &explained.explanation.findings[finding];
    let about = &found.about;
    let ns = |s: f64| Timestamp::from_seconds(s).nanos();
    let longest = found.windows.iter().max_by(|a, b| (a[1] - a[0]).total_cmp(&(b[1] - b[0])));
    let window = match t {
        Some(t) => (t, t + 1),
        None => longest.map_or((0, study.timeline.end), |w| (ns(w[0]), ns(w[1]).max(ns(w[0]) + 1))),
    };
    let culprits: FxHashSet<ThreadIdx> = about.culprits.iter().copied().chain(explained.culprits[finding]).collect();
    let look = study.look();
    let longest_in = |chunk: &Chunk| {
        let mut best: Option<((bool, bool, u64), Wait)> = None;
        open_waits(chunk, window, |wait| {
            if !about.waiters.is_empty() && about.waiters.binary_search(&wait.thread).is_err() {
                return;
            }
            let rank = (culprits.contains(&wait.waker), look.at_wait(wait).is_held(), wait.woken - wait.start);
            if best.as_ref().is_none_or(|(most, _)| rank > *most) {
                best = Some((rank, *wait));
            }
        });
        best
    };
    let all =
        parts.map(&study.timeline, touched(&study.timeline, window.0, window.1).take(SEARCHED), cancel, longest_in)?;
    // Of equal ones the first.
    let best = all.into_iter().flatten().rev().max_by_key(|(rank, _)| *rank);
    best.map(|(_, wait)| wait).ok_or_else(|| Error::Question(format!("no wait of {} is seen then", found.id)))
}
