//! Title, evidence and advice of a finding.

use super::group::{Group, Tally};
use super::{Context, lock, preempt};
use crate::label::duration;
use crate::report::{Culprit, Finding};

/// Fills in the sentences.
pub(super) fn describe(context: &Context, group: &Group, tally: &Tally, finding: &mut Finding) {
    finding.title = title(context, group, tally, finding);
    finding.evidence = evidence(context, group, tally, finding);
    finding.advice = advice(group, tally, finding);
}

fn title(context: &Context, group: &Group, tally: &Tally, f: &Finding) -> String {
    let who = who(&f.culprit);
    let place = place(&f.culprit);
    let waited = waited(f);
    let lock = lock_words(f);
    match group {
        Group::Lock(id) if f.kind == "convoy" => {
            let story = context.locks.get(id);
            let (hold, handoff) = story.map_or((0, 0), |s| (lock::median(&s.holds), lock::median(&s.handoffs)));
            let (hold, handoff) = (duration(hold as f64 / 1e9), duration(handoff as f64 / 1e9));
            format!(
                "{} threads queue for {lock}{place}: each hand-over takes {handoff}, each hold {hold}",
                f.waiters.threads
            )
        }
        Group::Lock(_) if tally.starved => {
            format!("{who} holds {lock}{place} and does not get a CPU, while {waited}")
        }
        Group::Lock(_) => format!("{who} held {lock}{place} while {waited}"),
        Group::Serial(_) if tally.starved => {
            format!("{who} could run{place} and does not get a CPU, while {waited}")
        }
        Group::Serial(_) if f.kind == "imbalance" => format!("{who} is the last to finish{place} while {waited}"),
        Group::Serial(_) => format!("{who} works alone{place} while {waited}"),
        Group::Disk(..) => format!("{who} waits for the disk{place}; {waited}"),
        Group::Timer(..) => format!("{who} sleeps{place} while {waited}"),
        Group::Runnable => {
            format!("threads of {who} could run while a CPU is idle ({})", duration(tally.thread_ns as f64 / 1e9))
        }
        Group::Idle(..) => {
            format!("{} of `{}` wait{place} by design", threads(f.waiters.threads), f.culprit.process)
        }
    }
}

fn who(c: &Culprit) -> String {
    match (c.thread.as_str(), c.process.as_str()) {
        ("", "") => "somebody".to_owned(),
        (thread, process) if thread == process => format!("`{process}` (pid {}, tid {})", c.pid, c.tid),
        (thread, process) => format!("thread `{thread}` of `{process}`"),
    }
}

fn place(c: &Culprit) -> String {
    match (c.function.as_str(), c.source.as_str()) {
        ("", _) => String::new(),
        (function, "") => format!(" in `{function}`"),
        (function, source) => format!(" in `{function}` ({source})"),
    }
}

fn threads(n: usize) -> String {
    if n == 1 { "1 thread".to_owned() } else { format!("{n} threads") }
}

fn waited(f: &Finding) -> String {
    let w = &f.waiters;
    let times = if w.waits == 1 { "once".to_owned() } else { format!("{} times", w.waits) };
    format!("{} waited {times}, up to {}", threads(w.threads), duration(w.max_s))
}

fn lock_words(f: &Finding) -> String {
    match &f.lock {
        None => "a lock".to_owned(),
        Some(l) if !l.name.is_empty() => format!("the lock `{}`", l.name),
        Some(l) => format!("the {} {}", l.kind, l.address),
    }
}

fn evidence(context: &Context, group: &Group, tally: &Tally, f: &Finding) -> Vec<String> {
    let w = &f.waiters;
    let mut lines = Vec::new();
    if matches!(group, Group::Runnable) {
        lines.push(format!("{} of waiting for a CPU, summed over the threads", duration(tally.thread_ns as f64 / 1e9)));
    } else if group.holds_up() {
        lines.push(format!(
            "{} in {} waits waited {} in all, {} on average, {} at most",
            threads(w.threads),
            w.waits,
            duration(w.total_s),
            duration(w.mean_s),
            duration(w.max_s)
        ));
    } else {
        lines.push(format!("{} spent {} here", threads(w.threads), duration(tally.thread_ns as f64 / 1e9)));
        lines.push("their chains end at their own timers, at input from outside, or at nobody".to_owned());
    }
    if let Some(i) = f.culprit.instruction.as_ref().filter(|i| !i.text.is_empty()) {
        lines.push(format!("{:.0} % of the culprit's samples are at {} `{}`", 100.0 * i.share, i.address, i.text));
    }
    if tally.handoff_ns > 0.05 * tally.rank_ns {
        let share = 100.0 * tally.handoff_ns / tally.rank_ns;
        lines.push(format!("{share:.0} % of it is hand-over: woken for the lock, not yet running"));
    }
    if tally.overhead_ns > 0.05 * tally.rank_ns {
        lines.push(format!("{} of CPU went into the lock's own system calls", duration(tally.overhead_ns / 1e9)));
    }
    if tally.not_running_ns > 0.1 * tally.rank_ns {
        let share = 100.0 * tally.not_running_ns / tally.rank_ns;
        lines.push(format!("{share:.0} % of it the culprit could run and did not get a CPU"));
        let culprits: Vec<_> = tally.by_thread.keys().copied().collect();
        for (thread, ns) in preempt::antagonists(context, &culprits).into_iter().take(3) {
            let name = context.thread_name(thread);
            let (pid, time) = (context.pid(thread), duration(ns as f64 / 1e9));
            lines.push(format!("meanwhile its CPU ran `{name}` (pid {pid}) for {time}"));
        }
    }
    let culprits = tally.by_thread.len();
    if culprits > 1 && group.holds_up() {
        lines.push(format!("{culprits} threads took turns at it"));
    }
    if f.culprit.thread == f.culprit.process && shares_name(context, f) {
        lines.push("its threads have no names of their own: pthread_setname_np would tell them apart".to_owned());
    }
    lines
}

/// Whether several threads of the culprit's process are called like the process.
fn shares_name(context: &Context, f: &Finding) -> bool {
    let threads = &context.trace.threads;
    let same =
        (0..threads.pid.len()).filter(|&i| threads.pid[i] == f.culprit.pid && threads.name[i] == threads.process[i]);
    same.take(3).count() > 2
}

fn advice(group: &Group, tally: &Tally, f: &Finding) -> String {
    let function = if f.culprit.function.is_empty() { "it".to_owned() } else { format!("`{}`", f.culprit.function) };
    match group {
        Group::Lock(_) if f.kind == "convoy" => format!(
            "Take this lock less often: batch the work in {function}, partition what it protects, or admit fewer threads at a time."
        ),
        Group::Lock(_) | Group::Serial(_) if tally.starved => {
            "Let it run: undo its pinning or its low priority, give it a CPU of its own, or move its neighbour away."
                .to_owned()
        }
        Group::Lock(_) => format!(
            "Do the work of {function} outside the lock, or hold it for a part of the work at a time; then measure again."
        ),
        Group::Serial(_) if f.kind == "imbalance" => {
            format!("Cut the work of {function} into smaller pieces, so that no thread is left with a long one.")
        }
        Group::Serial(_) => {
            format!("Spread {function} over threads, overlap it with the next phase, or make it shorter.")
        }
        Group::Disk(..) => format!(
            "Take the disk out of the way of others: sync in {function} less often, in batches, or without a lock."
        ),
        Group::Timer(..) => format!(
            "Wait for the event instead of sleeping in {function}: a condition variable, a futex or an eventfd."
        ),
        Group::Runnable => "Look at affinity masks, quotas (cpu.max) and the scheduler: CPUs were free.".to_owned(),
        Group::Idle(..) => "Nothing to mend, if the program has no more work; flip it with --work FUNCTION.".to_owned(),
    }
}
