//! Threads that take turns, and messages that the network held back: findings about two at a time, the same from either side.

mod held_back;
mod words;

pub(super) use held_back::no_delay;

use holdup_trace::{Amount, Nanos, StackId, StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::context::Context;
use super::tally::{Group, Tally, Why};
use super::{culprit, names, place};
use crate::classify::WaitKind;
use crate::report::{About, Confidence, Culprit, Finding, FindingKind, Waiters};
use crate::turns::{Pair, Trips};

/// Whoever takes turns for less of the time than this is not worth a finding.
const SMALLEST_SHARE: f64 = 0.02;
/// Who does less than this share of both sides' work takes no turn.
const LEAST_TURN: f64 = 0.1;
/// Round trips that leave no doubt.
const MANY: u64 = 100;
/// Who takes turns in less of the time in which both live may wait for something that matters more in the rest.
const MOST_OF_IT: f64 = 0.5;

/// Pairs of like threads, the first of each of one program, the second of another.
#[derive(Debug, Default)]
struct Pairs {
    /// The threads on either side.
    sides: [Vec<ThreadIdx>; 2],
    /// Those round trips that are known from end to end.
    trips: Trips,
    /// Where those on either side wait.
    stacks: [StackId; 2],
    /// How long both lived, all pairs together, in nanoseconds.
    together: f64,
    /// How many round trips, and how long they took, all together and those of the pair with the longest; in nanoseconds.
    count: u64,
    length: u64,
    longest: u64,
    /// Whether a few long waits are most of it, so that an average says nothing.
    uneven: bool,
}

/// Makes findings of pairs that take turns, and takes out of `groups` what is told of them there. Then how much of their CPU time was
/// charged to nobody.
pub(super) fn take(context: &Context, groups: &mut Vec<(Group, Tally)>, charged: Amount) -> (Vec<Finding>, Amount) {
    let held_back = held_back::findings(context);
    let (mut findings, mut uncharged) = (Vec::new(), Amount::ZERO);
    let told: FxHashSet<ThreadIdx> = held_back.iter().flat_map(|(threads, ..)| threads.iter().copied()).collect();
    let share = |taken: Amount| if charged > Amount::ZERO { f64::min(taken / charged, 1.0) } else { 0.0 };
    for pairs in merged(context, &told) {
        if pairs.are_unequal(context) {
            continue;
        }
        let threads = pairs.sides.concat();
        // What goes by until the other one's CPU wakes up is told as a part of each round trip; if it is most of it, as a finding of its own.
        let waking = Parts::of(context, &pairs).is_mostly_waking();
        let told = Told { waking: !waking, outside: false };
        let (taken, about) = take_groups(groups, &threads, pairs.length, told);
        let could_run = could_run(context, pairs.length).0.min(left_by_others(context, groups, &threads).0);
        let rest = could_run - waking_of(groups, &threads).0;
        uncharged += Amount((rest - taken.0 - charged_to(groups, &threads).0).max(0.0));
        let blame_cpu_s = context.limits.of_cpus(Amount(rest.max(taken.0)));
        let about = About { is_uneven: pairs.uneven, ..about };
        findings.push(Finding { share_of_held_up: share(taken), blame_cpu_s, about, ..finding(context, &pairs) });
    }
    for (threads, ns, finding) in held_back {
        let (taken, about) = take_groups(groups, &threads, ns, Told { waking: false, outside: true });
        // While others are held up by something else, as by a lock that all need, nothing is lost by it.
        let lost = could_run(context, ns).0.min(context.blame.cpu.no_work + taken.0);
        uncharged += Amount((lost - taken.0).max(0.0));
        let blame_cpu_s = context.limits.of_cpus(Amount(lost));
        findings.push(Finding { share_of_held_up: share(taken), blame_cpu_s, about, ..finding });
    }
    (findings, uncharged)
}

/// Pairs of which one at least is in focus, those of like programs together; without the threads in `told`.
fn merged(context: &Context, told: &FxHashSet<ThreadIdx>) -> Vec<Pairs> {
    let process = |t: ThreadIdx| context.trace.threads.process.get(t.index()).copied().unwrap_or_default();
    let mut merged: FxHashMap<[(StringId, StringId); 2], Pairs> = FxHashMap::default();
    for pair in context.learned.turns.pairs() {
        let seen = pair.threads.iter().any(|t| context.focus.contains(*t));
        let small = (pair.length() as f64) < SMALLEST_SHARE * context.duration().0;
        // Threads of a scheduler that have no task at the moment: which of them works says nothing. At a barrier nobody asks.
        let facts = |stack| context.classifier.facts(stack);
        let is_none = |stack| facts(stack).parked || facts(stack).gathers;
        let stacks = [pair.trips.stack, pair.back.stack];
        let asks = |stack| !facts(stack).kind.is_some_and(WaitKind::is_for_turn);
        let none =
            stacks.into_iter().all(is_none) || !stacks.into_iter().any(asks) && do_the_same(context, pair.threads);
        // A thread that is there for its runtime alone, as to collect garbage, is asked for nothing that could be asked for in advance.
        let of_runtime = pair.threads.iter().any(|t| context.classifier.role(*t).is_some());
        if !seen || small || none || of_runtime || pair.threads.iter().any(|t| told.contains(t)) {
            continue;
        }
        let like = |t: ThreadIdx| (process(t), context.trace.threads.name.get(t.index()).copied().unwrap_or_default());
        // The same order for all: by name.
        let [one, other] = pair.threads;
        let pair = if like(other) < like(one) { pair.turned() } else { pair };
        merged.entry(pair.threads.map(like)).or_default().add(&pair, together(context, &pair.threads));
    }
    let mut merged: Vec<_> = merged.into_iter().collect();
    merged.sort_unstable_by_key(|(programs, pairs)| (std::cmp::Reverse(pairs.length), *programs));
    merged.into_iter().map(|(_, pairs)| pairs).collect()
}

/// Whether both, of one process, mostly run the same function: it never runs twice at once, and it says nothing which of them does.
fn do_the_same(context: &Context, threads: [ThreadIdx; 2]) -> bool {
    let [one, other] = threads.map(|thread| context.pid(thread));
    let [a, b] = threads.map(|thread| culprit::specific(context, &context.samples_of([thread])));
    one == other && a.zip(b).is_some_and(|(a, b)| a.function == b.function)
}

/// How long all of these threads lived within what is looked at, in nanoseconds.
fn together(context: &Context, threads: &[ThreadIdx]) -> f64 {
    let (mut from, mut to) = context.blame.window;
    for row in threads.iter().filter_map(|t| context.trace.thread(*t)) {
        (from, to) = (from.max(row.start.nanos()), to.min(row.end.nanos()));
    }
    to.saturating_sub(from) as f64
}

impl Pairs {
    /// Whether they are threads of one process of which one does nearly all: the other waits for it, be it at a barrier or
    /// for its part, and takes no turns.
    fn are_unequal(&self, context: &Context) -> bool {
        let [one, other] = self.sides.each_ref().map(|side| side.first().map(|t| context.pid(*t)));
        let work = Parts::of(context, self).work;
        one == other && work[0].min(work[1]) < LEAST_TURN * (work[0] + work[1])
    }

    fn add(&mut self, pair: &Pair, together: f64) {
        self.together += together;
        self.sides.iter_mut().zip(pair.threads).for_each(|(side, thread)| side.push(thread));
        if pair.length() > self.longest {
            (self.longest, self.stacks) = (pair.length(), [pair.trips.stack, pair.back.stack]);
        }
        self.uneven |= pair.is_uneven();
        self.length += pair.length();
        self.count += pair.count();
        self.trips.absorb(&pair.trips);
    }
}

/// What else is told of some threads by the finding that is about them.
#[derive(Clone, Copy)]
struct Told {
    /// Their waking up.
    waking: bool,
    /// That they waited for input from outside, if they hardly did so for longer.
    outside: bool,
}

/// Who waits for this many times as long waits for something else, too.
const LONGER: f64 = 1.25;

/// Takes out what is about these threads alone, who spent `ns` so, and returns what was charged there.
fn take_groups(groups: &mut Vec<(Group, Tally)>, threads: &[ThreadIdx], ns: u64, of: Told) -> (Amount, About) {
    let inside = |t: &ThreadIdx| threads.contains(t);
    let about = |(group, tally): &(Group, Tally)| {
        let told = match group {
            // Others may wait for what the two do together, such as the shell that started one of them.
            Group::Serial(_) => true,
            _ if is_waking(group) => of.waking,
            Group::Outside(..) => {
                of.outside && tally.threads.iter().all(inside) && tally.waited.amount().0 <= LONGER * ns as f64
            }
            // To wait for the other is not to have nothing to do.
            Group::Idle(..) => tally.waited.0 <= ns.saturating_mul(2) && tally.threads.iter().all(inside),
            _ => false,
        };
        told && tally.by_thread.keys().all(inside)
    };
    let rank = groups.iter().filter(|g| about(g)).map(|(_, tally)| tally.rank).sum();
    let taken =
        groups.extract_if(.., |g| about(g)).flat_map(|(_, tally)| tally.subjects().copied().collect::<Vec<_>>());
    let mut subjects: Vec<_> = taken.collect();
    subjects.sort_unstable();
    (rank, About { subjects, culprits: threads.to_vec(), waiters: threads.to_vec(), ..About::default() })
}

fn is_waking(group: &Group) -> bool {
    matches!(group, Group::Ready(_, Why::Waking | Why::Turn))
}

/// What is charged to these threads, their waking up left out.
fn charged_to(groups: &[(Group, Tally)], threads: &[ThreadIdx]) -> Amount {
    let charged = groups.iter().filter(|(group, _)| group.holds_up() && !is_waking(group));
    charged.flat_map(|(_, tally)| threads.iter().filter_map(|t| tally.by_thread.get(t))).map(|ns| Amount(*ns)).sum()
}

/// The CPU time that nothing of the focus ran, less what is charged to others than these threads.
fn left_by_others(context: &Context, groups: &[(Group, Tally)], threads: &[ThreadIdx]) -> Amount {
    let cpu = &context.blame.cpu;
    let charged = groups.iter().filter(|(group, _)| group.holds_up()).flat_map(|(_, tally)| &tally.by_thread);
    let to_others: f64 = charged.filter(|(thread, _)| !threads.contains(thread)).map(|(_, ns)| ns).sum();
    Amount((cpu.total - cpu.running - to_others).max(0.0))
}

/// What is charged to the waking up of these threads.
fn waking_of(groups: &[(Group, Tally)], threads: &[ThreadIdx]) -> Amount {
    let about = |g: &&(Group, Tally)| is_waking(&g.0) && g.1.by_thread.keys().all(|t| threads.contains(t));
    groups.iter().filter(about).map(|(_, tally)| tally.blame()).sum()
}

/// What a round trip consists of, as shares of it.
struct Parts {
    /// The work of either side.
    work: [f64; 2],
    /// Being woken and not yet running.
    waking: f64,
    /// Which side works longer.
    main: usize,
}

impl Parts {
    /// By the CPU time of either side, as far as all of the trace is explained; else by the round trips known from end to end,
    /// in which a thread that others keep from running counts as working.
    fn of(context: &Context, pairs: &Pairs) -> Self {
        let Pairs { trips, sides, .. } = pairs;
        let known = [trips.own, trips.other].map(|ns| ns as f64 / trips.length().max(1) as f64);
        let whole = context.blame.window == (0, context.timeline.end);
        let ran = sides
            .each_ref()
            .map(|side| side.iter().map(|t| context.ran(*t)).sum::<Nanos>().0 as f64 / pairs.length.max(1) as f64);
        let work = if whole && ran[0] + ran[1] <= 1.0 { ran } else { known };
        Parts { work, waking: (1.0 - work[0] - work[1]).max(0.0), main: usize::from(work[1] > work[0]) }
    }

    fn is_mostly_waking(&self) -> bool {
        self.waking > 0.5
    }
}

fn finding(context: &Context, pairs: &Pairs) -> Finding {
    let trips = &pairs.trips;
    let parts = Parts::of(context, pairs);
    let who = culprit_of(context, &pairs.sides[parts.main]);
    let waits = waiters(context, pairs, &parts, 1 - parts.main);
    let share = pairs.length as f64 / pairs.together.max(1.0);
    let (confidence, doubts) = match () {
        () if share < MOST_OF_IT => (
            Confidence::Low,
            vec![format!(
                "that is {:.0} % of the time in which both live: what they wait for in the rest may matter more",
                100.0 * share
            )],
        ),
        () if pairs.count < MANY => (Confidence::Medium, vec![format!("{} round trips are few", pairs.count)]),
        () => (Confidence::High, Vec::new()),
    };
    let mut finding = Finding {
        kind: FindingKind::Serial,
        culprit: who,
        wait_stack: context.stack_text(pairs.stacks[1 - parts.main]),
        waiters: waits,
        lasted_s: context.limits.once(Nanos(pairs.longest).amount()),
        windows: vec![[trips.from, trips.to].map(|t| Nanos(t).seconds())],
        confidence,
        doubts,
        ..Finding::default()
    };
    words::describe(context, pairs, &parts, &mut finding);
    finding
}

/// While two take turns one more CPU could be used, as far as there is one that ran nothing of the focus.
pub(super) fn could_run(context: &Context, ns: u64) -> Amount {
    let cpu = &context.blame.cpu;
    Amount(Nanos(ns).amount().0.min(cpu.total - cpu.running).max(0.0))
}

/// The one with the most samples of those on a side, and what they all ran.
fn culprit_of(context: &Context, side: &[ThreadIdx]) -> Culprit {
    let thread =
        side.iter().max_by_key(|t| (context.ran(**t), std::cmp::Reverse(**t))).copied().unwrap_or(ThreadIdx::NONE);
    let mut found = culprit::of_thread(context, thread);
    let samples = context.samples_of(side.iter().copied());
    if let Some(location) = culprit::specific(context, &samples) {
        culprit::tell_function(context, &mut found, &[&samples], &location);
    }
    found
}

/// The side that waits for the culprit.
fn waiters(context: &Context, pairs: &Pairs, parts: &Parts, side: usize) -> Waiters {
    let threads = &pairs.sides[side];
    // What is not its own work.
    let total = Nanos(pairs.length).amount() * (1.0 - parts.work[side]);
    let mut waiters = Waiters {
        threads: threads.len(),
        waits: pairs.count,
        total_s: context.limits.of_threads(total, threads.len()),
        mean_s: context.limits.once(total / pairs.count.max(1) as f64),
        max_s: context.limits.once(Nanos(pairs.trips.longest).amount()),
        names: names::grouped(threads.iter().map(|t| context.thread_name(*t))),
        ..Waiters::default()
    };
    if let Some(at) = place::place(context, pairs.stacks[side]) {
        waiters.function = context.trace.text(at.function).to_owned();
        waiters.source = context.source(&at);
    }
    waiters
}
