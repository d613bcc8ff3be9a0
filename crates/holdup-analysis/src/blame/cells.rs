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
    /// A thread that runs while others of its program have nothing to do: nobody waits for it, and yet CPUs are idle because
    /// of what it does.
    Serial,
    /// A thread that has just been woken and is on its way to a CPU that is idle.
    Waking,
    /// Runnable, nobody waits for it, and the CPU on which it is to run is idle for longer.
    Stalled,
    /// The same for a moment, where another CPU is idle on which it may run.
    Turn,
    /// The same for longer.
    Misplaced,
    /// The same, where only CPUs are idle on which it may not run.
    Barred,
    /// The same, where none is idle and others run.
    Starved,
    /// The world outside, waited for in the middle of work by one whom others may wait for.
    Outside,
    /// Not held up: the wait is idle by design.
    IdleByDesign,
    /// Not known.
    Unknown,
}

/// What identifies a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// What the chain ends at.
    pub terminal: Terminal,
    /// The thread at the chain's end, or the one that the finding is about.
    pub thread: ThreadIdx,
    /// The lock of the chain's last wait, if that is for a lock.
    pub lock: LockId,
    /// The kind of the chain's last wait.
    pub kind: WaitKind,
    /// Where the terminal waits, if it waits.
    pub site: StackId,
}

impl Key {
    /// Whether one waits for a thread that has work to do, not for a lock, a disk or a time.
    pub(crate) fn is_for_thread(&self) -> bool {
        let runs =
            matches!(self.terminal, Terminal::Running | Terminal::NotRunning | Terminal::Handoff | Terminal::Waking);
        self.terminal == Terminal::Serial || runs && self.kind != WaitKind::Lock
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

/// What is counted of a wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub(super) thread: ThreadIdx,
    pub(super) length: u64,
    pub(super) stack: StackId,
}

impl Cell {
    /// Counts a wait that was charged here; `is_new` unless it is known that the thread was counted before.
    #[inline]
    pub(super) fn count(&mut self, wait: &Counted, is_new: bool) {
        self.waits += 1;
        self.longest_ns = self.longest_ns.max(wait.length);
        if is_new {
            self.threads.insert(wait.thread);
        }
        // Equal stacks come in runs.
        if self.run.0 == wait.stack {
            self.run.1 += 1;
        } else {
            self.flush_stacks();
            self.run = (wait.stack, 1);
        }
    }

    pub(super) fn flush_stacks(&mut self) {
        let (stack, n) = std::mem::take(&mut self.run);
        if stack != StackId::NONE {
            *self.wait_stacks.entry(stack).or_default() += n;
        }
    }

    /// One more is charged here from `t` on, going backwards.
    pub(super) fn enter(&mut self, t: u64) {
        if self.active == 0 {
            self.since = t;
        }
        self.active += 1;
    }

    /// One less, at the earlier time `t`. Spans closer than `gap` are one.
    pub(super) fn leave(&mut self, t: u64, gap: u64) {
        self.active -= 1;
        if self.active == 0 && self.since != t {
            self.add_window(t, self.since, gap);
        }
    }

    /// Charged from `from` to `to`, earlier than anything before.
    pub(super) fn add_window(&mut self, from: u64, to: u64, gap: u64) {
        match self.windows.last_mut() {
            Some(last) if last.0 <= to.saturating_add(gap) => *last = (last.0.min(from), last.1.max(to)),
            _ => self.windows.push((from, to)),
        }
    }

    /// Adds what an earlier part of the trace charged.
    pub(super) fn absorb(&mut self, earlier: Cell, gap: u64) {
        self.thread_ns = self.thread_ns.saturating_add(earlier.thread_ns);
        self.cpu_ns += earlier.cpu_ns;
        self.rank_ns += earlier.rank_ns;
        self.idle_ns += earlier.idle_ns;
        self.waits += earlier.waits;
        self.longest_ns = self.longest_ns.max(earlier.longest_ns);
        self.threads.extend(earlier.threads);
        earlier.windows.into_iter().for_each(|(from, to)| self.add_window(from, to, gap));
        earlier.wait_stacks.into_iter().for_each(|(stack, n)| *self.wait_stacks.entry(stack).or_default() += n);
        earlier.samples.into_iter().for_each(|(stack, ns)| *self.samples.entry(stack).or_default() += ns);
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

    #[inline]
    pub(super) fn at(&mut self, id: u32) -> &mut Cell {
        &mut self.cells[id as usize]
    }

    pub(super) fn leave(&mut self, id: u32, t: u64) {
        let gap = self.gap;
        self.at(id).leave(t, gap);
    }

    /// A span in which a cell was charged, earlier than those before but perhaps for longer.
    pub(super) fn add_window(&mut self, id: u32, from: u64, to: u64) {
        let gap = self.gap;
        self.at(id).add_window(from, to, gap);
    }

    /// All of them, complete.
    pub(super) fn finish(mut self) -> Vec<(Key, Cell)> {
        self.cells.iter_mut().for_each(Cell::flush_stacks);
        self.keys.into_iter().zip(self.cells).collect()
    }
}
