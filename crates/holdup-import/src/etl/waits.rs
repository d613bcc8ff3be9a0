//! Why a thread left its CPU, by Windows' numbers.

use holdup_trace::{SwitchState, Syscall};

/// `KTHREAD_STATE`: only some leave a CPU.
mod state {
    pub const TERMINATED: u8 = 4;
    pub const WAITING: u8 = 5;
    pub const TRANSITION: u8 = 6;
}

/// `KWAIT_REASON`: each has a number for waits in the kernel, and one that is 7 higher for those that a driver or system call asked for.
mod reason {
    pub const PAGE_IN: [u8; 2] = [2, 9];
    pub const SUSPENDED: [u8; 2] = [5, 12];
}

/// What a wait is: the state that the thread is in, whether it waits for a disk, and the reason as the column of system calls has it.
#[inline]
pub fn of(state: u8, reason: u8) -> (SwitchState, bool, i16) {
    match state {
        state::TERMINATED => (SwitchState::Dead, false, -1),
        state::WAITING | state::TRANSITION => {
            let io_wait = reason::PAGE_IN.contains(&reason);
            let state = match reason {
                _ if io_wait => SwitchState::Uninterruptible,
                _ if reason::SUSPENDED.contains(&reason) => SwitchState::Stopped,
                _ => SwitchState::Sleeping,
            };
            (state, io_wait, Syscall::number_of_wait_reason(reason))
        }
        // Ready, running or standing by: it was preempted, or gave way.
        _ => (SwitchState::Runnable, false, -1),
    }
}
