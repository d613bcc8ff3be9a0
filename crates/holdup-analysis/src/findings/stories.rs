//! What happened at a lock.

use holdup_trace::{StackId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::blame::Window;
use crate::intervals::Wait;

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

impl LockStory {
    /// Adds a wait that lies in the window.
    pub(super) fn add(&mut self, wait: &Wait, window: Window) {
        let length = wait.woken.min(window.to).saturating_sub(wait.start.max(window.from));
        self.threads.insert(wait.thread);
        self.total_ns = self.total_ns.saturating_add(length);
        // A wait that goes on after a time-out is counted once, by its last part.
        self.waits += u64::from(wait.goes_on == 0);
        self.longest_ns = self.longest_ns.max(length);
        if wait.open {
            return;
        }
        if wait.waker_stack != StackId::NONE {
            *self.releases.entry(wait.waker_stack).or_default() += length;
        }
        if self.handoffs.len() < REMEMBERED {
            self.handoffs.push(wait.resumed.saturating_sub(wait.woken));
            if let Some(since) = self.resumed.get(&wait.waker) {
                self.holds.push(wait.woken.saturating_sub(*since));
                self.ends.push(wait.waker_stack);
            }
        }
        self.resumed.insert(wait.thread, wait.resumed);
    }

    /// Adds what an earlier part of the trace tells.
    pub(super) fn absorb(&mut self, earlier: LockStory) {
        self.threads.extend(earlier.threads);
        self.waits += earlier.waits;
        self.total_ns = self.total_ns.saturating_add(earlier.total_ns);
        self.longest_ns = self.longest_ns.max(earlier.longest_ns);
        earlier.releases.into_iter().for_each(|(stack, ns)| *self.releases.entry(stack).or_default() += ns);
        self.handoffs.extend(earlier.handoffs.into_iter().take(REMEMBERED.saturating_sub(self.handoffs.len())));
        let room = REMEMBERED.saturating_sub(self.holds.len());
        self.holds.extend(earlier.holds.into_iter().take(room));
        self.ends.extend(earlier.ends.into_iter().take(room));
    }
}

/// The middle value; 0 for none.
pub(super) fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    let middle = sorted.len() / 2;
    if sorted.is_empty() { 0 } else { *sorted.select_nth_unstable(middle).1 }
}
