//! Where charges are collected: one cell for each way of being held up.

use holdup_trace::{LockId, StackId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::classify::WaitKind;

/// What a chain ends at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Terminal {
    /// A thread that runs.
    Running,
    /// A thread that could run and does not.
    NotRunning,
    /// A thread that has just been woken for the lock.
    Handoff,
    /// A disk.
    Disk,
    /// The timer of another thread.
    Timer,
    /// A lock whose holder is not known.
    UnknownHolder,
    /// CPU time of the lock's own machinery.
    Overhead,
    /// Runnable, and nobody waits for it.
    Runnable,
    /// Not held up: the wait is idle by design.
    IdleByDesign,
    /// Not known.
    Unknown,
}

/// What identifies a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// What the chain ends at.
    pub terminal: Terminal,
    /// The thread at the chain's end, or the one that the finding is about.
    pub thread: ThreadIdx,
    /// The lock of the chain's last wait.
    pub lock: LockId,
    /// The kind of the chain's last wait.
    pub kind: WaitKind,
    /// Where the terminal waits, if it waits.
    pub site: StackId,
}

impl Key {
    /// Whether one waits for a thread that has work to do, not for a lock, a disk or a time.
    pub(crate) fn is_for_thread(&self) -> bool {
        let runs = matches!(self.terminal, Terminal::Running | Terminal::NotRunning | Terminal::Handoff);
        runs && self.kind != WaitKind::Lock
    }
}

/// What was charged.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// Thread nanoseconds of waiting.
    pub thread_ns: u64,
    /// CPU nanoseconds of the sum.
    pub cpu_ns: f64,
    /// CPU nanoseconds for the ranking, where neighbours count as idle.
    pub rank_ns: f64,
    /// CPU nanoseconds without work, within the parallelism that the program reached elsewhere.
    pub idle_ns: f64,
    /// How many waits.
    pub waits: u64,
    /// The longest of them in nanoseconds.
    pub longest_ns: u64,
    /// Whose.
    pub threads: FxHashSet<ThreadIdx>,
    /// When, latest first, in nanoseconds.
    pub windows: Vec<(u64, u64)>,
    /// One of the stacks where waiters blocked, by how often.
    pub wait_stacks: FxHashMap<StackId, u64>,
    /// Samples of the terminal, weighted by blame in nanoseconds.
    pub samples: FxHashMap<StackId, f64>,
    /// The last stack counted, and how often since it was written to the map.
    run: (StackId, u64),
    active: u32,
    since: u64,
}

impl Cell {
    /// Counts a waiter's stack. Equal stacks come in runs.
    pub(super) fn count_stack(&mut self, stack: StackId) {
        if self.run.0 == stack {
            self.run.1 += 1;
            return;
        }
        self.flush_stacks();
        self.run = (stack, 1);
    }

    pub(super) fn flush_stacks(&mut self) {
        let (stack, n) = std::mem::take(&mut self.run);
        if stack != StackId::NONE {
            *self.wait_stacks.entry(stack).or_default() += n;
        }
    }
}

/// All cells by key.
#[derive(Debug, Default)]
pub(super) struct Cells {
    index: FxHashMap<Key, u32>,
    pub(super) keys: Vec<Key>,
    pub(super) cells: Vec<Cell>,
    /// Windows closer than this are one, in nanoseconds.
    gap: u64,
}

impl Cells {
    pub(super) fn new(gap: u64) -> Self {
        Cells { gap, ..Cells::default() }
    }

    pub(super) fn id(&mut self, key: Key) -> u32 {
        let Cells { index, keys, cells, .. } = self;
        *index.entry(key).or_insert_with(|| {
            keys.push(key);
            cells.push(Cell::default());
            keys.len() as u32 - 1
        })
    }

    /// One more thread is charged here from `t` on, going backwards.
    pub(super) fn enter(&mut self, id: u32, t: u64) {
        let cell = &mut self.cells[id as usize];
        if cell.active == 0 {
            cell.since = t;
        }
        cell.active += 1;
    }

    /// One thread less, at the earlier time `t`.
    pub(super) fn leave(&mut self, id: u32, t: u64) {
        let gap = self.gap;
        let cell = &mut self.cells[id as usize];
        cell.active -= 1;
        if cell.active > 0 || cell.since == t {
            return;
        }
        match cell.windows.last_mut() {
            Some(last) if last.0 <= cell.since.saturating_add(gap) => last.0 = last.0.min(t),
            _ => cell.windows.push((t, cell.since)),
        }
    }
}
