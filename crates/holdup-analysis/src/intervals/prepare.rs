//! What can be said of a wait when it is over, without the rest of the trace.

use holdup_trace::{LockId, LockKind, StackId, Syscall, Table, ThreadIdx, Trace, WakeContext};
use rustc_hash::FxHashMap;

use super::families::Families;
use super::wait::Wait;
use crate::classify::{Classifier, WaitKind, kind_of_call};

/// CPU time between two timed waits on one lock that makes them one wait, in nanoseconds.
pub(super) const REWAIT_NS: u64 = 300_000;

/// Who wakes somebody and ends within this time has done so as the last thing, in nanoseconds.
const LAST_NS: u64 = 1_000_000;

/// Whoever ends its parent's wait and does not end within this time has only stopped, in nanoseconds.
const STOPS_NS: u64 = 100_000_000;

/// What the trace's dictionaries tell of waits, looked up once.
pub(super) struct Dictionary<'a> {
    pub(super) trace: &'a Trace,
    pub(super) classifier: &'a Classifier<'a>,
    calls: Vec<Syscall>,
    /// The first lock of the dictionary within each 8 bytes of a process.
    objects: FxHashMap<(u32, u64), LockId>,
    /// The first thread of each process.
    mains: FxHashMap<u32, ThreadIdx>,
    /// Which processes are one program.
    pub(super) families: Families,
    /// Whether it is known when threads ended.
    knows_ends: bool,
    /// vfork, clone and clone3 wait for the child to get going.
    vforks: &'static [i16],
}

/// The process of which a thread is the first.
fn main_of(trace: &Trace, thread: ThreadIdx) -> Option<u32> {
    let (pid, tid) = (trace.threads.pid[thread.index()], trace.threads.tid[thread.index()]);
    (pid == tid && pid != 0).then_some(pid)
}

impl<'a> Dictionary<'a> {
    /// Who ended a wait by closing what the waiter waited for: of a process that ends, whichever thread came to it last did so, and what
    /// was waited for is what the process did until then.
    pub(super) fn who_closed(&self, wait: &Wait) -> ThreadIdx {
        let made = wait.waker.is_real() && self.classifier.facts(wait.waker_stack).is_made_to_exit;
        let threads = &self.trace.threads;
        let main = || self.mains.get(threads.pid.get(wait.waker.index())?).copied();
        made.then(main).flatten().filter(|main| threads.end[main.index()].nanos() >= wait.woken).unwrap_or(wait.waker)
    }

    pub(super) fn new(trace: &'a Trace, classifier: &'a Classifier<'a>) -> Self {
        let arch = &trace.meta.host.arch;
        let mut objects = FxHashMap::default();
        for (i, lock) in trace.locks.rows().enumerate() {
            objects.entry((lock.pid, lock.address & !7)).or_insert(LockId(i as u32));
        }
        let mains =
            (0..trace.threads.len() as u32).map(ThreadIdx).filter_map(|t| Some((main_of(trace, t)?, t))).collect();
        Dictionary {
            trace,
            classifier,
            families: Families::new(trace, &mains),
            calls: (0..512).map(|n| Syscall::from_number(arch, n)).collect(),
            objects,
            mains,
            // Only processes that were looked at have rows there: it is our recorder's, which sees all ends.
            knows_ends: trace.listeners.rows() > 0 || trace.threads.end.iter().any(|end| end.nanos() != u64::MAX),
            vforks: if arch == "aarch64" { &[220, 435] } else { &[56, 57, 58, 435] },
        }
    }

    fn call(&self, number: i16) -> Syscall {
        let known = usize::try_from(number).ok().and_then(|n| self.calls.get(n)).copied();
        known.unwrap_or_else(|| Syscall::from_number(&self.trace.meta.host.arch, number))
    }

    /// Kind and lock, as far as the wait itself tells.
    pub(super) fn prepare(&self, wait: &mut Wait) {
        // Not every recorder tells what an interrupt is for.
        if wait.context != WakeContext::Timer && self.classifier.facts(wait.waker_stack).by_timer {
            (wait.waker, wait.context, wait.source) = (ThreadIdx::NONE, WakeContext::Timer, 0);
        }
        wait.kind = self.kind(wait);
        wait.is_fresh |= self.classifier.facts(wait.stack).sleeps;
        if wait.kind == WaitKind::Condition || self.classifier.facts(wait.stack).by_condition {
            wait.lock = self.canonical(wait.lock);
        }
    }

    fn kind(&self, wait: &Wait) -> WaitKind {
        let facts = self.classifier.facts(wait.stack);
        let lock = if wait.lock == LockId::NONE { None } else { self.trace.locks.kind.get(wait.lock.index()) };
        // A semaphore is a lock for whoever called the kernel. The kernel's own threads wait for work with one, too.
        let is_for_work = facts.kind == Some(WaitKind::KernelIdle) && lock == Some(&LockKind::Other);
        let is_kernel_lock = !is_for_work && lock.is_some_and(|&kind| is_of_kernel(kind));
        // Who naps until those that run let him is not asleep.
        if is_kernel_lock || facts.kernel_lock || facts.kept_by_runner {
            return WaitKind::Lock;
        }
        if wait.idle_state {
            return WaitKind::KernelIdle;
        }
        // In whatever system call that was.
        if facts.kind == Some(WaitKind::Stopped) {
            return WaitKind::Stopped;
        }
        let by_call = kind_of_call(self.call(wait.syscall), wait.io_wait);
        let known = match (by_call, facts.kind) {
            (Some(WaitKind::Futex | WaitKind::Unknown) | None, Some(kind)) => kind,
            // A write or read that blocks in the file system waits for the disk.
            (Some(WaitKind::Read | WaitKind::Write), Some(WaitKind::Disk)) => WaitKind::Disk,
            // What it looks at meanwhile is its runtime's.
            (Some(WaitKind::Input), _) if facts.sleeps => WaitKind::Timer,
            (Some(kind), _) => kind,
            (None, None) => WaitKind::Unknown,
        };
        match known {
            WaitKind::Unknown if wait.is_timed_out() => WaitKind::Timer,
            // A tracer waits so for what it traces.
            WaitKind::Join if self.has_only_stopped(wait.waker, wait.woken) => WaitKind::Signal,
            kind => kind,
        }
    }

    /// Whether a thread that ended its parent's wait at `t` goes on after that.
    fn has_only_stopped(&self, thread: ThreadIdx, t: u64) -> bool {
        let end = self.trace.threads.end.get(thread.index()).map_or(0, |end| end.nanos());
        self.knows_ends && thread.is_real() && end.abs_diff(t) > STOPS_NS
    }

    /// glibc's condition variables wait on two words in turn: their key is the object.
    fn canonical(&self, lock: LockId) -> LockId {
        let locks = &self.trace.locks;
        let (Some(pid), Some(address)) = (locks.pid.get(lock.index()), locks.address.get(lock.index())) else {
            return lock;
        };
        self.objects.get(&(*pid, address & !7)).copied().unwrap_or(lock)
    }

    /// Where a lock of which the source has no address is counted: in its process, or with the kernel's own.
    pub(super) fn nameless(&self, wait: &Wait) -> Option<u32> {
        if wait.kind != WaitKind::Lock || wait.lock != LockId::NONE {
            return None;
        }
        let shared = self.call(wait.syscall) == Syscall::FileLock || self.classifier.facts(wait.stack).kernel_lock;
        Some(if shared { 0 } else { self.trace.threads.pid[wait.thread.index()] })
    }

    /// Whether it is for the end, or the beginning, of another thread.
    pub(super) fn is_join(&self, wait: &Wait) -> bool {
        let is_vfork = || self.vforks.contains(&wait.syscall) && !wait.io_wait && wait.kind == WaitKind::Unknown;
        wait.kind == WaitKind::Join || self.is_ended_by_exit(wait) || is_vfork()
    }

    /// A wait that a thread ended as the last thing it did: joins without names, and those of runtimes, which signal a
    /// condition and then clean up.
    fn is_ended_by_exit(&self, wait: &Wait) -> bool {
        let end = self.trace.threads.end.get(wait.waker.index()).map_or(u64::MAX, |e| e.nanos());
        matches!(wait.kind, WaitKind::Futex | WaitKind::Condition)
            && end != u64::MAX
            && end.abs_diff(wait.woken) < LAST_NS
    }
}

/// Rule 12: a wait that times out and soon begins again on the same lock, or at the same place for input, goes on. Going backwards, each learns from the
/// next how it ended. `among` are the waits that are over, by index; `beyond` are those that begin later than all.
pub(super) fn join_rewaits(
    waits: &mut [Wait],
    among: impl DoubleEndedIterator<Item = usize>,
    beyond: &FxHashMap<ThreadIdx, Wait>,
) {
    let mut later: FxHashMap<ThreadIdx, usize> = FxHashMap::default();
    for i in among.rev() {
        let next = later.insert(waits[i].thread, i);
        if !waits[i].may_go_on() {
            continue;
        }
        let (follow, goes_on) = match next {
            Some(next) => (waits[next], next as u32 + 1),
            None => match beyond.get(&waits[i].thread) {
                Some(follow) => (*follow, super::wait::GOES_ON_BEYOND),
                None => continue,
            },
        };
        waits[i].join(&follow, waits[i].resumed, goes_on);
    }
}

impl Wait {
    /// Takes over how `other`, with which this one goes on, ended.
    fn end_like(&mut self, other: &Wait) {
        (self.waker, self.kind) = (other.waker, other.kind);
        (self.open, self.context, self.last_start) = (other.open, other.context, other.last_start);
    }

    /// If `follow`, which begins after the time-out at `resumed`, is on the same lock, this wait goes on in it. Not if
    /// the thread has woken somebody between them: it went on with its work, and came back (a worker that sleeps for each
    /// of its tasks does so on one word of its own).
    pub(super) fn join(&mut self, follow: &Wait, resumed: u64, goes_on: u32) {
        let same = follow.lock == self.lock && (self.lock != LockId::NONE || follow.stack == self.stack);
        if same && !follow.is_fresh && follow.start.saturating_sub(resumed) < REWAIT_NS {
            self.goes_on = goes_on;
            self.end_like(follow);
        }
    }

    /// Whether it may go on in a later one: nobody gave it what it waits for. Where the wake-up is not in the trace, who comes back to the same
    /// place at once has not got it either.
    pub(super) fn may_go_on(&self) -> bool {
        let unseen = !self.open && !self.waker.is_real() && self.context == WakeContext::Unknown;
        (self.is_timed_out() || unseen)
            && (self.lock != LockId::NONE || self.kind == WaitKind::Input && self.stack != StackId::NONE)
    }
}

/// Whether a lock of this kind is the kernel's own.
fn is_of_kernel(kind: LockKind) -> bool {
    !matches!(kind, LockKind::Futex | LockKind::Unknown)
}
