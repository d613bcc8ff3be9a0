//! Who held a lock from when to when, as far as others had to wait for it.

use holdup_trace::{LockId, Nanos, ThreadIdx, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

use super::HoldTime;
use crate::intervals::{Intervals, State, Wait};
use crate::segments;

/// One hold, in nanoseconds since the trace's start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hold {
    pub(super) thread: ThreadIdx,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) time: HoldTime,
}

/// The holds of some locks, taken as one, that ended with waking one that waited, in the order of their ends. O(events).
pub(super) fn of(trace: &Trace, intervals: &Intervals, locks: &FxHashSet<LockId>) -> Vec<Hold> {
    let mut waits: Vec<(u64, &Wait)> = Vec::new();
    let mut begun: FxHashMap<ThreadIdx, u64> = FxHashMap::default();
    for wait in intervals.waits.iter().filter(|w| locks.contains(&w.lock)) {
        // A wait with a time-out goes on in the next one.
        let start = *begun.entry(wait.thread).or_insert(wait.start);
        if wait.goes_on == 0 {
            begun.remove(&wait.thread);
            waits.push((start, wait));
        }
    }
    waits.sort_unstable_by_key(|(start, wait)| (wait.woken, *start));
    let mut holds = until_released(&waits);
    add_times(trace, intervals, &mut holds);
    holds
}

/// From the waits in the order of their ends.
fn until_released(waits: &[(u64, &Wait)]) -> Vec<Hold> {
    let mut holds: Vec<Hold> = Vec::new();
    let mut resumed: FxHashMap<ThreadIdx, u64> = FxHashMap::default();
    for (i, (start, wait)) in waits.iter().enumerate() {
        if !wait.open && wait.waker != ThreadIdx::NONE && wait.waker != wait.thread {
            let earliest = resumed.remove(&wait.waker).unwrap_or(0).max(holds.last().map_or(0, |h| h.to));
            let from = taken(&waits[i..], earliest, *start);
            if wait.woken > from {
                holds.push(Hold { thread: wait.waker, from, to: wait.woken, time: HoldTime::default() });
            }
        }
        resumed.insert(wait.thread, wait.resumed);
    }
    holds
}

/// Waits looked at for those that came while one hold went on.
const COMPANY: usize = 32;

/// When the lock was taken that the first of `waits`, which began at `start`, waited for: not before `earliest`, when its holder
/// got it or another let it go. If its waiters were there then already, that is when. Else they came while it was held, and it is not
/// known how long it had been. Of `n` that come at any time within a hold, the first leaves `n / (n + 1)` of it, on average.
fn taken(waits: &[(u64, &Wait)], earliest: u64, start: u64) -> u64 {
    let until = waits[0].1.woken;
    if start <= earliest || until <= start {
        return earliest.max(start).min(until);
    }
    let came = waits.iter().take(COMPANY).filter(|(from, _)| (earliest..until).contains(from)).count() as u64;
    start.saturating_sub((until - start) / came.max(1)).max(earliest)
}

/// What the holders did meanwhile.
fn add_times(trace: &Trace, intervals: &Intervals, holds: &mut [Hold]) {
    let mut of_thread: FxHashMap<ThreadIdx, Vec<usize>> = FxHashMap::default();
    for (i, hold) in holds.iter().enumerate() {
        of_thread.entry(hold.thread).or_default().push(i);
    }
    // Both come in the order of time, and the holds of a thread do not overlap.
    let mut next: FxHashMap<ThreadIdx, usize> = FxHashMap::default();
    segments::each(trace, intervals, |s| {
        let Some(list) = of_thread.get(&s.thread) else { return };
        let at = next.entry(s.thread).or_default();
        while let Some(hold) = list.get(*at).map(|&i| &mut holds[i]).filter(|h| h.from < s.to) {
            let inside = Nanos(s.within(hold.from, hold.to));
            match s.state {
                State::Running(_) => hold.time.ran += inside,
                State::Waiting(_) => hold.time.blocked += inside,
                _ => {}
            }
            if hold.to > s.to {
                break;
            }
            *at += 1;
        }
    });
}
