//! Who holds a lock when, as far as anyone saw.
//!
//! Waiters read the owner from the lock when they go to sleep. That knowledge holds until the owner wakes somebody
//! on the lock, or somebody sees another owner; "the last owner seen" would charge code outside the lock.

use holdup_trace::{LockId, ThreadIdx};
use rustc_hash::FxHashMap;

/// A span in which a lock's owner is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerSpan {
    /// The lock.
    pub lock: LockId,
    /// Who holds it.
    pub owner: ThreadIdx,
    /// From when, in nanoseconds.
    pub from: u64,
    /// Until when.
    pub to: u64,
}

/// The owners known at an instant, and the spans that have ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Owners {
    present: FxHashMap<LockId, (ThreadIdx, u64)>,
    ended: Vec<OwnerSpan>,
}

impl Owners {
    /// With what was known earlier.
    pub(super) fn resume(known: &[OwnerSpan]) -> Self {
        let present = known.iter().map(|s| (s.lock, (s.owner, s.from))).collect();
        Owners { present, ended: Vec::new() }
    }

    pub(super) fn observe(&mut self, lock: LockId, owner: ThreadIdx, t: u64) {
        match self.present.insert(lock, (owner, t)) {
            Some((same, from)) if same == owner => drop(self.present.insert(lock, (owner, from))),
            Some((other, from)) => self.end(lock, other, from, t),
            None => {}
        }
    }

    /// `by` woke somebody who waited for `lock`.
    pub(super) fn release(&mut self, lock: LockId, by: ThreadIdx, t: u64) {
        if lock == LockId::NONE || self.present.is_empty() {
            return;
        }
        if let Some(&(owner, from)) = self.present.get(&lock)
            && owner == by
        {
            self.present.remove(&lock);
            self.end(lock, owner, from, t);
        }
    }

    fn end(&mut self, lock: LockId, owner: ThreadIdx, from: u64, to: u64) {
        if to > from {
            self.ended.push(OwnerSpan { lock, owner, from, to });
        }
    }

    /// The spans that have ended since this was asked for the last time, in the order of their ends.
    pub(super) fn take_ended(&mut self) -> Vec<OwnerSpan> {
        std::mem::take(&mut self.ended)
    }

    /// The spans that go on at `now`, by lock.
    pub(super) fn present(&self, now: u64) -> Vec<OwnerSpan> {
        let spans = self.present.iter().map(|(&lock, &(owner, from))| OwnerSpan { lock, owner, from, to: now });
        let mut spans: Vec<_> = spans.filter(|s| s.to > s.from).collect();
        spans.sort_unstable_by_key(|s| s.lock);
        spans
    }
}
