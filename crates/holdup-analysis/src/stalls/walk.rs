//! What a wait is for, at an instant: the end of its chain.

use holdup_trace::{LockId, StackId, ThreadIdx};

use super::INSTANTS;
use super::look::Look;
use super::record::{End, How, add};
use crate::classify::WaitKind;
use crate::intervals::{Place, State, Wait};

/// A longer chain is a circle.
const LONGEST_CHAIN: usize = 64;

/// What `end` says at evenly spread instants of `from..to`, as far as they lie in the part, each for its share of the time.
pub(super) fn ends(look: &Look, from: u64, to: u64, mut end: impl FnMut(u64) -> End) -> Vec<(End, u64)> {
    let mut ends = Vec::new();
    let length = to.saturating_sub(from);
    let last = look.chunk.to >= look.study.timeline.end;
    for i in 0..INSTANTS {
        let t = from + (length as f64 * (i as f64 + 0.5) / INSTANTS as f64) as u64;
        if t >= look.chunk.from && (t < look.chunk.to || last) {
            add(&mut ends, end(t), (length / INSTANTS).max(1));
        }
    }
    ends
}

/// What the wait is for at `t`.
pub(super) fn of_wait(look: &Look, wait: &Wait, t: u64) -> End {
    let mut present = *wait;
    for _ in 0..LONGEST_CHAIN {
        let lock = if present.kind == WaitKind::Lock { present.lock } else { LockId::NONE };
        // What waits for a disk waits for it, whoever of the kernel's threads brings the news.
        let holder = if is_disk(&present) { None } else { holder(look, &present, t) };
        let Some(holder) = holder else {
            return end_of(&present);
        };
        let of = |how, stack| End { how, thread: holder, lock, stack };
        match look.state(holder, t) {
            State::Running(_) | State::Woken(_) => return of(How::Runs, look.ran(holder, t)),
            State::Runnable(_) | State::Yields(_) => return of(How::HasNoCpu, StackId::NONE),
            State::Waiting(next) => present = look.chunk.waits()[next as usize],
            State::Unknown | State::Gone => return of(How::Unknown, StackId::NONE),
        }
    }
    End { how: How::Unknown, thread: present.thread, lock: LockId::NONE, stack: present.stack }
}

/// The same for a thread that may be idle itself: who waits for one that waits for the outside, or sleeps, is idle with
/// it at home, but not in the middle of its work.
pub(super) fn of_own_wait(look: &Look, wait: &Wait, t: u64) -> End {
    let end = of_wait(look, wait, t);
    let busy = wait.kind == WaitKind::Lock || wait.place == Place::Middle && wait.waker.is_real();
    let idle = matches!(end.how, How::Sleeps | How::Outside) && !busy;
    if idle { End { how: How::Idle, ..end } } else { end }
}

/// What a thread that is at work is about at `t`: itself, or what it waits for.
pub(super) fn of_work(look: &Look, thread: ThreadIdx, t: u64) -> End {
    let of = |how, stack| End { how, thread, lock: LockId::NONE, stack };
    match look.state(thread, t) {
        State::Running(_) | State::Woken(_) => of(How::Runs, look.ran(thread, t)),
        State::Runnable(_) | State::Yields(_) => of(How::HasNoCpu, StackId::NONE),
        State::Waiting(w) => of_wait(look, &look.chunk.waits()[w as usize], t),
        State::Unknown | State::Gone => of(How::Unknown, StackId::NONE),
    }
}

/// Whom the wait is for at `t`: the lock's owner where one is known, else who will end it.
fn holder(look: &Look, wait: &Wait, t: u64) -> Option<ThreadIdx> {
    let owner = || look.owner(wait.lock, t).filter(|&owner| owner != wait.thread);
    let owner = if wait.kind == WaitKind::Lock { owner() } else { None };
    owner.or(Some(wait.waker).filter(|&w| w.is_real() && w != wait.thread))
}

fn is_disk(wait: &Wait) -> bool {
    wait.kind == WaitKind::Disk || wait.kind == WaitKind::PageFault && !wait.waker.is_real()
}

/// The end of a chain whose last wait is for no thread.
fn end_of(last: &Wait) -> End {
    let how = match last.kind {
        _ if is_disk(last) => How::Disk,
        // Who looks for it again and again, until a time-out, does not sleep.
        WaitKind::Lock => How::Lock,
        WaitKind::Timer => How::Sleeps,
        WaitKind::Stopped => How::Stopped,
        _ if last.is_timed_out() => How::Sleeps,
        _ => How::Outside,
    };
    End { how, thread: last.thread, lock: last.lock, stack: last.stack }
}
