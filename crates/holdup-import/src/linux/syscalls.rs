//! In which system call each thread is, from `raw_syscalls:*` or `syscalls:*`, and on which futex.

use holdup_trace::{LockKey, LockKind, SwitchState};
use rustc_hash::FxHashMap;

/// The first two arguments of `futex`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Futex {
    /// Where it lies.
    pub address: u64,
    /// The operation with its flags.
    pub operation: u32,
}

/// `FUTEX_PRIVATE_FLAG`: no other process uses it.
const PRIVATE: u32 = 0x80;
/// `FUTEX_CLOCK_REALTIME`.
const REALTIME: u32 = 0x100;
/// `FUTEX_WAIT`, `FUTEX_LOCK_PI`, `FUTEX_WAIT_BITSET`, `FUTEX_WAIT_REQUEUE_PI`, `FUTEX_LOCK_PI2`.
const WAITS: [u32; 5] = [0, 6, 9, 11, 13];

impl Futex {
    /// The operation without its flags, if it is one that waits.
    pub fn waits(self) -> Option<u8> {
        let operation = self.operation & !(PRIVATE | REALTIME);
        WAITS.contains(&operation).then_some(operation as u8)
    }

    /// What identifies it, used by a thread of the process `pid`.
    pub fn key(self, pid: u32) -> LockKey {
        let pid = if self.operation & PRIVATE != 0 { pid } else { 0 };
        LockKey { kind: LockKind::Futex, pid, address: self.address }
    }
}

/// A thread enters a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Its number; -1 for none.
    pub number: i16,
    /// Which futex it is about, and in which process, where the trace tells.
    pub futex: Option<(Futex, u32)>,
}

impl Call {
    /// No system call, or it is not known which.
    pub const NONE: Call = Call { number: -1, futex: None };

    /// The call of this number; one that does not fit is not known.
    pub fn of(number: i64) -> Call {
        Call { number: i16::try_from(number).unwrap_or(-1), futex: None }
    }
}

/// The last entry or exit of each thread.
#[derive(Debug, Default)]
pub struct Calls {
    /// When, and the system call; none after an exit.
    last: FxHashMap<u32, (u64, Call)>,
    /// Whether exits are in the trace.
    pub with_exits: bool,
}

impl Calls {
    /// A system call begins, or ends ([`Call::NONE`]). Threads change CPUs, and each CPU's records are read on their
    /// own, so an older report may follow a newer one.
    pub fn seen(&mut self, t: u64, tid: u32, call: Call) {
        let last = self.last.entry(tid).or_insert((t, call));
        if last.0 <= t {
            *last = (t, call);
        }
    }

    /// The system call that a thread blocks in.
    #[inline]
    pub fn blocked_in(&self, tid: u32, state: SwitchState) -> Call {
        // Without exits an old call may look like the present one; a sleep is hardly anything but a call.
        if self.last.is_empty() || !(state == SwitchState::Sleeping || self.with_exits && state.is_blocked()) {
            return Call::NONE;
        }
        self.last.get(&tid).map_or(Call::NONE, |&(_, call)| call)
    }
}
