//! Threads that could run and did not: on their way to an idle CPU, kept from one, or without one.

use holdup_trace::{Amount, Nanos, StringId, ThreadIdx};

use rustc_hash::{FxHashMap, FxHashSet};

use super::context::Context;
use super::tally::{Group, Tally, Why};
use super::{names, place};
use crate::blame::{Cell, Key, Latency, Terminal};
use crate::focus;
use crate::label::{self, duration};
use crate::report::{Finding, FindingKind, Waiters};

/// A CPU that is idle for longer than this while a thread is to run on it does not merely wake up slowly.
const SLOW_WAKE: Nanos = Nanos(5_000_000);
/// No idle CPU takes longer to take up a thread that may run on it.
const SLOWEST_WAKE: Nanos = Nanos(100_000_000);
/// Neighbours that are named.
const NAMED: usize = 3;

/// Below this share, what is left out is not said.
const PART: f64 = 0.05;

/// The share of its threads' time without a CPU from which on a group's quota is what kept them.
const REACHED: f64 = 0.5;

/// Control groups whose threads were kept from running by their quota.
pub(super) struct Throttled(FxHashSet<StringId>);

impl Throttled {
    /// Those that were throttled for most of the time that their threads were ready and did not run. O(cells).
    pub(super) fn new(context: &Context) -> Self {
        let mut ready: FxHashMap<StringId, u64> = FxHashMap::default();
        for (key, cell) in &context.blame.cells {
            if matches!(key.terminal, Terminal::Stalled | Terminal::Misplaced | Terminal::Starved)
                && let Some(group) = group(context, key.thread)
            {
                *ready.entry(group).or_default() += cell.thread_ns;
            }
        }
        let reached = |(group, ns): &(StringId, u64)| {
            let quota = context.timeline.quotas.throttled(context.trace, *group);
            quota.is_some_and(|q| f64::from(q.throttled_us) * 1e3 >= REACHED * *ns as f64)
        };
        Throttled(ready.into_iter().filter(reached).map(|(group, _)| group).collect())
    }

    /// Whether the thread's group is one of them.
    pub(super) fn contains(&self, context: &Context, key: &Key) -> bool {
        group(context, key.thread).is_some_and(|group| self.0.contains(&group))
    }
}

fn group(context: &Context, thread: ThreadIdx) -> Option<StringId> {
    context.timeline.affinity.priority(thread).map(|p| p.group)
}

/// The quota that kept the thread, in words.
fn quota(context: &Context, thread: ThreadIdx) -> Option<String> {
    let group = group(context, thread)?;
    let quota = context.timeline.quotas.throttled(context.trace, group)?;
    let cpus = f64::from(quota.quota_us) / f64::from(quota.period_us.max(1));
    let name = context.trace.text(quota.group);
    let lost = duration(f64::from(quota.throttled_us) * 1e-6);
    let (throttled, periods) = (label::count(quota.throttled.into()), label::count(quota.periods.into()));
    Some(format!(
        "its control group {name} may use {cpus:.2} CPUs, and was throttled in {throttled} of {periods} periods, for {lost} in all"
    ))
}

/// Whether a quota is what kept the first of the threads from running, for most of the time that others waited for it meanwhile.
pub(super) fn is_throttled(context: &Context, tally: &Tally) -> bool {
    let quota = group(context, first(tally)).and_then(|g| context.timeline.quotas.throttled(context.trace, g));
    quota.is_some_and(|q| f64::from(q.throttled_us) * 1e3 >= REACHED * tally.not_running.0)
}

/// The policy that gets what others leave.
const IDLE: u8 = 5;

/// Whether threads of this policy run before those of the usual ones.
fn is_real_time(policy: u8) -> bool {
    matches!(policy, 1 | 2 | 6)
}

/// Nice value and policy in words, if they are not the usual ones.
fn priority(context: &Context, thread: ThreadIdx) -> Option<String> {
    let p = context.timeline.affinity.priority(thread)?;
    match p.policy {
        policy if is_real_time(policy) => Some("real-time priority".to_owned()),
        IDLE => Some("the policy for idle times".to_owned()),
        _ => (p.nice != 0).then(|| format!("nice {}", p.nice)),
    }
}

/// The thread with the most blame.
fn first(tally: &Tally) -> ThreadIdx {
    let most = tally.ends().iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
    most.map_or(ThreadIdx::NONE, |(thread, _)| *thread)
}

/// The CPUs to which the first of the threads is restricted, if it is.
pub(super) fn mask<'a>(context: &'a Context, tally: &Tally) -> Option<&'a str> {
    context.timeline.affinity.restricted(first(tally))
}

/// What is known to keep the first of the threads from CPUs: its mask, its quota, its priority.
pub(super) fn constraints(context: &Context, tally: &Tally) -> Vec<String> {
    let thread = first(tally);
    let mask = context.timeline.affinity.restricted(thread).map(|cpus| format!("it may run on CPU {cpus} alone"));
    let low = priority(context, thread).map(|words| format!("it has {words}"));
    [mask, low, quota(context, thread)].into_iter().flatten().collect()
}

/// Whether the thread's own CPU is said to have stood idle for it for so long, without a quota, that the event with which it came or
/// went must be missing.
pub(super) fn is_incredible(context: &Context, group: &Group, cell: &Cell) -> bool {
    let stalled = matches!(group, Group::Ready(_, Why::Stalled)) && context.timeline.affinity.is_known();
    stalled && cell.longest_ns > SLOWEST_WAKE.0
}

/// What kind of finding it is.
pub(super) fn kind(context: &Context, why: Why, tally: &Tally) -> FindingKind {
    match why {
        // Where quotas are known, it is none: the CPU was slow to wake up.
        Why::Stalled if context.timeline.affinity.is_known() => FindingKind::WakeLatency,
        Why::Throttled => FindingKind::Throttled,
        Why::Waking | Why::Turn => FindingKind::WakeLatency,
        Why::Stalled if tally.waited.0 < SLOW_WAKE.0.saturating_mul(tally.waits.max(1)) => FindingKind::WakeLatency,
        Why::Stalled => FindingKind::Throttled,
        Why::Misplaced | Why::Barred => FindingKind::RunnableWhileIdle,
        Why::Starved => FindingKind::CpuStarved,
    }
}

/// How long the program's threads were on their way to idle CPUs, unless others waited longer for one of them.
fn own_latency<'a>(context: &'a Context, program: StringId, tally: &Tally) -> Option<&'a Latency> {
    context.blame.latencies.get(&program).filter(|l| 2 * l.total.0 >= tally.waited.0)
}

/// Who was ready, how often and how long.
pub(super) fn waiters(context: &Context, program: StringId, why: Why, tally: &Tally) -> Waiters {
    let latency = (why == Why::Waking).then(|| own_latency(context, program, tally)).flatten();
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
    if let Some(at) = place::place(context, tally.common_stack(context.classifier)) {
        waiters.function = context.trace.text(at.function).to_owned();
        waiters.source = context.source(&at);
    }
    waiters
}

/// The threads of one program that used CPUs for which threads of the focus were ready.
pub(super) struct Neighbour {
    /// The one that used most.
    pub(super) thread: ThreadIdx,
    most: f64,
    /// Its program's share of all that.
    share: f64,
    threads: usize,
}

/// Who used the CPUs for which threads of the focus were ready, the greatest first.
fn neighbours(context: &Context) -> Vec<Neighbour> {
    let all: f64 = context.blame.neighbours.iter().map(|(_, ns)| ns).sum();
    let mut programs: FxHashMap<StringId, Neighbour> = FxHashMap::default();
    for &(thread, ns) in &context.blame.neighbours {
        let none = Neighbour { thread, most: 0.0, share: 0.0, threads: 0 };
        let known = programs.entry(context.program(thread)).or_insert(none);
        if ns > known.most {
            (known.thread, known.most) = (thread, ns);
        }
        known.share += ns / all.max(f64::MIN_POSITIVE);
        known.threads += 1;
    }
    let mut found: Vec<Neighbour> = programs.into_values().collect();
    found.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.thread.cmp(&b.thread)));
    found
}

/// Those of them that are neither clients nor servers of `program`.
pub(super) fn strangers(context: &Context, program: StringId) -> Vec<Neighbour> {
    let mut found = neighbours(context);
    found.retain(|n| !is_partner(context, program, n));
    found
}

fn is_partner(context: &Context, program: StringId, neighbour: &Neighbour) -> bool {
    context.learned.fed.is_partner(program, context.program(neighbour.thread))
}

/// The share in that of those whom `program` would not be rid of, or is in any case: its client or server, and the recorder.
pub(super) fn share_left_out(context: &Context, program: StringId) -> f64 {
    let is_left_out = |n: &&Neighbour| is_partner(context, program, n) || is_recorder(context, n);
    neighbours(context).iter().filter(is_left_out).map(|n| n.share).sum()
}

fn is_recorder(context: &Context, neighbour: &Neighbour) -> bool {
    focus::is_recorder(context.trace, context.pid(neighbour.thread))
}

/// The greatest by name; those that are needed for half of it.
fn neighbours_in_words(context: &Context, program: StringId) -> String {
    let all = strangers(context, program);
    let name = |n: &Neighbour| match context.trace.text(context.program(n.thread)) {
        _ if is_recorder(context, n) => "the recorder (holdup)".to_owned(),
        name => name.to_owned(),
    };
    match all.as_slice() {
        [] => "other programs".to_owned(),
        [one] => name(one),
        [one, ..] if one.share > 0.9 => name(one),
        [one, ..] if one.share > 0.5 => format!("{} and others", name(one)),
        [one, two] => format!("{} and {}", name(one), name(two)),
        [one, two, ..] => format!("{}, {} and others", name(one), name(two)),
    }
}

/// One sentence.
pub(super) fn title(context: &Context, program: StringId, why: Why, tally: &Tally, f: &Finding) -> String {
    let (who, w) = (context.trace.text(program), &f.waiters);
    let all = duration(w.total_s);
    match why {
        Why::Waking if own_latency(context, program, tally).is_none() => {
            format!("threads waited for one of {who} that was on its way to an idle CPU: {all} in all")
        }
        Why::Waking => {
            let half = quantile(context, program, 0.5).filter(|half| *half >= 0.1 * w.mean_s);
            let each = duration(half.unwrap_or(w.mean_s));
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
        Why::Throttled => {
            format!("{who} was ready for {all} and not let run: the quota of its control group was used up")
        }
        Why::Barred => {
            let mask = context.timeline.affinity.restricted(first(tally)).unwrap_or("others");
            format!("{who} may run on CPU {mask} alone, and was ready for {all} while its program did not use another")
        }
        Why::Starved => {
            let missed = duration(f.blame_cpu_s);
            format!(
                "{who} was ready and missed {missed} of CPU time that {} used",
                neighbours_in_words(context, program)
            )
        }
    }
}

/// What it rests on.
pub(super) fn evidence(context: &Context, program: StringId, why: Why, tally: &Tally, f: &Finding) -> Vec<String> {
    let w = &f.waiters;
    if why == Why::Waking && own_latency(context, program, tally).is_none() {
        // Of programs that are not in focus nobody counts how often they are woken.
        return vec![format!("{} in all, {} at most", duration(w.total_s), duration(w.max_s))];
    }
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
        for Neighbour { thread, share, threads, .. } in strangers(context, program).into_iter().take(NAMED) {
            let (name, pid) = (context.trace.text(context.program(thread)), context.pid(thread));
            let who =
                if threads == 1 { format!("pid {pid}") } else { format!("{threads} threads, most of it pid {pid}") };
            let priority = priority(context, thread).map_or(String::new(), |words| format!(", with {words}"));
            let share = 100.0 * share;
            lines.push(format!("{share:.0} % of that, {name} ({who}) ran, which is not of the program{priority}"));
        }
    }
    if tally.wasted.0 >= PART * tally.rank.0 {
        let wasted = duration(context.limits.of_cpus(tally.wasted));
        lines.push(format!(
            "another {wasted} is left out: they only waited in loops or for a cache line, or their client, their server or the recorder used \
             the CPUs"
        ));
    }
    if !matches!(why, Why::Waking | Why::Turn) {
        lines.extend(constraints(context, tally));
    }
    lines
}

/// What to do about a quota.
pub(super) const QUOTA: &str = "Raise the quota of its control group (cpu.max), or use fewer threads than it has CPUs.";

/// What to do.
pub(super) fn advice(context: &Context, program: StringId, why: Why, tally: &Tally, f: &Finding) -> String {
    if why == Why::Starved
        && let Some(advice) = by_policy(context, program, tally, &f.culprit.process)
    {
        return advice;
    }
    match why {
        _ if f.kind == FindingKind::WakeLatency => {
            "Hand over less often (batch, pipeline), look for work a moment longer before sleeping (busy polling), keep both \
             sides on one CPU, or keep idle CPUs from sleeping deeply (idle governor, C-states)."
        }
        Why::Waking | Why::Turn | Why::Stalled | Why::Throttled => QUOTA,
        Why::Misplaced => "The scheduler put them behind others: look at affinity masks, cpusets and priorities.",
        Why::Barred => "Widen the affinity mask (taskset, sched_setaffinity, cpuset): CPUs were free.",
        Why::Starved => "Move one of the two elsewhere, give the other a lower priority (nice, cpu.weight), or add CPUs.",
    }
    .to_owned()
}

/// What to do where the policies of scheduling decide who runs, and no share of the CPU's time does. `neighbour` is its name.
fn by_policy(context: &Context, program: StringId, tally: &Tally, neighbour: &str) -> Option<String> {
    let policy = |thread| context.timeline.affinity.priority(thread).map(|p| p.policy);
    let first_of = strangers(context, program).first().and_then(|n| policy(n.thread));
    if first_of.is_some_and(is_real_time) {
        return Some(format!(
            "{neighbour} has real-time priority: others run when it sleeps, whatever their nice value. Give it the usual policy (chrt --other 0), \
             or keep it to CPUs of its own (taskset, cpuset)."
        ));
    }
    let is_last = policy(first(tally)) == Some(IDLE);
    is_last.then(|| {
        format!(
            "{} has the policy for idle times, and gets what others leave: give it the usual one (chrt --other 0), if it is to go on beside them.",
            context.trace.text(program)
        )
    })
}

/// What makes it a guess.
pub(super) fn doubt(context: &Context, why: Why) -> Option<&'static str> {
    match why {
        Why::Stalled if !context.timeline.affinity.is_known() => {
            Some("this trace tells nothing of quotas: it may also be a host that gave this CPU to others")
        }
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
