//! Who ran instead of a thread that could have run.

use holdup_trace::{Amount, Nanos, StringId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::context::Context;
use super::sched;
use super::tally::{Group, Tally};
use crate::label::duration;

/// Share of the blame from which on an owner that does not run is the finding,
const STARVED: f64 = 0.6;
/// and the same where it may not run on all CPUs, and one was free meanwhile: two that may run on one each wait for half of it.
const KEPT_OUT: f64 = 0.4;

/// Who runs for less than this share of the time for which others wait for it does nothing that they could wait for.
const NEVER: f64 = 0.1;

/// Whether it had next to no CPU time, in all of the recording. O(n log n) in the finding's spans.
fn next_to_never_ran(context: &Context, tally: &Tally) -> bool {
    let ran: Nanos = tally.ends().keys().map(|thread| context.ran(*thread)).sum();
    ran.amount() < NEVER * context.spans(tally, |_| true).1.amount()
}

/// Whether what the waiters miss is mostly a CPU for the one they wait for. On a machine that is merely busy with
/// other programs everything starves, and that is not the finding: either a CPU was free that the owner did not
/// use, or its quota kept it from any, or it had next to none at all, or threads of the focus itself took its place for a third of the time.
pub(super) fn is_starved(context: &Context, tally: &Tally) -> bool {
    let free = tally.not_running_idle > 0.5 * tally.not_running;
    let kept_out = || free && sched::mask(context, tally).is_some();
    let least = if tally.not_running <= STARVED * tally.rank && kept_out() { KEPT_OUT } else { STARVED };
    if tally.not_running <= least * tally.rank {
        return false;
    }
    if free || next_to_never_ran(context, tally) || tally.is_stopped() || sched::is_throttled(context, tally) {
        return true;
    }
    let (mut own, mut all) = (0, 0);
    // Culprits take each other's place, too.
    for (thread, ns) in tally.by_thread.keys().flat_map(|culprit| context.blame.instead_of(*culprit)) {
        all += ns;
        own += if context.focus.contains(thread) { ns } else { 0 };
    }
    own * 3 > all
}

/// Who mostly ran instead of the culprits.
pub(super) enum Antagonist<'a> {
    /// Others of their program.
    Siblings,
    Program(&'a str),
}

/// Who mostly ran instead of the culprits; `None` where no program did most of it.
pub(super) fn antagonist<'a>(context: &'a Context, tally: &Tally) -> Option<Antagonist<'a>> {
    let mut programs: FxHashMap<StringId, u64> = FxHashMap::default();
    for (thread, ns) in tally.by_thread.keys().flat_map(|culprit| context.blame.instead_of(*culprit)) {
        *programs.entry(context.program(thread)).or_default() += ns;
    }
    let all: u64 = programs.values().sum();
    let (most, ns) = programs.into_iter().max_by_key(|&(program, ns)| (ns, program))?;
    let is_other = tally.by_thread.keys().all(|culprit| context.program(*culprit) != most);
    let found = if is_other { Antagonist::Program(context.trace.text(most)) } else { Antagonist::Siblings };
    (2 * ns > all).then_some(found)
}

/// For how long each thread ran on the CPU for which one of a finding's culprits was ready while others waited for it, in nanoseconds: the
/// most for any of them, as several may have been ready for one CPU at the same time.
fn instead(context: &Context, tally: &Tally) -> FxHashMap<ThreadIdx, u64> {
    let mut found: FxHashMap<ThreadIdx, u64> = FxHashMap::default();
    for (thread, ns) in tally.by_thread.keys().flat_map(|culprit| context.blame.instead_of(*culprit)) {
        let known = found.entry(thread).or_default();
        *known = ns.max(*known);
    }
    found
}

/// For how long a finding's culprits ran on CPUs for which others of them were ready, in nanoseconds of CPU time.
pub(super) fn by_each_other(context: &Context, tally: &Tally) -> u64 {
    instead(context, tally)
        .into_iter()
        .filter(|(thread, _)| tally.by_thread.contains_key(thread))
        .map(|(_, ns)| ns)
        .sum()
}

/// Who else ran on the CPUs for which a finding's culprits were ready, and for how long, in nanoseconds, the greatest first.
pub(super) fn antagonists(context: &Context, tally: &Tally) -> Vec<(ThreadIdx, u64)> {
    let mut found: Vec<_> =
        instead(context, tally).into_iter().filter(|(thread, _)| !tally.by_thread.contains_key(thread)).collect();
    found.sort_by_key(|&(thread, ns)| (std::cmp::Reverse(ns), thread));
    found
}

/// Whether most of its work was waiting for a CPU.
pub(super) fn lacks_cpu(tally: &Tally) -> bool {
    tally.not_running > 0.5 * tally.rank
}

/// The same in words, and who used that CPU.
pub(super) fn without_cpu(context: &Context, tally: &Tally) -> String {
    if !lacks_cpu(tally) {
        return String::new();
    }
    let used = match antagonist(context, tally) {
        Some(Antagonist::Program(name)) => format!(" while {name} ran"),
        Some(Antagonist::Siblings) if tally.by_thread.len() > 1 => " while others of them ran".to_owned(),
        _ => String::new(),
    };
    format!(", {:.0} % of it without a CPU{used}", 100.0 * (tally.not_running / tally.rank))
}

/// What ran instead of the culprit.
pub(super) fn describe(context: &Context, tally: &Tally, lines: &mut Vec<String>) {
    if tally.not_running <= 0.1 * tally.rank {
        return;
    }
    let share = |of: Amount| 100.0 * (of / tally.rank);
    if tally.stopped > Amount::ZERO {
        lines.push(format!("for {:.0} % of it, it was stopped by a signal, or frozen", share(tally.stopped)));
    }
    if tally.is_stopped() {
        return;
    }
    lines.push(format!("for {:.0} % of it, it was ready and had no CPU", share(tally.not_running - tally.stopped)));
    let taken = by_each_other(context, tally);
    if taken > 0 {
        let time = duration(context.limits.of_cpus(Nanos(taken).amount()));
        lines.push(format!("meanwhile its CPU ran others of these threads for {time}"));
    }
    for (thread, time) in antagonists(context, tally).into_iter().take(3) {
        let (name, pid) = (context.thread_name(thread), context.pid(thread));
        let time = duration(context.limits.once(Nanos(time).amount()));
        lines.push(format!("meanwhile its CPU ran {name} (pid {pid}) for {time}"));
    }
    lines.extend(sched::constraints(context, tally));
}

/// What to do where whoever others wait for is ready, or stopped, and does not run.
pub(super) fn advice(context: &Context, group: &Group, tally: &Tally) -> String {
    if tally.is_stopped() {
        return "Find who stops it and why, and let it go on: a signal (kill -STOP, Ctrl-Z), a debugger, a control group that was frozen \
                (docker pause)."
            .to_owned();
    }
    let inherit = if group.is_lock() { " (for a lock, PTHREAD_PRIO_INHERIT)" } else { "" };
    if sched::mask(context, tally).is_some() {
        return "Let it run on more CPUs: undo its pinning (taskset, sched_setaffinity, a cpuset).".to_owned();
    }
    match antagonist(context, tally) {
        Some(Antagonist::Siblings) => format!(
            "Let no more threads of its program be ready at a time than there are CPUs, or give it a higher priority than the others{inherit}."
        ),
        Some(Antagonist::Program(name)) => {
            format!("Give it a higher priority than {name} (nice){inherit}, or keep {name} away from a CPU of its own.")
        }
        None => format!(
            "Let it run: undo its low priority{inherit}, give it a CPU of its own, or move its neighbours away."
        ),
    }
}
