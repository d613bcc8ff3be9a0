//! What only the whole trace tells, and every part of it needs.

use holdup_trace::{LockId, Table, ThreadIdx};
use rustc_hash::FxHashMap;

use super::prepare::Dictionary;
use super::wait::Wait;
use crate::classify::WaitKind;

/// CPU time after a wait below which the thread only came back to exit, in nanoseconds.
const EXIT_NS: u64 = 300_000;

/// The first wait whose stack told for what a futex is.
#[derive(Debug, Clone, Copy)]
struct Learned {
    start: u64,
    thread: ThreadIdx,
    kind: WaitKind,
}

/// Learned from all waits.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Locks of which an owner was ever seen.
    owned: Vec<bool>,
    /// By lock.
    learned: Vec<Option<Learned>>,
    /// Locks without an address, by process: their ids lie behind those of the trace.
    nameless: FxHashMap<u32, LockId>,
    /// When each thread's last wait begins.
    last: Vec<u64>,
    /// How many waits there are.
    pub(super) waits: u64,
}

impl Facts {
    pub(super) fn new(locks: usize, threads: usize) -> Self {
        Facts { owned: vec![false; locks], learned: vec![None; locks], last: vec![0; threads], ..Facts::default() }
    }

    /// A prepared wait that is over, or never ends.
    pub(super) fn learn(&mut self, wait: &Wait, dictionary: &Dictionary) {
        self.waits += 1;
        let last = &mut self.last[wait.thread.index()];
        *last = wait.start.max(*last);
        if let Some(pid) = dictionary.nameless(wait) {
            let next = LockId((self.owned.len() + self.nameless.len()) as u32);
            self.nameless.entry(pid).or_insert(next);
        }
        let tells = matches!(wait.kind, WaitKind::Lock | WaitKind::Condition | WaitKind::Join);
        if let Some(known) = self.learned.get_mut(wait.lock.index()).filter(|_| tells && wait.lock != LockId::NONE) {
            let this = Learned { start: wait.start, thread: wait.thread, kind: wait.kind };
            if known.is_none_or(|k| (this.start, this.thread) < (k.start, k.thread)) {
                *known = Some(this);
            }
        }
    }

    /// Completes a prepared wait, which goes on as its last part does.
    pub(super) fn complete(&self, wait: &mut Wait, dictionary: &Dictionary) {
        if wait.kind == WaitKind::Futex {
            // A futex wait without a stack is of the kind of the others on that futex.
            let learned = || self.learned.get(wait.lock.index()).copied().flatten().map(|l| l.kind);
            wait.kind = if self.is_owned(wait.lock) { WaitKind::Lock } else { learned().unwrap_or(WaitKind::Futex) };
        }
        if let Some(lock) = dictionary.nameless(wait).and_then(|pid| self.nameless.get(&pid)) {
            wait.lock = *lock;
        }
        let joins = dictionary.is_join(wait);
        if joins {
            wait.kind = WaitKind::Join;
        }
        let exit = dictionary.trace.threads.end.get(wait.thread.index()).map_or(u64::MAX, |e| e.nanos());
        let returns_to_exit = exit != u64::MAX
            && exit.saturating_sub(wait.resumed) < EXIT_NS
            && self.last[wait.thread.index()] == wait.start
            && wait.kind != WaitKind::Lock;
        wait.exempt = joins || returns_to_exit || wait.kind == WaitKind::KernelIdle;
    }

    /// Whether an owner of the lock was ever seen.
    pub(super) fn is_owned(&self, lock: LockId) -> bool {
        self.owned.get(lock.index()).copied().unwrap_or(false)
    }

    /// An owner was seen.
    pub(super) fn own(&mut self, span: &super::OwnerSpan, dictionary: &Dictionary) {
        if is_known(span, dictionary) {
            self.owned[span.lock.index()] = true;
        }
    }
}

/// Damaged ids, and the idle task, own nothing.
pub(super) fn is_known(span: &super::OwnerSpan, dictionary: &Dictionary) -> bool {
    let trace = dictionary.trace;
    span.lock.index() < trace.locks.len() && span.owner.index() < trace.threads.len() && span.owner.is_real()
}
