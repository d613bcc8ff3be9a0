//! `lock:contention_begin` and `contention_end`: kernel locks.

use holdup_trace::{KernelLockEvent, LockKey, LockKind};

use super::cpus::cpu;
use super::decoder::Decoder;
use super::fields::LockFields;
use super::plan::Sample;

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

impl Decoder<'_> {
    /// A sample of `contention_begin` or `contention_end`; `None` if it is damaged.
    pub fn lock(&mut self, f: &LockFields, begin: bool, s: &Sample) -> Option<()> {
        if !f.lock.is_within(s.raw) {
            return None;
        }
        let (tid, address) = (f.thread.low(s.raw), f.lock.value(s.raw));
        let flags = f.flags.map_or(0, |flags| flags.value(s.raw));
        let key = LockKey { kind: kind(flags), pid: 0, address };
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
        self.sink.timed(s.time, KernelLockEvent { cpu: cpu(s.cpu), tid, lock, begin, owner: 0 });
        Some(())
    }
}
