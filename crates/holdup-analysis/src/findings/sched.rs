//! Threads that could run and did not: on their way to an idle CPU, kept from one, or without one.

use holdup_trace::{Amount, Nanos, StringId, ThreadIdx};

use super::context::Context;
use super::tally::{Tally, Why};
use super::{names, place};
use crate::label::{self, duration};
use crate::report::{Finding, FindingKind, Waiters};

/// A CPU that is idle for longer than this while a thread is to run on it does not merely wake up slowly.
const SLOW_WAKE: Nanos = Nanos(5_000_000);
/// Neighbours that are named.
const NAMED: usize = 3;

/// What kind of finding it is.
pub(super) fn kind(why: Why, tally: &Tally) -> FindingKind {
    match why {
        Why::Waking | Why::Turn => FindingKind::WakeLatency,
        Why::Stalled if tally.waited.0 < SLOW_WAKE.0.saturating_mul(tally.waits.max(1)) => FindingKind::WakeLatency,
        Why::Stalled => FindingKind::Throttled,
        Why::Misplaced | Why::Barred => FindingKind::RunnableWhileIdle,
        Why::Starved => FindingKind::CpuStarved,
    }
}

/// Who was ready, how often and how long.
pub(super) fn waiters(context: &Context, program: StringId, why: Why, tally: &Tally) -> Waiters {
    let latency = context.blame.latencies.get(&program).filter(|_| why == Why::Waking);
    let (waits, total, longest) = match latency {
        Some(l) => (l.count, l.total, l.longest),
        None => (tally.waits, tally.waited, tally.longest),
    };
    let mut threads: Vec<ThreadIdx> = tally.by_thread.keys().copied().collect();
    threads.sort_unstable();
    let mut waiters = Waiters {
        threads: threads.len(),
        waits,
        total_s: context.limits.of_threads(total.amount(), threads.len()),
        mean_s: context.limits.once(total.amount() / waits.max(1) as f64),
        max_s: context.limits.once(longest.amount()),
        names: names::grouped(threads.iter().map(|t| context.thread_name(*t))),
        ..Waiters::default()
    };
    if let Some(at) = place::place(context, tally.common_stack()) {
        waiters.function = context.trace.text(at.function).to_owned();
        waiters.source = context.source(&at);
    }
    waiters
}

/// Who used the CPUs for which threads of the focus were ready, and their shares of it; the greatest first.
pub(super) fn neighbours(context: &Context) -> Vec<(ThreadIdx, f64)> {
    let mut found = context.blame.neighbours.clone();
    let all: f64 = found.iter().map(|(_, ns)| ns).sum();
    found.iter_mut().for_each(|(_, ns)| *ns /= all.max(f64::MIN_POSITIVE));
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    found
}

/// One sentence.
pub(super) fn title(context: &Context, program: StringId, why: Why, f: &Finding) -> String {
    let (who, w) = (context.trace.text(program), &f.waiters);
    let all = duration(w.total_s);
    match why {
        Why::Waking => {
            let each = duration(quantile(context, program, 0.5).unwrap_or(w.mean_s));
            format!(
                "{who} was woken {} for a CPU that stood idle, and each time it took {each} until it ran",
                times(w.waits)
            )
        }
        Why::Turn => {
            let (times, each) = (times(w.waits), duration(w.mean_s));
            format!("{who} stood {times} behind another on its CPU for {each} each, while another CPU stood idle")
        }
        Why::Stalled if f.kind == FindingKind::WakeLatency => {
            format!(
                "CPUs that stood idle were slow to take up what {who} had for them: {all} in all, up to {}",
                duration(w.max_s)
            )
        }
        Why::Stalled => format!("{who} was ready for {all} and not let run, while the CPU it was on stood idle"),
        Why::Misplaced => format!("{who} was ready for {all} behind others, while another CPU stood idle"),
        Why::Barred => format!("{who} was ready for {all} and may not run on the CPUs that stood idle"),
        Why::Starved => {
            let by = if f.culprit.process.is_empty() { "other programs" } else { &f.culprit.process };
            format!("{who} was ready for {all} while {by} used the CPUs")
        }
    }
}

/// What it rests on.
pub(super) fn evidence(context: &Context, program: StringId, why: Why, f: &Finding) -> Vec<String> {
    let w = &f.waiters;
    let what = if why == Why::Waking { "wake-ups for an idle CPU" } else { "stretches of being ready" };
    let mut lines = vec![format!(
        "{} {what}: {} in all, {} on average, {} at most",
        label::count(w.waits),
        duration(w.total_s),
        duration(w.mean_s),
        duration(w.max_s)
    )];
    if let (Why::Waking, Some(half), Some(most)) =
        (why, quantile(context, program, 0.5), quantile(context, program, 0.99))
    {
        lines.push(format!("half of them took no more than {}, 99 % no more than {}", duration(half), duration(most)));
    }
    if why == Why::Starved {
        for (thread, share) in neighbours(context).into_iter().take(NAMED) {
            let (name, pid) = (context.thread_name(thread), context.pid(thread));
            lines.push(format!("{:.0} % of that, {name} (pid {pid}) ran, which is not of the program", 100.0 * share));
        }
    }
    lines
}

/// What to do.
pub(super) fn advice(why: Why, f: &Finding) -> String {
    match why {
        _ if f.kind == FindingKind::WakeLatency => {
            "Hand over less often (batch, pipeline), look for work a moment longer before sleeping (busy polling), keep both \
             sides on one CPU, or keep idle CPUs from sleeping deeply (idle governor, C-states)."
        }
        Why::Waking | Why::Turn | Why::Stalled => "Raise the quota of its control group (cpu.max), or use fewer threads than it has CPUs.",
        Why::Misplaced => "The scheduler put them behind others: look at affinity masks, cpusets and priorities.",
        Why::Barred => "Widen the affinity mask (taskset, sched_setaffinity, cpuset): CPUs were free.",
        Why::Starved => "Move one of the two elsewhere, give the other a lower priority (nice, cpu.weight), or add CPUs.",
    }
    .to_owned()
}

/// What makes it a guess.
pub(super) fn doubt(context: &Context, why: Why) -> Option<&'static str> {
    match why {
        Why::Stalled => Some("this trace tells nothing of quotas: it may also be a host that gave this CPU to others"),
        Why::Misplaced if !context.timeline.affinity.is_known() => {
            Some("this trace tells nothing of affinity masks and quotas: either may have kept them from the idle CPUs")
        }
        _ => None,
    }
}

/// In seconds.
fn quantile(context: &Context, program: StringId, share: f64) -> Option<f64> {
    let latency = context.blame.latencies.get(&program)?;
    Some(context.limits.once(Amount(latency.quantile(share).0 as f64)))
}

fn times(n: u64) -> String {
    if n == 1 { "once".to_owned() } else { format!("{} times", label::count(n)) }
}
