//! Numbers of Linux that the kernel's programs pass on as they are.
//!
//! A perf.data file says itself what its numbers mean, so that no importer needs these.

use holdup_trace::SwitchState;

/// FUTEX_WAIT, FUTEX_LOCK_PI, FUTEX_WAIT_BITSET, FUTEX_WAIT_REQUEUE_PI, FUTEX_LOCK_PI2.
const FUTEX_WAITS: [u8; 5] = [0, 6, 9, 11, 13];

/// The flag of a futex operation that says that no other process uses the futex.
pub(crate) const FUTEX_PRIVATE: u64 = 0x80;

/// Whether a futex operation, without its flags, waits.
pub(crate) fn is_futex_wait(operation: u8) -> bool {
    FUTEX_WAITS.contains(&operation)
}

/// Whether it waits for a mutex that holds its owner: FUTEX_LOCK_PI, FUTEX_LOCK_PI2.
pub(crate) fn locks_by_owner(operation: u8) -> bool {
    matches!(operation, 6 | 13)
}

/// From the bits of `task_struct.__state`, which are not those that `sched_switch` prints.
pub(crate) fn task_state(bits: u16) -> SwitchState {
    match bits {
        0 => SwitchState::Runnable,
        b if b & 0x80 != 0 => SwitchState::Dead,
        b if b & 0x01 != 0 => SwitchState::Sleeping,
        b if b & 0x0c != 0 => SwitchState::Stopped,
        b if b & 0x402 == 0x402 => SwitchState::Idle,
        b if b & 0x1002 != 0 => SwitchState::Uninterruptible,
        b if b & 0x30 != 0 => SwitchState::Dead,
        b if b & 0x40 != 0 => SwitchState::Idle,
        b if b & 0x8000 != 0 => SwitchState::Stopped,
        // TASK_WAKING, where the kernel has no state argument: it was woken while it fell asleep.
        _ => SwitchState::Sleeping,
    }
}
