//! Whether work is unevenly spread: those who wait, or had ended, did the same.

use holdup_trace::tables::LocationRow;
use holdup_trace::{StackId, StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::context::Context;
use super::culprit;
use super::place::{self, weight_on};
use super::spans::merged;
use super::tally::{Group, Tally};
use crate::blame::Span;
use crate::classify::WaitKind;

/// Below this share of what one thread does of a work, what others do of it are other calls of the same functions.
const NEGLIGIBLE: f64 = 0.05;

/// Whoever is blamed for less than this part of what another one is had done its part before.
const BLAMED: f64 = 0.1;

/// Whether the waiters themselves, or those who had done their part before, mostly run the function that is waited for, and no negligible
/// part of it: then the work is unevenly spread, rather than serial.
pub(super) fn others_run_the_same(context: &Context, group: &Group, tally: &Tally) -> bool {
    // What a server's threads and processes do for their clients is no part of one work.
    if tally.by_thread.keys().any(|t| context.is_server(*t)) {
        return false;
    }
    let Some(location) = culprit::function_of(context, group, tally) else { return false };
    let blamed = blamed(tally);
    let own = context.samples_of(tally.by_thread.keys().copied().filter(|t| blamed.contains(t)));
    let siblings = context.samples_of(siblings(context, &blamed));
    let waiting = || {
        let others =
            if tally.threads.is_empty() { done(context, tally, &blamed) } else { alike(context, tally, &blamed) };
        run_the_same(context, &location, &own, &context.samples_of(others))
    };
    run_the_same(context, &location, &own, &siblings)
        || run_by_the_same(context, &own, &siblings)
        || !take_turns(context, tally) && waiting()
}

/// What some threads ran, by stack.
type Samples = FxHashMap<StackId, f64>;

/// Whether a package that was installed runs most of what both do: a runner of tests that each has others of, a pool's worker.
fn run_by_the_same(context: &Context, own: &Samples, others: &Samples) -> bool {
    culprit::runner(context.classifier, own).is_some_and(|runner| is_shared(context, &runner, own, others))
}

/// Whether `others` mostly run the function in `location`, and no negligible part of what those do that are blamed.
fn run_the_same(context: &Context, location: &LocationRow, own: &Samples, others: &Samples) -> bool {
    let tells = |stack: &StackId| !context.classifier.application_frames(*stack).is_empty();
    let others: Samples = others.iter().filter(|(stack, _)| tells(stack)).map(|(stack, ns)| (*stack, *ns)).collect();
    // A forked child has on its stack what its parent was in; its own work is another.
    let is_theirs = || {
        let on = |function: &LocationRow| weight_on(context, own, function);
        let theirs = culprit::specific(context, &others);
        theirs.is_none_or(|theirs| theirs.function == location.function || on(&theirs) > 0.5 * on(location))
    };
    is_shared(context, location, own, &others) && is_theirs()
}

/// Whether a function is most of what others ran, and that no negligible part of what those run of it that are blamed.
fn is_shared(context: &Context, function: &LocationRow, own: &Samples, others: &Samples) -> bool {
    let all: f64 = others.values().sum();
    let (same, part) = (weight_on(context, others, function), weight_on(context, own, function));
    all >= 5.0 * context.period() && same > 0.5 * all && same >= NEGLIGIBLE * part
}

/// Whether each of them waits again and again while one goes on working, and not at a barrier or for an end: it serves them one after the other,
/// whatever they do themselves in between.
fn take_turns(context: &Context, tally: &Tally) -> bool {
    let stack = tally.common_stack(context.classifier);
    let is_barrier = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["barrier", "join", "await"].iter().any(|word| name.contains(word))
    };
    let for_all = context.classifier.scheduler_at(stack).is_some()
        || context.classifier.facts(stack).kind == Some(WaitKind::Join)
        || place::has(context, stack, is_barrier);
    let stretches = context.spans(tally, |_| true).0.len() as u64;
    let each = tally.waits / tally.threads.len().max(1) as u64;
    stack != StackId::NONE && !for_all && tally.largest_share() > ONE && each > AGAIN * stretches
}

/// From this share of what is charged on it is one that works.
const ONE: f64 = 0.9;
/// Who waits more often than this in a stretch of somebody's work has not come to the end of his own each time.
const AGAIN: u64 = 8;

/// Those that others mostly waited for.
fn blamed(tally: &Tally) -> FxHashSet<ThreadIdx> {
    let least = BLAMED * tally.by_thread.values().copied().fold(0.0, f64::max);
    tally.by_thread.iter().filter(|(_, ns)| **ns >= least).map(|(thread, _)| *thread).collect()
}

/// The waiters of the same programs: a client and its server may have a function in common, each its own event loop.
fn alike(context: &Context, tally: &Tally, blamed: &FxHashSet<ThreadIdx>) -> Vec<ThreadIdx> {
    let programs: FxHashSet<StringId> = tally.by_thread.keys().map(|t| context.program(*t)).collect();
    let likes = |t: &ThreadIdx| !blamed.contains(t) && programs.contains(&context.program(*t));
    tally.threads.iter().copied().filter(likes).collect()
}

/// Threads of processes that the same one began for the same, beside those that are blamed: they had done their part, or wait for another one.
/// O((threads + blamed) log blamed).
fn siblings(context: &Context, blamed: &FxHashSet<ThreadIdx>) -> Vec<ThreadIdx> {
    let threads = &context.trace.threads;
    let starter = |t: ThreadIdx| context.starter(t).map(|starter| context.pid(starter));
    let own: FxHashSet<(StringId, u32)> =
        blamed.iter().filter_map(|t| Some((context.program(*t), starter(*t)?))).collect();
    let lived = |t: ThreadIdx| (threads.start[t.index()].nanos(), threads.end[t.index()].nanos());
    let lives = merged(blamed.iter().map(|t| lived(*t)).map(|(from, to)| Span::whole(from, to)).collect(), 0).0;
    let is_beside = |t: ThreadIdx| {
        let (from, to) = lived(t);
        let first = lives.partition_point(|life| life.1 <= from);
        lives.get(first).is_some_and(|life| life.0 < to)
    };
    let all = context.threads().filter(|t| !blamed.contains(t));
    all.filter(|t| starter(*t).is_some_and(|by| own.contains(&(context.program(*t), by))) && is_beside(*t)).collect()
}

/// Where nobody waits but for the end of all: those of the process that had ended, and the one that began it, unless they are blamed, too.
fn done(context: &Context, tally: &Tally, blamed: &FxHashSet<ThreadIdx>) -> Vec<ThreadIdx> {
    let pids: FxHashSet<u32> = tally.by_thread.keys().map(|t| context.pid(*t)).collect();
    let threads = &context.trace.threads;
    let is_done = |t: &ThreadIdx| {
        let (tid, end) = (threads.tid[t.index()], threads.end[t.index()]);
        tid == context.pid(*t) || end.nanos() < context.blame.window.1
    };
    let all = context.threads();
    all.filter(|t| pids.contains(&context.pid(*t)) && is_done(t) && !blamed.contains(t)).collect()
}
