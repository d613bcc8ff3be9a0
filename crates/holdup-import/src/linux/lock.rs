//! `lock:contention_begin` and `contention_end`: kernel locks.

use holdup_trace::{KernelLockEvent, LockKey, LockKind};

use super::Instant;
use super::cpus::cpu;
use super::fields::LockFields;
use super::kernel::Kernel;

/// The kind by the `LCB_F_*` flags.
fn kind(flags: u64) -> LockKind {
    const SPIN: u64 = 1;
    const READ_OR_WRITE: u64 = 2 | 4;
    const RT_OR_PER_CPU: u64 = 8 | 16;
    const MUTEX: u64 = 32;
    match flags {
        f if f & MUTEX != 0 => LockKind::KernelMutex,
        f if f & SPIN != 0 => LockKind::Spinlock,
        f if f & RT_OR_PER_CPU != 0 => LockKind::Other,
        f if f & READ_OR_WRITE != 0 => LockKind::Rwsem,
        _ => LockKind::Other,
    }
}

impl Kernel<'_> {
    /// `contention_begin` or `contention_end`, as the kernel lays it out; `None` if it is damaged.
    pub fn lock(&mut self, f: &LockFields, begin: bool, at: Instant, raw: &[u8]) -> Option<()> {
        if !f.lock.is_within(raw) {
            return None;
        }
        let flags = f.flags.map(|flags| flags.value(raw));
        self.contention(at, f.thread.low(raw), (f.lock.value(raw), flags), begin);
        Some(())
    }

    /// `tid` begins to contend for the lock at `address`, or has got it. Flags come only with the begin.
    pub fn contention(&mut self, at: Instant, tid: u32, (address, flags): (u64, Option<u64>), begin: bool) {
        let key = LockKey { kind: kind(flags.unwrap_or(0)), pid: 0, address };
        // The end does not tell the lock's kind.
        let lock = match (begin, self.contended.get(&tid)) {
            (false, Some(&(started, lock))) if started == address => lock,
            _ => self.sink.builder.lock(key),
        };
        if begin {
            self.contended.insert(tid, (address, lock));
        } else {
            self.contended.remove(&tid);
        }
        self.sink.timed(at.time, KernelLockEvent { cpu: cpu(at.cpu), tid, lock, begin, owner: 0 });
    }
}
