//! What is at a place of the timeline.

use holdup_analysis::classify::WaitKind;
use holdup_analysis::intervals::{Chunk, State, Stretch, Wait};
use holdup_analysis::label;
use holdup_analysis::lanes::Doing;
use holdup_analysis::report::LockFacts;
use holdup_trace::{Cpu, StackId, ThreadIdx};
use rustc_hash::FxHashSet;
use serde::Serialize;

use crate::parts::{Parts, touched};
use crate::people::{People, Row};
use crate::request::AtOf;
use crate::study::Study;
use crate::{Answer, Cancel, Error, Result};

/// Parts that are looked through for where something began or will end, in either direction.
const FAR: usize = 64;

#[derive(Serialize)]
struct Place {
    row: String,
    state: Doing,
    thread: String,
    /// The row of the thread.
    thread_row: Option<String>,
    process: String,
    from: u64,
    to: u64,
    cpu: Option<u16>,
    #[serde(skip_serializing_if = "String::is_empty")]
    function: String,
    wait: Option<WaitAt>,
}

#[derive(Serialize)]
struct WaitAt {
    /// Its number in the whole trace, if it begins in the part that was looked at.
    id: Option<u64>,
    kind: WaitKind,
    place: Doing,
    start: u64,
    woken: Option<u64>,
    resumed: Option<u64>,
    function: String,
    stack: Vec<String>,
    waker: String,
    waker_row: Option<String>,
    waker_context: &'static str,
    waker_stack: Vec<String>,
    lock: Option<LockFacts>,
    terminal: String,
}

/// What one thread does at an instant.
pub(crate) struct Found {
    pub(crate) stretch: Stretch,
    pub(crate) doing: Doing,
    /// The wait in which it is, and its number in the whole trace if that is known.
    pub(crate) wait: Option<(Wait, Option<u64>)>,
}

/// Answers `at`.
///
/// # Errors
/// If there is no such row or time, if a table is damaged, or if nobody wants to know any more.
pub(crate) fn answer(study: &Study, people: &People, parts: &Parts, asked: &AtOf, cancel: &Cancel) -> Result<Answer> {
    let t = (asked.time.max(0.0) as u64).min(study.timeline.end.saturating_sub(1));
    let row = people.row(&asked.row, study)?;
    let thread = match row {
        Row::Cpu(cpu) => match on_cpu(study, parts, Cpu(cpu), t)? {
            Ok(thread) => thread,
            Err((from, to)) => return Ok(idle(&asked.row, cpu, from, to)),
        },
        Row::Thread(thread) => thread,
        group => match people.threads(group).as_slice() {
            [one] => *one,
            several => busiest(study, parts, several, t)?,
        },
    };
    let found = of_thread(study, parts, thread, t, cancel)?;
    let wait = found.wait.as_ref().map(|(wait, id)| wait_at(study, people, wait, *id));
    let cpu = if let State::Running(cpu) = found.stretch.state { Some(cpu.0) } else { None };
    let function = if found.doing.has_cpu() { hottest(study, parts, &found.stretch)? } else { String::new() };
    Ok(Answer::document(&Place {
        row: asked.row.clone(),
        state: found.doing,
        thread: study.label(thread),
        thread_row: Some(people.id(Row::Thread(thread))),
        process: label::process_name(study.trace, thread).to_owned(),
        from: found.stretch.from,
        to: found.stretch.to,
        cpu,
        function,
        wait,
    }))
}

/// Of many threads the one that is held up then, or runs, or does anything.
fn busiest(study: &Study, parts: &Parts, among: &[ThreadIdx], t: u64) -> Result<ThreadIdx> {
    let chunk = parts.get(&study.timeline, touched(&study.timeline, t, t + 1).start)?;
    let among: FxHashSet<ThreadIdx> = among.iter().copied().collect();
    let mut best: Option<((bool, bool, bool, u64), ThreadIdx)> = None;
    chunk.stretches(|s| {
        if s.from <= t && t < s.to && among.contains(&s.thread) {
            let doing = doing_of(study, &chunk, s.state);
            let rank = (doing.is_held(), doing.has_cpu(), doing != Doing::Nothing, s.to - s.from);
            if best.is_none_or(|(most, _)| rank > most) {
                best = Some((rank, s.thread));
            }
        }
    });
    best.map(|(_, thread)| thread).ok_or_else(|| Error::Question("none of these threads lives then".into()))
}

fn idle(row: &str, cpu: u16, from: u64, to: u64) -> Answer {
    Answer::document(&Place {
        row: row.to_owned(),
        state: Doing::Home,
        thread: String::new(),
        thread_row: None,
        process: String::new(),
        from,
        to,
        cpu: Some(cpu),
        function: String::new(),
        wait: None,
    })
}

/// Who runs on a CPU, or from when to when nobody does within the part.
fn on_cpu(study: &Study, parts: &Parts, cpu: Cpu, t: u64) -> Result<std::result::Result<ThreadIdx, (u64, u64)>> {
    let chunk = parts.get(&study.timeline, touched(&study.timeline, t, t + 1).start)?;
    let (mut from, mut to, mut found) = (chunk.from, chunk.to, None);
    chunk.stretches(|s| {
        if s.state == State::Running(cpu) {
            match () {
                () if s.to <= t => from = from.max(s.to),
                () if s.from > t => to = to.min(s.from),
                () => found = Some(s.thread),
            }
        }
    });
    Ok(found.ok_or((from, to)))
}

/// What a thread does at `t`, from when to when, also beyond the part.
///
/// # Errors
/// If a table is damaged, or if nobody wants to know any more.
pub(crate) fn of_thread(study: &Study, parts: &Parts, thread: ThreadIdx, t: u64, cancel: &Cancel) -> Result<Found> {
    let index = touched(&study.timeline, t, t + 1).start;
    let chunk = parts.get(&study.timeline, index)?;
    let mut stretch = Stretch { thread, from: chunk.from, to: chunk.to, state: State::Unknown };
    chunk.stretches(|s| {
        if s.thread == thread && s.from <= t && t < s.to {
            stretch = s;
        }
    });
    let mut wait = None;
    if let Some(w) = waits_at(stretch.state) {
        let found = chunk.waits()[w as usize];
        wait = Some((found, number(study, &chunk, index, w)));
        // A wait knows its ends.
        match stretch.state {
            State::Waiting(_) => (stretch.from, stretch.to) = (found.start, found.woken.max(stretch.to)),
            _ => (stretch.from, stretch.to) = (found.woken.min(stretch.from), found.resumed.max(stretch.to)),
        }
    } else {
        extend(study, parts, index, &mut stretch, cancel)?;
    }
    let doing = doing_of(study, &chunk, stretch.state);
    Ok(Found { stretch, doing, wait })
}

fn doing_of(study: &Study, chunk: &Chunk, state: State) -> Doing {
    match state {
        State::Running(_) => Doing::Runs,
        State::Runnable(_) | State::Yields(_) | State::Woken(_) => Doing::Ready,
        State::Waiting(w) => study.look().at_wait(&chunk.waits()[w as usize]),
        State::Unknown | State::Gone => Doing::Nothing,
    }
}

fn waits_at(state: State) -> Option<u32> {
    match state {
        State::Waiting(w) | State::Woken(w) => Some(w),
        _ => None,
    }
}

/// The number of a wait in the whole trace, if it begins in this part.
fn number(study: &Study, chunk: &Chunk, index: usize, w: u32) -> Option<u64> {
    let before = (chunk.waits().len() - chunk.waits_begun().len()) as u64;
    Some(study.timeline.first_wait(index) + u64::from(w).checked_sub(before)?)
}

/// Follows what does not change over the part's borders.
fn extend(study: &Study, parts: &Parts, index: usize, stretch: &mut Stretch, cancel: &Cancel) -> Result<()> {
    let Stretch { thread, state, .. } = *stretch;
    let (mut at, mut chunk) = (index, parts.get(&study.timeline, index)?);
    while stretch.to == chunk.to && at + 1 < study.timeline.len() && at < index + FAR {
        cancel.check()?;
        at += 1;
        chunk = parts.get(&study.timeline, at)?;
        let mut goes_on = None;
        chunk.stretches(|s| {
            if s.thread == thread && s.from == chunk.from && s.state == state {
                goes_on = Some(s.to);
            }
        });
        let Some(to) = goes_on else { break };
        stretch.to = to;
    }
    (at, chunk) = (index, parts.get(&study.timeline, index)?);
    while stretch.from == chunk.from && at > 0 && at + FAR > index {
        cancel.check()?;
        at -= 1;
        chunk = parts.get(&study.timeline, at)?;
        let mut began = None;
        chunk.stretches(|s| {
            if s.thread == thread && s.to == chunk.to && s.state == state {
                began = Some(s.from);
            }
        });
        let Some(from) = began else { break };
        stretch.from = from;
    }
    Ok(())
}

/// The function of which there are most samples in a stretch of running; empty without samples.
fn hottest(study: &Study, parts: &Parts, stretch: &Stretch) -> Result<String> {
    let chunk = parts.get(&study.timeline, touched(&study.timeline, stretch.from, stretch.from + 1).start)?;
    let mut counted: Vec<(StackId, usize)> = Vec::new();
    let inside = |t: u64| t >= stretch.from && t <= stretch.to;
    for sample in chunk.samples().iter().filter(|s| s.thread == stretch.thread && inside(s.t.nanos())) {
        match counted.iter_mut().find(|(stack, _)| *stack == sample.stack) {
            Some((_, n)) => *n += 1,
            None => counted.push((sample.stack, 1)),
        }
    }
    let most = counted.into_iter().max_by_key(|(_, n)| *n).map_or(StackId::NONE, |(stack, _)| stack);
    Ok(label::stack_lines(study.trace, most).into_iter().next().unwrap_or_default())
}

fn wait_at(study: &Study, people: &People, wait: &Wait, id: Option<u64>) -> WaitAt {
    let trace = study.trace;
    let real = wait.waker.is_real();
    let known = |t: u64| (t < study.timeline.end).then_some(t);
    WaitAt {
        id,
        kind: wait.kind,
        place: study.look().at_wait(wait),
        start: wait.start,
        woken: known(wait.woken),
        resumed: known(wait.resumed),
        function: trace.text(study.classifier.facts(wait.stack).application).to_owned(),
        stack: label::stack_lines(trace, wait.stack),
        waker: if real { study.label(wait.waker) } else { String::new() },
        waker_row: real.then(|| people.id(Row::Thread(wait.waker))),
        waker_context: wait.context.name(),
        waker_stack: label::stack_lines(trace, wait.waker_stack),
        lock: label::lock(trace, wait.lock),
        terminal: String::new(),
    }
}
