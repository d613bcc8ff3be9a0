//! What a chain ends at, and whether that holds anybody up.

use holdup_trace::{LockId, StackId, ThreadIdx};

use super::super::forest::{Class, NONE, Role};
use super::super::key::{Key, Terminal};
use super::super::terminal;
use super::Sweep;
use crate::classify::{Verdict, WaitKind};
use crate::intervals::{Place, State, Wait};

impl Sweep<'_> {
    /// How a waiting thread counts.
    fn class(&self, i: u32, wait: &Wait) -> Class {
        self.in_focus(i, self.class_anywhere(wait))
    }

    /// How thread `i` counts that would count so in focus.
    pub(super) fn in_focus(&self, i: u32, class: Class) -> Class {
        if self.contains(i) { class } else { Class::None }
    }

    /// How a waiting thread counts in focus.
    pub(super) fn class_anywhere(&self, wait: &Wait) -> Class {
        if wait.exempt {
            return Class::None;
        }
        match wait.verdict {
            Some(Verdict::Work) => Class::HeldUp,
            Some(Verdict::Idle) => Class::Idle,
            // Nobody is held up where a runtime's own thread waits: for those that wait for it, it is charged to its end.
            None if self.is_of_runtime(wait.thread) => Class::Idle,
            None if is_held_up_there(wait) => Class::HeldUp,
            None => Class::ByEnd,
        }
    }

    /// Whether a runtime keeps the thread for itself.
    fn is_of_runtime(&self, thread: ThreadIdx) -> bool {
        self.study.classifier.role(thread).is_some()
    }

    /// Whether the waker of this wait sends its thread what it waits for by design: its work, and no answer that it cannot
    /// go on without. Clients send their servers work. Where it is not known who serves, whoever is out of focus sends.
    pub(super) fn is_input(&self, wait: &Wait) -> bool {
        let by = wait.waker.0;
        if wait.verdict == Some(Verdict::Work) || is_held_up_there(wait) {
            return false;
        }
        let timeline = self.study.timeline;
        match (timeline.is_server(wait.thread), timeline.is_server(wait.waker)) {
            (Some(true), Some(false)) => wait.kind.is_for_input(),
            // Of two servers one asks the other, or nobody would have been woken; who came and went between two looks at all sockets
            // is most likely a client.
            (_, Some(true)) => false,
            _ => wait.kind == WaitKind::Input && !self.contains(by),
        }
    }

    /// Whether the world outside, a disk or a short time is to end a wait: something that no thread's work can give.
    pub(super) fn is_for_outside(&self, wait: &Wait) -> bool {
        match wait.kind {
            WaitKind::Disk | WaitKind::PageFault => true,
            WaitKind::Timer => terminal::is_nap(wait),
            kind if kind.is_for_input() && wait.is_timed_out() => terminal::is_nap(wait),
            kind if kind.is_for_input() => !wait.open && !self.contains(wait.waker.0),
            _ => false,
        }
    }

    pub(super) fn waits_for_outside(&self, i: u32) -> bool {
        matches!(self.forest.at(i).state, State::Waiting(w) if self.is_for_outside(self.wait(w)))
    }

    /// Key and role of a thread that waits in no queue.
    pub(super) fn judge(&self, i: u32) -> Option<(Key, Role)> {
        let thread = ThreadIdx(i);
        let inside = self.contains(i);
        match self.forest.at(i).state {
            State::Waiting(w) => Some(self.judge_wait(i, self.wait(w))),
            State::Woken(w) if self.is_handoff(w) => {
                let Wait { lock, kind, .. } = *self.wait(w);
                let key = Key { terminal: Terminal::Handoff, thread, lock, kind, site: StackId::NONE };
                Some((key, if inside && !self.is_of_runtime(thread) { Role::HeldUp } else { Role::None }))
            }
            State::Runnable(_) | State::Woken(_) if inside => {
                // Which of the ways to be ready it is, shows when it is over.
                let terminal = Terminal::Stalled;
                let key = Key { terminal, thread, lock: LockId::NONE, kind: WaitKind::Unknown, site: StackId::NONE };
                Some((key, if self.forest.at(i).behind == 0 { Role::Queued } else { Role::None }))
            }
            _ => None,
        }
    }

    fn judge_wait(&self, i: u32, wait: &Wait) -> (Key, Role) {
        let terminal = terminal::of_wait(wait, 0, false);
        let role = match self.class(i, wait) {
            Class::None => Role::None,
            Class::HeldUp => Role::HeldUp,
            Class::ByEnd if terminal.holds_up() => Role::HeldUp,
            Class::ByEnd | Class::Idle => Role::Idle,
        };
        let key = match role {
            Role::Idle => self.idle_key(i, wait),
            Role::HeldUp if !terminal.holds_up() => held_up_key(i, wait),
            _ => Key { terminal, thread: ThreadIdx(i), lock: lock_of(wait), kind: wait.kind, site: wait.stack },
        };
        (key, role)
    }

    /// Waits that hold nobody up are told apart by where they are, not by who ends them. Who sets itself a time sleeps, by whatever means, but
    /// where its functions say that it waits for work. So does a client that looks for input until then, and has something to do afterwards.
    pub(super) fn idle_key(&self, i: u32, wait: &Wait) -> Key {
        let looks = || wait.kind.is_for_input() && self.study.timeline.is_server(wait.thread) != Some(false);
        let sleeps = wait.is_timed_out() && wait.verdict != Some(Verdict::Idle) && !looks();
        let kind = if sleeps { WaitKind::Timer } else { wait.kind };
        Key { terminal: Terminal::IdleByDesign, thread: ThreadIdx(i), lock: LockId::NONE, kind, site: wait.stack }
    }

    /// What a queue next to a root waits for if it is held up wherever its chain ends.
    pub(super) fn end_at(&self, q: u32) -> Terminal {
        let root = self.forest.queue(q).parent;
        match (root != NONE).then(|| self.forest.at(root).state) {
            Some(State::Waiting(w)) => end_at(self.wait(w)),
            _ => Terminal::Outside,
        }
    }

    /// Whether a server waits for input where it begins.
    pub(super) fn serves_at_home(&self, wait: &Wait) -> bool {
        let serves = || self.study.timeline.is_server(wait.thread) == Some(true);
        wait.place == Place::Home && wait.kind.is_for_input() && serves()
    }

    /// What a queue next to a root waits for.
    pub(super) fn edge_key(&self, q: u32) -> Key {
        let queue = self.forest.queue(q);
        let (kind, lock) = (queue.kind.kind, queue.kind.lock);
        if queue.parent == NONE {
            let thread = ThreadIdx(queue.member);
            let stuck = self.forest.at(queue.member).state.wait().is_some_and(|w| self.wait(w).open);
            let terminal = if stuck { Terminal::Stuck } else { Terminal::UnknownHolder };
            return Key { terminal, thread, lock, kind, site: if stuck { queue.member_site } else { StackId::NONE } };
        }
        let mut key =
            Key { terminal: Terminal::Unknown, thread: ThreadIdx(queue.parent), lock, kind, site: StackId::NONE };
        // The kernel's own thread works for those who wait for it.
        let focus = self.study.focus;
        let proxy = focus.is_kernel(key.thread) && !focus.is_kernel(ThreadIdx(queue.member));
        match self.forest.at(queue.parent).state {
            _ if proxy && kind == WaitKind::Disk => key.terminal = Terminal::Disk,
            State::Running(_) => key.terminal = Terminal::Running,
            State::Runnable(_) | State::Yields(_) => key.terminal = Terminal::NotRunning,
            State::Woken(w) if self.is_handoff(w) => key.terminal = Terminal::Handoff,
            State::Woken(w) if terminal::is_for_disk(self.wait(w)) => {
                (key.terminal, key.site) = (Terminal::Disk, self.wait(w).stack);
            }
            State::Woken(_) => key.terminal = Terminal::Waking,
            State::Waiting(end) => {
                let end = self.wait(end);
                (key.terminal, key.site) = (terminal::of_wait(end, 1, kind == WaitKind::Lock), end.stack);
                // Who keeps house gives work now and then, and began none before; and a server at home has nothing to do until then, but for what
                // it asked another: that one sleeps in the middle of its answer.
                let keeps_house = end.verdict == Some(Verdict::Idle) || queue.kind.at_home && end.place == Place::Home;
                // A client to which nobody sends anything sends others its messages at a pace of its own.
                let timeline = self.study.timeline;
                let sends = queue.passed_on
                    && end.kind == WaitKind::Timer
                    && end.place != Place::Middle
                    && timeline.is_server(end.thread) == Some(false)
                    && !timeline.is_fed(end.stack);
                if key.terminal == Terminal::Timer && (keeps_house || sends) && kind != WaitKind::Lock {
                    key.terminal = Terminal::IdleByDesign;
                }
            }
            State::Unknown | State::Gone => {}
        }
        if proxy && key.terminal == Terminal::Disk {
            (key.thread, key.site) = (ThreadIdx(queue.member), queue.member_site);
        }
        key
    }
}

/// The lock of a wait for one.
pub(super) fn lock_of(wait: &Wait) -> LockId {
    if wait.kind == WaitKind::Lock { wait.lock } else { LockId::NONE }
}

/// Held up at this place, by nobody in the trace: what for, only the place tells.
pub(super) fn held_up_key(i: u32, wait: &Wait) -> Key {
    let terminal = end_at(wait);
    Key { terminal, thread: ThreadIdx(i), lock: lock_of(wait), kind: wait.kind, site: wait.stack }
}

/// What holds up others where a thread waits for no other: a time that it set itself, or something from outside.
fn end_at(wait: &Wait) -> Terminal {
    if wait.kind == WaitKind::Timer || wait.is_timed_out() { Terminal::Timer } else { Terminal::Outside }
}

/// Whether its thread cannot be idle by design at this place.
fn is_held_up_there(wait: &Wait) -> bool {
    match wait.place {
        Place::Middle => true,
        Place::Unsure if wait.kind == WaitKind::Timer => terminal::is_nap(wait),
        Place::Unsure => true,
        Place::Home => false,
    }
}
