//! Title, evidence and advice of a finding, in words that need no manual.

use holdup_trace::{Amount, Nanos};

use super::context::Context;
use super::preempt;
use super::sched;
use super::stories::median;
use super::tally::{Group, Tally};
use crate::label::{self, duration};
use crate::report::{Culprit, Finding, FindingKind};

/// A thread with less of the blame than this has no part in it.
const PART: f64 = 0.05;

/// Fills in the sentences.
pub(super) fn describe(context: &Context, group: &Group, tally: &Tally, finding: &mut Finding) {
    finding.title = title(context, group, tally, finding);
    finding.evidence = evidence(context, group, tally, finding);
    finding.advice = advice(group, tally, finding);
}

fn title(context: &Context, group: &Group, tally: &Tally, f: &Finding) -> String {
    let who = who(context, &f.culprit) + &others(tally);
    let lasted = lasted(f);
    let starved = || {
        let share = 100.0 * (tally.not_running / tally.rank.max(Amount(1.0)));
        format!("got no CPU for {share:.0} % of {}", duration(f.lasted_s))
    };
    match group {
        Group::Lock(id) if f.kind == FindingKind::Convoy => {
            let story = context.learned.locks.get(id);
            let (hold, handoff) = story.map_or_else(Default::default, |s| (median(&s.holds), median(&s.handoffs)));
            let once = |time: Nanos| duration(context.limits.once(time.amount()));
            let queue = format!("{} stood in a queue for {}", threads(f.waiters.threads), lock_words(f));
            format!("{queue}: it is kept for {} and takes {} to hand on", once(hold), once(handoff))
        }
        Group::Lock(_) if tally.starved => format!("{who} kept {} and {}; {}", lock_words(f), starved(), stood(f)),
        Group::Lock(_) => format!("{who} kept {} for {lasted}; {}", lock_words(f), stood(f)),
        Group::Serial(_) if tally.starved => format!("{who} was ready and {}; {}", starved(), stood(f)),
        Group::Serial(_) if f.kind == FindingKind::Imbalance => format!("{who} was the last to finish; {}", stood(f)),
        Group::Serial(_) if others(tally).is_empty() => format!("{who} worked alone for {lasted}; {}", stood(f)),
        Group::Serial(_) => format!("{who} worked for {lasted}; {}", stood(f)),
        Group::Disk(..) => format!("{who} waited for the disk for {lasted}; {}", stood(f)),
        Group::Timer(..) => format!("{who} slept for {lasted} while others waited for it; {}", stood(f)),
        Group::Ready(program, why) => sched::title(context, *program, *why, f),
        Group::Outside(..) => format!("{who} waited for the world outside for {lasted}; {}", stood(f)),
        Group::Idle(..) => {
            format!("{} of {} waited for work that nobody sent", threads(f.waiters.threads), f.culprit.process)
        }
    }
}

/// The thread, and its process where that is not the one in focus.
fn who(context: &Context, c: &Culprit) -> String {
    let in_focus = context.focus.name().split(" (pid").next() == Some(c.process.as_str());
    match (c.thread.as_str(), c.process.as_str()) {
        ("", "") => "somebody".to_owned(),
        (thread, process) if thread == process || process.is_empty() => thread.to_owned(),
        (thread, _) if in_focus => thread.to_owned(),
        ("", process) => process.to_owned(),
        (thread, process) => format!("{thread} of {process}"),
    }
}

/// The others that have a part in it.
fn others(tally: &Tally) -> String {
    let all: f64 = tally.by_thread.values().sum();
    match tally.by_thread.values().filter(|ns| **ns > PART * all).count() {
        0 | 1 => String::new(),
        2 => " and another".to_owned(),
        n => format!(" and {} others", n - 1),
    }
}

/// How long, all times together.
fn lasted(f: &Finding) -> String {
    let all = if f.windows.len() > 1 { " in all" } else { "" };
    duration(f.lasted_s) + all
}

/// Who stood still meanwhile.
fn stood(f: &Finding) -> String {
    let w = &f.waiters;
    let who = threads(w.threads);
    match w.waits {
        0 => "nobody else had anything to do".to_owned(),
        n if n <= 2 * w.threads as u64 => format!("{who} stood still"),
        n => format!("{who} stood still {}, up to {}", times(n), duration(w.max_s)),
    }
}

fn threads(n: usize) -> String {
    if n == 1 { "1 thread".to_owned() } else { format!("{n} threads") }
}

fn times(n: u64) -> String {
    if n == 1 { "once".to_owned() } else { format!("{} times", label::count(n)) }
}

fn lock_words(f: &Finding) -> String {
    match &f.lock {
        Some(l) if !l.name.is_empty() => format!("the lock {}", l.name),
        _ => "one lock".to_owned(),
    }
}

fn evidence(context: &Context, group: &Group, tally: &Tally, f: &Finding) -> Vec<String> {
    let w = &f.waiters;
    let all = duration(context.limits.of_threads(tally.waited.amount(), tally.count()));
    let mut lines = Vec::new();
    if let Group::Ready(program, why) = group {
        return sched::evidence(context, *program, *why, f);
    } else if group.holds_up() && w.waits == 0 {
        lines.push("no thread waited for it: the others of the program had ended, or had no work".to_owned());
    } else if group.holds_up() {
        lines.push(format!(
            "{} waited {}: {} in all, {} on average, {} at most",
            threads(w.threads),
            times(w.waits),
            duration(w.total_s),
            duration(w.mean_s),
            duration(w.max_s)
        ));
    } else {
        lines.push(format!("{} spent {all} here", threads(w.threads)));
        lines.push("what they waited for is their own timer, input from outside, or nobody".to_owned());
    }
    if let Some(l) = f.lock.as_ref().filter(|l| !l.address.is_empty()) {
        lines.push(format!("the lock is the {} at {}", l.kind.name(), l.address));
    }
    if let Some(i) = f.culprit.instruction.as_ref().filter(|i| !i.text.is_empty()) {
        lines.push(format!("{:.0} % of the samples are at {} `{}`", 100.0 * i.share, i.address, i.text));
    }
    if tally.handoff > 0.05 * tally.rank {
        let share = 100.0 * (tally.handoff / tally.rank);
        lines.push(format!("{share:.0} % of it is handing over: woken for the lock and not yet running"));
    }
    if tally.overhead > 0.05 * tally.rank {
        let spent = duration(context.limits.of_cpus(tally.overhead));
        lines.push(format!("{spent} of CPU time went into the lock's own system calls"));
    }
    preempted(context, tally, &mut lines);
    if f.culprit.thread == f.culprit.process && shares_name(context, f) {
        lines.push("its threads have no names of their own: pthread_setname_np would tell them apart".to_owned());
    }
    lines
}

/// What ran instead of the culprit.
fn preempted(context: &Context, tally: &Tally, lines: &mut Vec<String>) {
    if tally.not_running <= 0.1 * tally.rank {
        return;
    }
    let share = 100.0 * (tally.not_running / tally.rank);
    lines.push(format!("for {share:.0} % of it, it was ready and had no CPU"));
    for (thread, time) in preempt::antagonists(context, tally).into_iter().take(3) {
        let (name, pid) = (context.thread_name(thread), context.pid(thread));
        let time = duration(context.limits.once(Nanos(time).amount()));
        lines.push(format!("meanwhile its CPU ran {name} (pid {pid}) for {time}"));
    }
}

/// Whether several threads of the culprit's process are called like the process.
fn shares_name(context: &Context, f: &Finding) -> bool {
    let threads = &context.trace.threads;
    let same =
        (0..threads.pid.len()).filter(|&i| threads.pid[i] == f.culprit.pid && threads.name[i] == threads.process[i]);
    same.take(3).count() > 2
}

fn advice(group: &Group, tally: &Tally, f: &Finding) -> String {
    // An address is no name to work with.
    let named = !f.culprit.function.is_empty() && !f.culprit.function.contains("+0x");
    let function = if named { &f.culprit.function } else { "this code" };
    match group {
        Group::Lock(_) if f.kind == FindingKind::Convoy => format!(
            "Take this lock less often: batch the work in {function}, partition what it protects, or admit fewer threads at a time."
        ),
        Group::Lock(_) | Group::Serial(_) if tally.starved => {
            "Let it run: undo its pinning or its low priority, give it a CPU of its own, or move its neighbour away."
                .to_owned()
        }
        Group::Lock(_) => {
            format!("Do the work of {function} before taking the lock, or let the lock go between parts of it.")
        }
        Group::Serial(_) if f.kind == FindingKind::Imbalance => {
            format!("Cut the work of {function} into smaller pieces, so that no thread is left with a long one.")
        }
        Group::Serial(_) => {
            format!("Spread {function} over threads, overlap it with the next phase, or make it shorter.")
        }
        Group::Disk(..) => {
            format!("Ask the disk less often in {function}: in batches, ahead of time, or without a lock.")
        }
        Group::Timer(..) => format!(
            "Wait for the event instead of sleeping in {function}: a condition variable, a futex or an eventfd."
        ),
        Group::Ready(_, why) => sched::advice(*why, f),
        Group::Outside(..) => format!(
            "See what {function} waits for: a client that keeps it waiting with a lock or a transaction open, or another host."
        ),
        Group::Idle(..) => {
            "There is nothing to mend, if there was no more work. If there was, say so: --work FUNCTION.".to_owned()
        }
    }
}
