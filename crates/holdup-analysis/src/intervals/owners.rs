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

#[derive(Default)]
pub(super) struct Owners {
    spans: Vec<OwnerSpan>,
    present: FxHashMap<LockId, usize>,
}

impl Owners {
    pub(super) fn observe(&mut self, lock: LockId, owner: ThreadIdx, t: u64) {
        if let Some(&i) = self.present.get(&lock) {
            if self.spans[i].owner == owner {
                return;
            }
            self.spans[i].to = t;
        }
        self.present.insert(lock, self.spans.len());
        self.spans.push(OwnerSpan { lock, owner, from: t, to: u64::MAX });
    }

    /// `by` woke somebody who waited for `lock`.
    pub(super) fn release(&mut self, lock: LockId, by: ThreadIdx, t: u64) {
        if lock == LockId::NONE {
            return;
        }
        if let Some(&i) = self.present.get(&lock)
            && self.spans[i].owner == by
        {
            self.spans[i].to = t;
            self.present.remove(&lock);
        }
    }

    pub(super) fn finish(mut self, end: u64) -> Vec<OwnerSpan> {
        for i in self.present.into_values() {
            self.spans[i].to = end;
        }
        self.spans.retain(|s| s.to > s.from);
        self.spans
    }
}
