//! In which system call each thread is, from `raw_syscalls:*` or `syscalls:*`.

use holdup_trace::SwitchState;
use rustc_hash::FxHashMap;

/// The last entry or exit of each thread.
#[derive(Debug, Default)]
pub struct Calls {
    /// When, and the system call; -1 after an exit.
    last: FxHashMap<u32, (u64, i16)>,
    /// Whether exits are in the trace.
    pub with_exits: bool,
}

impl Calls {
    /// A system call begins (its number) or ends (-1). Threads change CPUs, and each CPU's records are read on their
    /// own, so an older report may follow a newer one.
    pub fn seen(&mut self, t: u64, tid: u32, call: i16) {
        let last = self.last.entry(tid).or_insert((t, call));
        if last.0 <= t {
            *last = (t, call);
        }
    }

    /// The system call that a thread blocks in; -1 for none or unknown.
    #[inline]
    pub fn blocked_in(&self, tid: u32, state: SwitchState) -> i16 {
        // Without exits an old call may look like the present one; a sleep is hardly anything but a call.
        if self.last.is_empty() || !(state == SwitchState::Sleeping || self.with_exits && state.is_blocked()) {
            return -1;
        }
        self.last.get(&tid).map_or(-1, |&(_, call)| call)
    }
}
