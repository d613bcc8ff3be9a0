//! What a finding rests on, line by line.

use holdup_trace::LockKind;

use super::super::context::Context;
use super::super::tally::{Group, Tally};
use super::super::words::times;
use super::super::{collection, preempt, sched};
use crate::label::{duration, threads};
use crate::report::{Finding, FindingKind};

/// Share of the samples from which on an instruction is worth a line.
const TELLING: f64 = 0.05;

/// All that there is to say.
pub(super) fn lines(context: &Context, group: &Group, tally: &Tally, f: &Finding) -> Vec<String> {
    let w = &f.waiters;
    let mut lines = Vec::new();
    if let Group::Ready(program, why) = group {
        return sched::evidence(context, *program, *why, tally, f);
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
        lines.push(format!("{} spent {} here", threads(w.threads), duration(w.total_s)));
        lines.push("what they waited for is their own timer, input from outside, or nobody".to_owned());
    }
    if let Some(l) = f.lock.as_ref().filter(|l| !l.address.is_empty()) {
        let kind = match l.kind {
            LockKind::File => "that of a file, ",
            LockKind::Other | LockKind::Unknown => "",
            kind => &format!("the {} ", kind.name()),
        };
        lines.push(format!("the lock is {kind}at {}", l.address));
    }
    if let Some(i) = f.culprit.instruction.as_ref().filter(|i| !i.text.is_empty() && i.share >= TELLING) {
        lines.push(format!("{:.0} % of the samples are at {} `{}`", 100.0 * i.share, i.address, i.text));
    }
    if tally.handoff > 0.05 * tally.rank {
        let share = 100.0 * (tally.handoff / tally.rank);
        lines.push(format!("{share:.0} % of it is handing over: woken for the lock and not yet running"));
    }
    for (part, what) in [(tally.outside, "waited for its client or other input from outside"), (tally.slept, "slept")] {
        if group.is_lock() && part > 0.05 * tally.rank {
            lines.push(format!("for {:.0} % of it, whoever had the lock {what}", 100.0 * (part / tally.rank)));
        }
    }
    if tally.overhead > 0.05 * tally.rank {
        let spent = duration(context.limits.of_cpus(tally.overhead));
        lines.push(format!("{spent} of CPU time went into the lock's own system calls"));
    }
    if f.kind == FindingKind::Gc {
        lines.extend(collection::evidence(context, tally));
    }
    preempt::describe(context, tally, &mut lines);
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
