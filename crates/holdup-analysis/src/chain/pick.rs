//! Which wait is meant.

use std::cmp::Reverse;

use holdup_trace::{Table, ThreadIdx, Timestamp};

use super::Study;
use super::report::Start;
use super::walk::{self, Parts};
use crate::classify::WaitKind;
use crate::label::{duration, thread_name};

/// The wait where a chain begins.
pub(super) struct Picked {
    /// Its last part.
    pub(super) wait: usize,
    pub(super) at: Option<Timestamp>,
    pub(super) others: usize,
    pub(super) note: String,
}

impl Picked {
    /// The wait that holds part `i`.
    pub(super) fn of(parts: &Parts, i: usize) -> Self {
        Picked { wait: parts.last(i), at: None, others: 0, note: String::new() }
    }
}

/// Finds the wait; there are `known` in the trace. The error says what there is instead.
pub(super) fn pick(study: &Study, parts: &Parts, start: &Start, known: u64) -> Result<Picked, String> {
    if known == 0 {
        return Err("the trace has no waits: it needs context switches (sched:sched_switch)".into());
    }
    match start {
        Start::Wait(id) => match study.intervals.index(*id) {
            Some(i) => Ok(Picked::of(parts, i)),
            None => Err(format!("there is no wait {id}; the waits are 0 to {}", known - 1)),
        },
        Start::At { seconds, thread } => at(study, parts, *seconds, thread.as_deref()),
    }
}

fn at(study: &Study, parts: &Parts, seconds: f64, wanted: Option<&str>) -> Result<Picked, String> {
    let end = walk::at(study.trace.meta.duration_ns);
    let t = Timestamp::from_seconds(seconds);
    if t > end {
        return Err(format!("{seconds} s lies behind the trace, which is {:.3} s long", end.seconds()));
    }
    let open = |i: &usize| parts.start(*i) <= t && t < parts.woken(*i);
    let all: Vec<usize> = parts.all().filter(open).collect();
    let focused = all.iter().filter(|&&i| study.focus.contains(parts.wait(i).thread)).count();
    let picked = match wanted {
        Some(wanted) => of_thread(study, parts, &all, wanted, t)?,
        None => longest(study, parts, &all, t)?,
    };
    let is_focused = study.focus.contains(parts.wait(picked.0).thread);
    Ok(Picked { wait: picked.0, at: Some(t), others: focused - usize::from(is_focused), note: picked.1 })
}

/// The longest wait in focus, preferably one that somebody else ended.
fn longest(study: &Study, parts: &Parts, all: &[usize], t: Timestamp) -> Result<(usize, String), String> {
    let mine = all.iter().copied().filter(|&i| study.focus.contains(parts.wait(i).thread));
    let best = mine.max_by_key(|&i| {
        let wait = parts.wait(i);
        (rank(study, parts, i), parts.waited(i), Reverse(wait.thread))
    });
    let Some(best) = best else { return Err(nobody(study, parts, t)) };
    let note = match rank(study, parts, best) {
        0 => "no thread of the focus waited for another one then; this is the longest of the other waits",
        _ => "",
    };
    Ok((best, note.to_owned()))
}

/// 2 for locks, 1 for other waits that a thread or a disk ends, 0 for those that hold nobody up.
fn rank(study: &Study, parts: &Parts, i: usize) -> u8 {
    let wait = parts.wait(i);
    match wait.kind {
        _ if wait.exempt || study.focus.is_kernel(wait.thread) => 0,
        WaitKind::Lock => 2,
        WaitKind::Timer | WaitKind::Join | WaitKind::Signal | WaitKind::KernelIdle => 0,
        _ => u8::from(!wait.open),
    }
}

/// A sentence about the nearest waits, where there is none at `t`.
fn nobody(study: &Study, parts: &Parts, t: Timestamp) -> String {
    let mine = || parts.all().filter(|&i| study.focus.contains(parts.wait(i).thread));
    let before = mine().map(|i| parts.woken(i)).filter(|&w| w <= t).max();
    let after = mine().map(|i| parts.start(i)).filter(|&s| s > t).min();
    let near = match (before, after) {
        (None, None) => "no thread of the focus ever waits".to_owned(),
        (Some(b), None) => format!("the last wait ended at {:.6} s", b.seconds()),
        (None, Some(a)) => format!("the first wait begins at {:.6} s", a.seconds()),
        (Some(b), Some(a)) => {
            format!("one wait ended at {:.6} s, the next begins at {:.6} s", b.seconds(), a.seconds())
        }
    };
    format!("no thread of the focus waits at {} s; {near}", t.seconds())
}

fn of_thread(
    study: &Study,
    parts: &Parts,
    all: &[usize],
    wanted: &str,
    t: Timestamp,
) -> Result<(usize, String), String> {
    let (threads, exact) = matching(study, wanted);
    if threads.is_empty() {
        return Err(format!("no thread is called or numbered {wanted}; `holdup threads` lists them"));
    }
    let mine = all.iter().copied().filter(|&i| threads.contains(&parts.wait(i).thread));
    let best = mine.max_by_key(|&i| parts.waited(i));
    let Some(best) = best else { return Err(not_waiting(study, parts, &threads, wanted, t)) };
    let name = thread_name(study.trace, parts.wait(best).thread);
    let note = match threads.len() {
        1 if exact => String::new(),
        1 => format!("{wanted} is taken for `{name}`"),
        n => format!("{n} threads match {wanted}; this is the one that waited longest then"),
    };
    Ok((best, note))
}

/// The threads that `wanted` means, and whether they match exactly: by tid, else by the whole name, else by its
/// beginning, else by any part.
fn matching(study: &Study, wanted: &str) -> (Vec<ThreadIdx>, bool) {
    let trace = study.trace;
    let real = || (1..trace.threads.len() as u32).map(ThreadIdx);
    let tid: Option<u32> = wanted.parse().ok();
    let by_tid: Vec<_> = real().filter(|t| Some(trace.threads.tid[t.index()]) == tid).collect();
    if !by_tid.is_empty() {
        return (by_tid, true);
    }
    let by_name = |test: fn(&str, &str) -> bool| -> Vec<ThreadIdx> {
        let hit = |t: &ThreadIdx| test(thread_name(trace, *t), wanted);
        let (inside, outside): (Vec<_>, Vec<_>) = real().filter(hit).partition(|t| study.focus.contains(*t));
        if inside.is_empty() { outside } else { inside }
    };
    let exact = by_name(|name, wanted| name == wanted);
    if !exact.is_empty() {
        return (exact, true);
    }
    let begins = by_name(|name, wanted| name.starts_with(wanted));
    (if begins.is_empty() { by_name(|name, wanted| name.contains(wanted)) } else { begins }, false)
}

/// What the thread did instead, and when it waits next.
fn not_waiting(study: &Study, parts: &Parts, threads: &[ThreadIdx], wanted: &str, t: Timestamp) -> String {
    let mine = || parts.all().filter(|&i| threads.contains(&parts.wait(i).thread));
    let before = mine().filter(|&i| parts.woken(i) <= t).max_by_key(|&i| parts.woken(i));
    let after = mine().filter(|&i| parts.start(i) > t).min_by_key(|&i| parts.start(i));
    let one = |i: usize, word: &str| {
        let (from, waited) = (parts.start(i).seconds(), parts.waited(i).seconds());
        let number = study.intervals.number(i).map_or(String::new(), |number| format!(" {number},"));
        format!("{word} wait is{number} from {from:.6} s for {}", duration(waited))
    };
    let near: Vec<String> =
        [before.map(|i| one(i, "its last")), after.map(|i| one(i, "its next"))].into_iter().flatten().collect();
    let near = if near.is_empty() { "it never waits".to_owned() } else { near.join("; ") };
    let who = if study.trace.threads.is_empty() { String::new() } else { format!("thread {wanted}") };
    format!("{who} does not wait at {} s; {near}", t.seconds())
}
