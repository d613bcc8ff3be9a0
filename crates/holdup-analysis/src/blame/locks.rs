//! Who holds which lock at an instant.

use holdup_trace::LockId;

use super::forest::NONE;

/// A lock of the trace.
#[derive(Debug, Clone, Copy)]
struct Lock {
    /// Its queue in the forest.
    queue: u32,
    /// Who is known to own it.
    owner: u32,
    /// Who will release it next, going forward in time: the present holder, if no owner is known.
    releaser: u32,
}

/// All locks by id.
#[derive(Debug)]
pub(super) struct Locks(Vec<Lock>);

impl Locks {
    pub(super) fn new(locks: usize) -> Self {
        Locks(vec![Lock { queue: NONE, owner: NONE, releaser: NONE }; locks])
    }

    /// Whether the trace knows the lock itself, and not only that there is one.
    pub(super) fn has(&self, lock: LockId) -> bool {
        lock != LockId::NONE && lock.index() < self.0.len()
    }

    pub(super) fn queue(&self, lock: LockId) -> u32 {
        self.0[lock.index()].queue
    }

    pub(super) fn set_queue(&mut self, lock: LockId, queue: u32) {
        self.0[lock.index()].queue = queue;
    }

    pub(super) fn owner(&self, lock: LockId) -> u32 {
        self.0[lock.index()].owner
    }

    pub(super) fn set_owner(&mut self, lock: LockId, owner: u32) {
        if let Some(lock) = self.0.get_mut(lock.index()) {
            lock.owner = owner;
        }
    }

    pub(super) fn releaser(&self, lock: LockId) -> u32 {
        self.0[lock.index()].releaser
    }

    pub(super) fn set_releaser(&mut self, lock: LockId, by: u32) {
        self.0[lock.index()].releaser = by;
    }
}
