//! What a chain ends at, and whether that holds anybody up.

use holdup_trace::WakeContext;

use super::key::Terminal;
use crate::classify::WaitKind;
use crate::intervals::{LONGEST_NAP_NS, Place, Wait};

/// The end of a chain whose last thread waits for no thread. `hops` is 0 for that thread itself; `locked` tells that
/// the others wait for a lock that it holds.
pub(super) fn of_wait(wait: &Wait, hops: usize, locked: bool) -> Terminal {
    let sleep = locked || is_nap(wait) || wait.place == Place::Middle;
    match wait.kind {
        WaitKind::Disk => Terminal::Disk,
        // A fault that an interrupt ended brought a page from a disk.
        WaitKind::PageFault => Terminal::Disk,
        WaitKind::Stopped => Terminal::Stopped,
        WaitKind::Lock if wait.open => Terminal::Stuck,
        WaitKind::Lock if !wait.is_timed_out() => Terminal::UnknownHolder,
        WaitKind::Timer | WaitKind::Lock | WaitKind::Futex | WaitKind::Condition if wait.is_timed_out() => {
            own_timer(hops, sleep)
        }
        WaitKind::Timer if !wait.open => own_timer(hops, sleep),
        WaitKind::Unknown if !wait.open && wait.context == WakeContext::Unknown => Terminal::Unknown,
        // Whoever waits for input that does not come for a time that it set itself sleeps, as with `select`.
        _ if wait.place == Place::Middle && wait.is_timed_out() => Terminal::Timer,
        _ if wait.place == Place::Middle => Terminal::Outside,
        _ => Terminal::IdleByDesign,
    }
}

/// Whether a disk was waited for.
pub(super) fn is_for_disk(wait: &Wait) -> bool {
    wait.kind == WaitKind::Disk || wait.kind == WaitKind::PageFault && !wait.waker.is_real()
}

/// Whether a sleep is short enough to be a look at something now and then.
pub(super) fn is_nap(wait: &Wait) -> bool {
    wait.woken.saturating_sub(wait.start) <= LONGEST_NAP_NS
}

/// Who sleeps by its own timer does so by design; who waits for a sleeper is held up.
fn own_timer(hops: usize, held_up: bool) -> Terminal {
    if hops == 0 || !held_up { Terminal::IdleByDesign } else { Terminal::Timer }
}

impl Terminal {
    /// Whether a chain that ends here holds its threads up.
    pub fn holds_up(self) -> bool {
        use Terminal::*;
        matches!(
            self,
            Running | NotRunning | Stopped | Handoff | Waking | Disk | Timer | UnknownHolder | Stuck | Serial | Outside
        )
    }
}
