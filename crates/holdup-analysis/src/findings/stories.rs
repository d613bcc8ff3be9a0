//! What happened at a lock.

use holdup_trace::{Nanos, StackId, ThreadIdx};
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
    pub(crate) total: Nanos,
    pub(crate) longest: Nanos,
    /// Where that thread waited.
    pub(crate) site: StackId,
    /// From the wake-up to running.
    pub(crate) handoffs: Vec<Nanos>,
    /// From running after a wait to waking the next.
    pub(crate) holds: Vec<Nanos>,
    /// Where each of these holds ended.
    pub(crate) ends: Vec<StackId>,
    /// Where it was released, by the wait time that this ended.
    pub(crate) releases: FxHashMap<StackId, Nanos>,
    resumed: FxHashMap<ThreadIdx, u64>,
}

impl LockStory {
    /// Adds a wait that lies in the window.
    pub(super) fn add(&mut self, wait: &Wait, window: Window) {
        let length = Nanos(wait.woken.min(window.to).saturating_sub(wait.start.max(window.from)));
        self.threads.insert(wait.thread);
        self.total += length;
        // A wait that goes on after a time-out is counted once, by its last part.
        self.waits += u64::from(wait.goes_on == 0);
        self.see(length, wait.stack);
        if wait.open {
            return;
        }
        if wait.waker_stack != StackId::NONE {
            *self.releases.entry(wait.waker_stack).or_default() += length;
        }
        if self.handoffs.len() < REMEMBERED {
            self.handoffs.push(Nanos(wait.resumed.saturating_sub(wait.woken)));
            if let Some(since) = self.resumed.get(&wait.waker) {
                self.holds.push(Nanos(wait.woken.saturating_sub(*since)));
                self.ends.push(wait.waker_stack);
            }
        }
        self.resumed.insert(wait.thread, wait.resumed);
    }

    fn see(&mut self, length: Nanos, site: StackId) {
        if length > self.longest || self.site == StackId::NONE {
            (self.longest, self.site) = (length, site);
        }
    }

    /// Adds what an earlier part of the trace tells.
    pub(super) fn absorb(&mut self, earlier: LockStory) {
        self.threads.extend(earlier.threads);
        self.waits += earlier.waits;
        self.total += earlier.total;
        self.see(earlier.longest, earlier.site);
        earlier.releases.into_iter().for_each(|(stack, time)| *self.releases.entry(stack).or_default() += time);
        self.handoffs.extend(earlier.handoffs.into_iter().take(REMEMBERED.saturating_sub(self.handoffs.len())));
        let room = REMEMBERED.saturating_sub(self.holds.len());
        self.holds.extend(earlier.holds.into_iter().take(room));
        self.ends.extend(earlier.ends.into_iter().take(room));
    }
}

/// The middle value; zero for none.
pub(super) fn median(values: &[Nanos]) -> Nanos {
    let mut sorted = values.to_vec();
    let middle = sorted.len() / 2;
    if sorted.is_empty() { Nanos::ZERO } else { *sorted.select_nth_unstable(middle).1 }
}
