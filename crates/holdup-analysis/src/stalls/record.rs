//! Long waits, what they were for, and how many of them are kept.

use holdup_trace::{LockId, StackId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::classes::Class;
use crate::classify::WaitKind;

/// What a chain ends at, at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum How {
    /// A thread that runs.
    Runs,
    /// A thread that could run and has no CPU.
    HasNoCpu,
    /// A disk.
    Disk,
    /// A thread that sleeps.
    Sleeps,
    /// A thread that a signal has stopped, or that is frozen.
    Stopped,
    /// A thread that waits for the world outside.
    Outside,
    /// A lock whose holder is not known.
    Lock,
    /// Nothing that works for it.
    Idle,
    /// Not known.
    Unknown,
}

/// The end of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct End {
    pub(crate) how: How,
    /// Whose.
    pub(crate) thread: ThreadIdx,
    /// The lock of the chain's last wait, if that is for a lock.
    pub(crate) lock: LockId,
    /// What that thread ran, or where it waited.
    pub(crate) stack: StackId,
}

/// A long wait, or a long stretch of work, and what it was for: nanoseconds by end.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) thread: ThreadIdx,
    /// In nanoseconds since the trace's start.
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) class: Class,
    pub(crate) ends: Vec<(End, u64)>,
}

impl Record {
    pub(crate) fn length(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Whether it is a thread's work rather than its wait.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.class, Class::Busy(_))
    }

    /// Whether it is a wait for input.
    pub(super) fn is_input(&self) -> bool {
        matches!(self.class, Class::Waits { kind: WaitKind::Input, .. })
    }

    /// Whether something held it up for most of the time of which it is known.
    pub(super) fn holds_up(&self) -> bool {
        let of = |wanted: fn(How) -> bool| self.ends.iter().filter(|e| wanted(e.0.how)).map(|e| e.1).sum::<u64>();
        let held = of(|how| !matches!(how, How::Idle | How::Unknown));
        held > 0 && held > of(|how| matches!(how, How::Idle | How::Unknown))
    }

    /// Adds what another part of the trace tells of the same.
    pub(super) fn join(&mut self, ends: Vec<(End, u64)>) {
        ends.into_iter().for_each(|(end, ns)| add(&mut self.ends, end, ns));
    }
}

/// Adds to the nanoseconds of an end.
pub(super) fn add(ends: &mut Vec<(End, u64)>, end: End, ns: u64) {
    match ends.iter_mut().find(|e| e.0 == end) {
        Some(known) => known.1 += ns,
        None => ends.push((end, ns)),
    }
}

/// The longest of each class are kept: so many …
const KEPT: usize = 64;
/// … as soon as there are so many in all.
const ROOM: usize = 8192;

/// By thread, beginning, and whether it is work.
#[derive(Debug, Default)]
pub(super) struct Records(FxHashMap<(ThreadIdx, u64, bool), Record>);

impl Records {
    /// Adds a record; `whole` if no other part can tell more of it.
    pub(super) fn add(&mut self, record: Record, whole: bool) {
        if whole && !record.holds_up() {
            return;
        }
        match self.0.entry((record.thread, record.from, record.is_busy())) {
            std::collections::hash_map::Entry::Occupied(mut known) => known.get_mut().join(record.ends),
            std::collections::hash_map::Entry::Vacant(room) => drop(room.insert(record)),
        }
    }

    pub(super) fn absorb(&mut self, earlier: Records) {
        earlier.0.into_values().for_each(|record| self.add(record, false));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.0.values()
    }

    /// Keeps the longest of each class where there are too many.
    pub(super) fn prune(&mut self) {
        if self.0.len() <= ROOM {
            return;
        }
        let mut all: Vec<Record> = std::mem::take(&mut self.0).into_values().collect();
        all.sort_unstable_by_key(|r| (r.class, std::cmp::Reverse(r.length()), r.from, r.thread));
        let mut present = (None, 0);
        for record in all {
            present =
                if present.0 == Some(record.class) { (present.0, present.1 + 1) } else { (Some(record.class), 0) };
            if present.1 < KEPT {
                self.add(record, false);
            }
        }
    }
}
