//! What can be said of a wait only when all of it, and what came after, is known.

use holdup_trace::{LockId, LockKind, Syscall, Table, Trace, WakeContext};
use rustc_hash::FxHashMap;

use super::owners::{OwnerSpan, Owners};
use super::{Extra, Intervals, REWAIT_NS, Wait};
use crate::classify::{Classifier, WaitKind, kind_of_call};

/// CPU time after a wait below which the thread only came back to exit, in nanoseconds.
const EXIT_NS: u64 = 300_000;

pub(super) fn complete(out: &mut Intervals, owners: Owners, trace: &Trace, classifier: &Classifier) {
    out.owners = owners.finish(out.end);
    // Damaged ids, and the idle task, own nothing.
    let known = |s: &OwnerSpan| s.lock.index() < trace.locks.len() && s.owner.index() < trace.threads.len();
    out.owners.retain(|s| known(s) && s.owner.is_real());
    let owned = owned_locks(out);
    let calls = CallTable::new(&trace.meta.host.arch);
    let objects = first_words(trace);
    for wait in &mut out.waits {
        let call = calls.get(wait.syscall);
        wait.kind = kind(wait, call, &owned, trace, classifier);
        if wait.kind == WaitKind::Condition {
            wait.lock = canonical(wait.lock, trace, &objects);
        }
    }
    learn_kinds(out);
    name_locks(out, trace, classifier);
    join_rewaits(out);
    exempt(out, trace);
    for (i, span) in out.owners.iter().enumerate() {
        out.extras.push((span.from, Extra::OwnerBegins(i as u32)));
        out.extras.push((span.to, Extra::OwnerEnds(i as u32)));
    }
    out.extras.sort_by_key(|e| e.0);
}

/// Meanings of system call numbers, looked up once.
struct CallTable(Vec<Syscall>);

impl CallTable {
    fn new(arch: &str) -> Self {
        CallTable((0..512).map(|n| Syscall::from_number(arch, n)).collect())
    }

    fn get(&self, number: i16) -> Syscall {
        let other = if number < 0 { Syscall::None } else { Syscall::Other };
        usize::try_from(number).ok().and_then(|n| self.0.get(n)).copied().unwrap_or(other)
    }
}

/// Locks of which an owner was ever seen.
fn owned_locks(out: &Intervals) -> Vec<bool> {
    let most = out.owners.iter().map(|s| s.lock.index()).max().map_or(0, |m| m + 1);
    let mut owned = vec![false; most];
    for span in &out.owners {
        owned[span.lock.index()] = true;
    }
    owned
}

fn kind(wait: &Wait, call: Syscall, owned: &[bool], trace: &Trace, classifier: &Classifier) -> WaitKind {
    let facts = classifier.facts(wait.stack);
    let is_kernel_lock = wait.lock != LockId::NONE
        && trace.locks.kind.get(wait.lock.index()).is_some_and(|&k| !matches!(k, LockKind::Futex | LockKind::Unknown));
    if is_kernel_lock || facts.kernel_lock {
        return WaitKind::Lock;
    }
    if wait.idle_state {
        return WaitKind::KernelIdle;
    }
    let by_call = kind_of_call(call, wait.io_wait);
    let known = match (by_call, facts.kind) {
        (Some(WaitKind::Futex | WaitKind::Unknown) | None, Some(kind)) => kind,
        // A write or read that blocks in the file system waits for the disk.
        (Some(WaitKind::Read | WaitKind::Write), Some(WaitKind::Disk)) => WaitKind::Disk,
        (Some(kind), _) => kind,
        (None, None) => WaitKind::Unknown,
    };
    match known {
        WaitKind::Futex if owned.get(wait.lock.index()).copied().unwrap_or(false) => WaitKind::Lock,
        WaitKind::Unknown if wait.context == WakeContext::Timer => WaitKind::Timer,
        kind => kind,
    }
}

/// The first lock of the dictionary within each 8 bytes of a process.
fn first_words(trace: &Trace) -> FxHashMap<(u32, u64), LockId> {
    let mut first = FxHashMap::default();
    for (i, lock) in trace.locks.rows().enumerate() {
        first.entry((lock.pid, lock.address & !7)).or_insert(LockId(i as u32));
    }
    first
}

/// glibc's condition variables wait on two words in turn: their key is the object.
fn canonical(lock: LockId, trace: &Trace, objects: &FxHashMap<(u32, u64), LockId>) -> LockId {
    let (Some(pid), Some(address)) = (trace.locks.pid.get(lock.index()), trace.locks.address.get(lock.index())) else {
        return lock;
    };
    objects.get(&(*pid, address & !7)).copied().unwrap_or(lock)
}

/// A futex wait without a stack is of the kind of the others on that futex.
fn learn_kinds(out: &mut Intervals) {
    let mut known: FxHashMap<LockId, WaitKind> = FxHashMap::default();
    for wait in &out.waits {
        if wait.lock != LockId::NONE && matches!(wait.kind, WaitKind::Lock | WaitKind::Condition | WaitKind::Join) {
            known.entry(wait.lock).or_insert(wait.kind);
        }
    }
    for wait in out.waits.iter_mut().filter(|w| w.kind == WaitKind::Futex) {
        wait.kind = known.get(&wait.lock).copied().unwrap_or(wait.kind);
    }
}

/// Locks of which the source has no address: one for each process, and one for the kernel's own, with ids behind
/// those of the trace.
fn name_locks(out: &mut Intervals, trace: &Trace, classifier: &Classifier) {
    let mut made: FxHashMap<u32, LockId> = FxHashMap::default();
    for wait in out.waits.iter_mut().filter(|w| w.kind == WaitKind::Lock && w.lock == LockId::NONE) {
        let call = Syscall::from_number(&trace.meta.host.arch, wait.syscall);
        let shared = call == Syscall::FileLock || classifier.facts(wait.stack).kernel_lock;
        let pid = if shared { 0 } else { trace.threads.pid[wait.thread.index()] };
        let next = LockId((trace.locks.len() + made.len()) as u32);
        wait.lock = *made.entry(pid).or_insert(next);
    }
}

/// Rule 12: a wait that times out and soon begins again on the same lock goes on.
fn join_rewaits(out: &mut Intervals) {
    let mut later: Vec<Option<usize>> = vec![None; out.last.len()];
    for i in (0..out.waits.len()).rev() {
        let next = later[out.waits[i].thread.index()].replace(i);
        let wait = out.waits[i];
        let timed_out = wait.context == WakeContext::Timer && wait.lock != LockId::NONE;
        if let Some(next) = next.filter(|_| timed_out) {
            let follow = out.waits[next];
            if follow.lock == wait.lock && follow.start.saturating_sub(wait.resumed) < REWAIT_NS {
                let wait = &mut out.waits[i];
                wait.goes_on = next as u32 + 1;
                wait.waker = follow.waker;
                wait.kind = follow.kind;
                (wait.open, wait.context) = (follow.open, follow.context);
            }
        }
    }
}

/// Joins, and waits that ended only so that the thread could exit.
fn exempt(out: &mut Intervals, trace: &Trace) {
    let mut last = vec![usize::MAX; out.last.len()];
    for (i, wait) in out.waits.iter().enumerate() {
        last[wait.thread.index()] = i;
    }
    for (i, wait) in out.waits.iter_mut().enumerate() {
        let joins = wait.kind == WaitKind::Join || ended_by_exit(wait, trace) || is_vfork(wait, trace);
        if joins {
            wait.kind = WaitKind::Join;
        }
        let exit = trace.threads.end.get(wait.thread.index()).map_or(u64::MAX, |e| e.nanos());
        let ends = last[wait.thread.index()] == i
            && exit != u64::MAX
            && exit.saturating_sub(wait.resumed) < EXIT_NS
            && wait.kind != WaitKind::Lock;
        wait.exempt = joins || ends || wait.kind == WaitKind::KernelIdle;
    }
}

/// A futex wait that a thread ended as the last thing it did: pthread_join without names.
fn ended_by_exit(wait: &Wait, trace: &Trace) -> bool {
    let end = trace.threads.end.get(wait.waker.index()).map_or(u64::MAX, |e| e.nanos());
    wait.kind == WaitKind::Futex && end != u64::MAX && end.abs_diff(wait.woken) < 100_000
}

/// vfork, clone and clone3 wait for the child to get going.
fn is_vfork(wait: &Wait, trace: &Trace) -> bool {
    let numbers: &[i16] = if trace.meta.host.arch == "aarch64" { &[220, 435] } else { &[56, 57, 58, 435] };
    numbers.contains(&wait.syscall) && !wait.io_wait && wait.kind == WaitKind::Unknown
}
