//! What happened at a lock: its waits, hand-offs and holds.

use holdup_trace::{LockId, StackId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::group::{Group, Tally};
use super::{Context, culprit, names};
use crate::blame::Window;
use crate::classify::WaitKind;
use crate::focus::Focus;
use crate::intervals::Intervals;
use crate::report::Waiters;

/// Hand-offs and holds remembered for each lock: enough for a median.
const REMEMBERED: usize = 4096;

/// The waits for one lock within the window.
#[derive(Debug, Clone, Default)]
pub(crate) struct LockStory {
    pub(crate) threads: FxHashSet<ThreadIdx>,
    pub(crate) waits: u64,
    pub(crate) total_ns: u64,
    pub(crate) longest_ns: u64,
    /// From the wake-up to running, in nanoseconds.
    pub(crate) handoffs: Vec<u64>,
    /// From running after a wait to waking the next, in nanoseconds.
    pub(crate) holds: Vec<u64>,
    /// Where each of these holds ended.
    pub(crate) ends: Vec<StackId>,
    /// Where it was released, by the wait time that this ended.
    pub(crate) releases: FxHashMap<StackId, u64>,
    resumed: FxHashMap<ThreadIdx, u64>,
}

/// The stories of all locks. O(waits).
pub(super) fn stories(intervals: &Intervals, focus: &Focus, window: Window) -> FxHashMap<LockId, LockStory> {
    let mut stories: FxHashMap<LockId, LockStory> = FxHashMap::default();
    for wait in &intervals.waits {
        let inside = wait.start < window.to && wait.woken > window.from;
        if wait.kind != WaitKind::Lock || wait.lock == LockId::NONE || !focus.contains(wait.thread) || !inside {
            continue;
        }
        let story = stories.entry(wait.lock).or_default();
        let length = wait.woken.min(window.to).saturating_sub(wait.start.max(window.from));
        story.threads.insert(wait.thread);
        story.total_ns = story.total_ns.saturating_add(length);
        // A wait that goes on after a time-out is counted once, by its last part.
        story.waits += u64::from(wait.goes_on == 0);
        story.longest_ns = story.longest_ns.max(length);
        if wait.open {
            continue;
        }
        if wait.waker_stack != StackId::NONE {
            *story.releases.entry(wait.waker_stack).or_default() += length;
        }
        if story.handoffs.len() < REMEMBERED {
            story.handoffs.push(wait.resumed.saturating_sub(wait.woken));
            if let Some(since) = story.resumed.get(&wait.waker) {
                story.holds.push(wait.woken.saturating_sub(*since));
                story.ends.push(wait.waker_stack);
            }
        }
        story.resumed.insert(wait.thread, wait.resumed);
    }
    stories
}

/// What each thread did longest, so that no finding has to look through all waits again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Habits {
    /// By waker: where it ended the longest wait of the focus.
    released: Vec<(u64, StackId)>,
    /// By waiter: where it waited longest.
    waited: Vec<(u64, StackId)>,
}

/// The habits of all threads. O(waits).
pub(super) fn habits(intervals: &Intervals, focus: &Focus) -> Habits {
    let none = vec![(0, StackId::NONE); intervals.last.len()];
    let mut habits = Habits { released: none.clone(), waited: none };
    for wait in &intervals.waits {
        let length = wait.woken.saturating_sub(wait.start);
        let own = &mut habits.waited[wait.thread.index()];
        if wait.stack != StackId::NONE && length > own.0 {
            *own = (length, wait.stack);
        }
        if let Some(by) = habits.released.get_mut(wait.waker.index())
            && wait.waker_stack != StackId::NONE
            && length > by.0
            && focus.contains(wait.thread)
        {
            *by = (length, wait.waker_stack);
        }
    }
    habits
}

impl Habits {
    /// Where the thread waited longest.
    pub(super) fn waited(&self, thread: ThreadIdx) -> StackId {
        self.waited.get(thread.index()).map_or(StackId::NONE, |w| w.1)
    }
}

/// The middle value; 0 for none.
pub(super) fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    let middle = sorted.len() / 2;
    if sorted.is_empty() { 0 } else { *sorted.select_nth_unstable(middle).1 }
}

/// A convoy: many hand-offs, each longer than what is done under the lock, and no thread that holds it for most of
/// the time.
pub(super) fn is_convoy(context: &Context, lock: LockId, tally: &Tally) -> bool {
    let Some(story) = context.locks.get(&lock) else { return false };
    let (hold, handoff) = (median(&story.holds), median(&story.handoffs));
    let many = story.threads.len() >= 3 && story.waits >= 50;
    let spread = hold < 5 * handoff.max(1) && tally.largest_share() < 0.5;
    many && (culprit::is_handed_over(tally) || spread)
}

/// Who waited, for a group: by lock where there is one, else by the charges.
pub(super) fn waiters(context: &Context, group: &Group, tally: &Tally) -> Waiters {
    let story = group.lock().and_then(|lock| context.locks.get(&lock));
    let (threads, waits, total, longest) = match story {
        Some(s) => (s.threads.len(), s.waits, s.total_ns, s.longest_ns),
        None => (tally.threads.len(), tally.waits, tally.thread_ns, tally.longest_ns),
    };
    // Every one of them waited at least once, even where waits that began earlier are not counted.
    let count = story.map_or_else(|| tally.count(), |s| s.threads.len());
    let mut named: Vec<ThreadIdx> = story.map_or(&tally.threads, |s| &s.threads).iter().copied().collect();
    named.sort_unstable();
    let mut waiters = Waiters {
        threads,
        waits,
        total_s: context.limits.of_threads(total as f64, count),
        mean_s: context.limits.once(total as f64 / waits.max(count as u64).max(1) as f64),
        max_s: context.limits.once(longest as f64),
        names: names::grouped(named.into_iter().map(|t| context.thread_name(t))),
        ..Waiters::default()
    };
    if let Some(at) = culprit::place(context, tally.common_stack()) {
        waiters.function = context.trace.text(at.function).to_owned();
        waiters.source = context.source(&at);
    }
    waiters
}

/// Where the culprit let its waiters go.
pub(super) fn release_stack(context: &Context, group: &Group, tally: &Tally) -> StackId {
    if let Some(story) = group.lock().and_then(|lock| context.locks.get(&lock)) {
        let most = story.releases.iter().max_by_key(|(stack, ns)| (**ns, std::cmp::Reverse(**stack)));
        return most.map_or(StackId::NONE, |(s, _)| *s);
    }
    context.habits.released.get(tally.main_thread().index()).map_or(StackId::NONE, |r| r.1)
}
