//! What a thread's chain ends at, and whether that holds it up.

use holdup_trace::{LockId, StackId, ThreadIdx};

use super::super::cells::{Key, Terminal};
use super::super::forest::{NONE, Role};
use super::super::terminal;
use super::Sweep;
use crate::classify::{Verdict, WaitKind};
use crate::intervals::State;

impl Sweep<'_> {
    pub(super) fn is_handoff(&self, w: u32) -> bool {
        let wait = &self.intervals.waits[w as usize];
        wait.kind == WaitKind::Lock && !wait.exempt
    }

    /// Whether it is a thread of the focus that could run and does not.
    pub(super) fn is_ready(&self, i: u32, state: State) -> bool {
        let ready = match state {
            State::Runnable(_) => true,
            State::Woken(w) => !self.is_handoff(w),
            _ => false,
        };
        ready && self.focus.contains(ThreadIdx(i))
    }

    /// How many threads of the focus have something to do, or wait for what no thread's work can give them.
    pub(super) fn at_work(&self) -> usize {
        self.running_focus + self.runnable + self.held - self.held_by_work + self.outside
    }

    /// Key, role and wait of a node whose chain ends at `root` over `edge`.
    pub(super) fn judge(&mut self, i: u32, root: u32, edge: u32, hops: usize) -> (Option<Key>, Role, u32) {
        let thread = ThreadIdx(i);
        let inside = self.focus.contains(thread);
        match self.forest.at(i).state {
            State::Waiting(w) => {
                let key = self.key(root, edge, w, hops);
                let terminal = key.terminal;
                let wait = &self.intervals.waits[w as usize];
                let holds = match self.classifier.facts(wait.stack).verdict {
                    Some(verdict) => verdict == Verdict::Work,
                    None => terminal.holds_up() && !self.is_outside_input(i, w),
                };
                let role = match holds {
                    _ if !inside || wait.exempt => Role::None,
                    true => Role::HeldUp,
                    false => Role::Idle,
                };
                (Some(self.own_key(key, role, i, w)), role, w)
            }
            State::Woken(w) if self.is_handoff(w) => {
                let wait = &self.intervals.waits[w as usize];
                let (lock, kind) = (wait.lock, wait.kind);
                let key = Key { terminal: Terminal::Handoff, thread, lock, kind, site: StackId::NONE };
                (Some(key), if inside { Role::HeldUp } else { Role::None }, w)
            }
            State::Runnable(_) | State::Woken(_) if inside => {
                let queued = self.forest.at(i).behind == 0;
                let site = StackId::NONE;
                let key =
                    Key { terminal: Terminal::Runnable, thread, lock: LockId::NONE, kind: WaitKind::Unknown, site };
                (Some(key), if queued { Role::Queued } else { Role::None }, NONE)
            }
            _ => (None, Role::None, NONE),
        }
    }

    /// Waits that hold nobody up are told apart by where they are, not by what ends them.
    pub(super) fn own_key(&self, key: Key, role: Role, i: u32, w: u32) -> Key {
        let wait = &self.intervals.waits[w as usize];
        match role {
            // Held up by the user's word: what for, only the place tells.
            Role::HeldUp if !key.terminal.holds_up() => {
                Key { terminal: Terminal::Timer, thread: ThreadIdx(i), site: wait.stack, ..key }
            }
            Role::Idle => Key {
                terminal: Terminal::IdleByDesign,
                thread: ThreadIdx(i),
                lock: LockId::NONE,
                kind: wait.kind,
                site: wait.stack,
            },
            _ => key,
        }
    }

    /// Input from outside the focus is awaited by design.
    pub(super) fn is_outside_input(&self, i: u32, w: u32) -> bool {
        let parent = self.forest.at(i).parent;
        self.intervals.waits[w as usize].kind == WaitKind::Input
            && parent != NONE
            && !self.focus.contains(ThreadIdx(parent))
    }

    /// The cell of a chain from a wait `w` to `root`, whose last edge is that of the thread `edge`.
    pub(super) fn key(&self, root: u32, edge: u32, w: u32, hops: usize) -> Key {
        let edge_wait = match self.forest.at(edge).state {
            State::Waiting(e) => &self.intervals.waits[e as usize],
            _ => &self.intervals.waits[w as usize],
        };
        let (lock, kind) = (edge_wait.lock, edge_wait.kind);
        let mut key = Key { terminal: Terminal::Unknown, thread: ThreadIdx(root), lock, kind, site: StackId::NONE };
        let proxy = hops > 0 && self.focus.is_kernel(ThreadIdx(root)) && !self.focus.is_kernel(ThreadIdx(edge));
        match self.forest.at(root).state {
            _ if proxy && kind == WaitKind::Disk => {
                (key.terminal, key.thread, key.site) = (Terminal::Disk, ThreadIdx(edge), edge_wait.stack);
            }
            State::Running(_) => key.terminal = Terminal::Running,
            State::Runnable(_) => key.terminal = Terminal::NotRunning,
            State::Woken(i) if self.is_handoff(i) => key.terminal = Terminal::Handoff,
            // On its way to a CPU, which is not starving.
            State::Woken(_) => key.terminal = Terminal::Running,
            State::Waiting(end) => {
                let end = &self.intervals.waits[end as usize];
                (key.terminal, key.site) =
                    (terminal::of_wait(end, hops, kind == WaitKind::Lock && hops > 0), end.stack);
                if proxy && key.terminal == Terminal::Disk {
                    (key.thread, key.site) = (ThreadIdx(edge), edge_wait.stack);
                }
            }
            State::Unknown | State::Gone => {}
        }
        key
    }
}
