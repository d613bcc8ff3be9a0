//! What was learned of the whole trace, for those who ask.

use holdup_trace::{LockId, StackId, StringId};
use rustc_hash::FxHashMap;

use super::Timeline;
use crate::intervals::Place;

impl Timeline<'_> {
    /// The function by which a lock is known of which the trace has neither address nor name.
    pub(crate) fn lock_function(&self, lock: LockId) -> Option<StringId> {
        self.facts.lock_function(lock)
    }

    /// Whether an owner of the lock was ever seen.
    pub(crate) fn is_owned(&self, lock: LockId) -> bool {
        self.facts.is_owned(lock)
    }

    /// What the place of a stack is to those that wait there.
    pub(crate) fn place(&self, stack: StackId) -> Place {
        self.facts.place(stack)
    }

    /// Whether threads sleep there, whatever the functions around it say.
    pub(crate) fn sleeps_at(&self, stack: StackId) -> bool {
        self.facts.sleeps_at(stack)
    }

    /// Whether a server's sleep is only taken to be within a request: nobody was seen to ask.
    pub(crate) fn is_presumed(&self, stack: StackId) -> bool {
        self.facts.is_presumed(stack)
    }

    /// Whether other processes send a thread something about as often as it sleeps there.
    pub(crate) fn is_fed(&self, stack: StackId) -> bool {
        self.facts.is_fed(stack)
    }

    /// Where input is awaited: how often the program brought it that did so first, and, without a name, others or the
    /// network.
    pub(crate) fn brought(&self) -> &FxHashMap<(StackId, StringId), u32> {
        &self.facts.brought
    }

    /// Whether input is looked for here and never arrives, of threads to which it comes elsewhere: they wait for a time.
    pub(crate) fn is_aside(&self, stack: StackId) -> bool {
        self.facts.aside.contains(&stack)
    }
}
