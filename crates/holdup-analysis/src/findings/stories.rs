//! What happened at each lock, and what each thread did longest.

use holdup_trace::{LockId, StackId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::blame::Window;
use crate::classify::WaitKind;
use crate::focus::Focus;
use crate::intervals::Intervals;

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
    /// Where the thread ended the longest wait of the focus.
    pub(super) fn released(&self, thread: ThreadIdx) -> StackId {
        self.released.get(thread.index()).map_or(StackId::NONE, |r| r.1)
    }

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
