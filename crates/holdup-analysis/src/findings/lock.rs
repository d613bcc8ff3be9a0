//! Who waited and where they were let go, at a lock or for a thread.

use holdup_trace::{LockId, StackId, ThreadIdx};

use super::context::Context;
use super::stories::median;
use super::tally::{Group, Tally};
use super::{names, place};
use crate::report::Waiters;

/// A convoy: many hand-offs, each longer than what is done under the lock, and no thread that holds it for most of
/// the time.
pub(super) fn is_convoy(context: &Context, lock: LockId, tally: &Tally) -> bool {
    let Some(story) = context.learned.locks.get(&lock) else { return false };
    let (hold, handoff) = (median(&story.holds), median(&story.handoffs));
    let many = story.threads.len() >= 3 && story.waits >= 50;
    let spread = hold.0 < 5 * handoff.0.max(1) && tally.largest_share() < 0.5;
    many && (tally.is_handed_over() || spread)
}

/// Who waited, for a group: by lock where there is one, else by the charges.
pub(super) fn waiters(context: &Context, group: &Group, tally: &Tally) -> Waiters {
    let story = group.lock().and_then(|lock| context.learned.locks.get(&lock));
    let (threads, waits, total, longest) = match story {
        Some(s) => (s.threads.len(), s.waits, s.total.amount(), s.longest),
        None => (tally.threads.len(), tally.waits, tally.waited.amount(), tally.longest),
    };
    // Every one of them waited at least once, even where waits that began earlier are not counted.
    let count = story.map_or_else(|| tally.count(), |s| s.threads.len());
    let mut named: Vec<ThreadIdx> = story.map_or(&tally.threads, |s| &s.threads).iter().copied().collect();
    named.sort_unstable();
    let mut waiters = Waiters {
        threads,
        waits,
        total_s: context.limits.of_threads(total, count),
        mean_s: context.limits.once(total / waits.max(count as u64).max(1) as f64),
        max_s: context.limits.once(longest.amount()),
        names: names::grouped(named.into_iter().map(|t| context.thread_name(t))),
        ..Waiters::default()
    };
    if let Some(at) = place::place(context, tally.common_stack()) {
        waiters.function = context.trace.text(at.function).to_owned();
        waiters.source = context.source(&at);
    }
    waiters
}

/// Where the culprit let its waiters go.
pub(super) fn release_stack(context: &Context, group: &Group, tally: &Tally) -> StackId {
    if let Some(story) = group.lock().and_then(|lock| context.learned.locks.get(&lock)) {
        let most = story.releases.iter().max_by_key(|(stack, ns)| (**ns, std::cmp::Reverse(**stack)));
        return most.map_or(StackId::NONE, |(s, _)| *s);
    }
    context.learned.released(tally.main_thread())
}
