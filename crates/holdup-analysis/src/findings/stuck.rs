//! Locks that nobody lets go any more: whoever waits for them stands still until the recording ends.

use std::collections::BTreeMap;

use holdup_trace::{Nanos, StringId, ThreadIdx};
use rustc_hash::FxHashSet;

use super::context::Context;
use super::crew::Crew;
use super::tally::{Group, Tally};
use super::{culprit, names, place};
use crate::classify::WaitKind;
use crate::report::{Stall, Title};

/// Whether it is about such locks.
pub(super) fn is(group: &Group, tally: &Tally) -> bool {
    group.is_lock() && tally.stuck > 0.5 * tally.rank
}

/// Those among them that wait for each other: each has the lock that the next one wants. Empty where it is not known who has which.
pub(super) fn circle(context: &Context, tally: &Tally) -> Vec<ThreadIdx> {
    let concerns = |thread: &ThreadIdx| tally.ends().keys().any(|end| context.pid(*end) == context.pid(*thread));
    context.blame.deadlocked.iter().copied().filter(concerns).collect()
}

/// `lock` are the locks in words.
pub(super) fn title(context: &Context, tally: &Tally, crew: &Crew, lock: &str, lasted: &str, stood: &str) -> Title {
    let circle = circle(context, tally);
    if circle.is_empty() {
        let them = if lock.starts_with(|c: char| c.is_ascii_digit()) { "them" } else { "it" };
        let waiters = tally.threads.len();
        let who = if waiters > 1 {
            let program = crew.threads.first().map_or("", |first| context.trace.text(context.program(*first)));
            format!("{waiters} threads of {program}")
        } else {
            crew.words(context)
        };
        let end =
            if is_to_write(context, tally) { format!("did not get {them}") } else { format!("nobody let {them} go") };
        return format!("{who} waited for {lock} for {lasted}, and {end}").into();
    }
    let names = names::grouped(circle.iter().map(|thread| context.thread_name(*thread)));
    let who = match names.as_slice() {
        [names @ .., last] if !names.is_empty() => format!("{} and {last}", names.join(", ")),
        names => names.concat(),
    };
    let did = format!("{who} waited for each other for {lasted}, each for a lock that another one has (a deadlock)");
    Title::new(&did, stood)
}

/// Whether it is to write under a lock that several may have to read: nobody of those needs to keep it.
fn is_to_write(context: &Context, tally: &Tally) -> bool {
    let stack = tally.common_stack(context.classifier);
    place::has(context, stack, |name| name.contains("wrlock"))
}

pub(super) fn advice(context: &Context, tally: &Tally) -> &'static str {
    if !circle(context, tally).is_empty() {
        "Take these locks in the same order everywhere, or both at once (std::scoped_lock)."
    } else if is_to_write(context, tally) {
        "If there is always somebody who reads, whoever wants to write never gets it: let writers go first \
         (PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP), read for less, or swap in a copy instead of locking."
    } else {
        "See who has it, and what that waits for (jstack, py-spy dump, gdb -p, the server's own list of locks): another lock, so that \
         both wait for ever, or it ended without letting go."
    }
}

/// What makes it doubtful.
pub(super) fn doubt(context: &Context, tally: &Tally) -> Option<&'static str> {
    circle(context, tally).is_empty().then_some("who has the lock is not in the recording")
}

/// Threads of a program that goes on which waited for a lock or a disk from before the recording until its end: one stall for each program
/// and place. Then the same of programs of which nothing ran meanwhile: nobody misses them on a machine that goes on. O(threads).
pub(super) fn stalls(context: &Context) -> [Vec<Stall>; 2] {
    let threads = &context.trace.threads;
    let ran = |(thread, ns): (&u32, &u64)| (*ns > 0).then_some(*thread);
    let alive: FxHashSet<u32> = threads.pid.iter().zip(&context.timeline.ran).filter_map(ran).collect();
    let mut places: BTreeMap<(bool, StringId, WaitKind, StringId), Vec<ThreadIdx>> = BTreeMap::new();
    for row in context.timeline.standing().iter().filter(|row| context.focus.contains(row.thread)) {
        let Some(kind @ (WaitKind::Lock | WaitKind::Disk)) = context.classifier.facts(row.stack).kind else { continue };
        let function = place::place(context, row.stack).map_or(StringId::default(), |l| l.function);
        let still = !alive.contains(&context.pid(row.thread));
        places.entry((still, context.program(row.thread), kind, function)).or_default().push(row.thread);
    }
    let mut found = [Vec::new(), Vec::new()];
    for ((still, _, kind, function), threads) in places {
        found[usize::from(still)].push(stall(context, kind, function, &threads));
    }
    found
}

fn stall(context: &Context, kind: WaitKind, function: StringId, threads: &[ThreadIdx]) -> Stall {
    let (from, to) = context.blame.window;
    let seconds = Nanos(to - from).seconds();
    let mut culprit = culprit::of_thread(context, threads[0]);
    culprit.function = context.trace.text(function).to_owned();
    let what = if kind == WaitKind::Lock { "a lock that nobody let go" } else { "the disk" };
    let at = if culprit.function.is_empty() { String::new() } else { format!(" in `{}`", culprit.function) };
    let who = match threads.len() {
        1 => format!("`{}`", culprit.process),
        n => format!("{n} threads of `{}`", culprit.process),
    };
    Stall {
        windows: vec![[Nanos(from).seconds(), Nanos(to).seconds()]],
        count: 1,
        longest_s: seconds,
        shortest_s: seconds,
        waiters: threads.len(),
        names: names::grouped(threads.iter().map(|t| context.thread_name(*t))),
        title: format!("all the time: {who} waited for {what}{at}"),
        culprit,
    }
}
