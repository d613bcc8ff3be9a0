//! Where charges are collected: one cell for each way of being held up.

use holdup_trace::{LockId, StackId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::spans::{BySubject, Span, Spans};
use crate::classify::WaitKind;

/// What a chain ends at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    /// The same, where only CPUs are idle, or used by others, on which it may not run.
    Barred,
    /// The same, where none is idle and others run.
    Starved,
    /// The world outside, waited for in the middle of work by one whom others may wait for.
    Outside,
    /// Not held up: the wait is idle by design.
    IdleByDesign,
    /// Not known.
    #[default]
    Unknown,
}

/// What identifies a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

    /// What a finding can be about: this without what changes while one waits for the same. Whether the thread at the end
    /// runs or is not let run, and in which ways others wait for it, is one subject; and so is a lock in one thread's hands.
    #[must_use]
    pub(crate) fn subject(self) -> Key {
        let kind = if self.kind == WaitKind::Lock { WaitKind::Lock } else { WaitKind::Unknown };
        let works = matches!(self.terminal, Terminal::NotRunning | Terminal::Handoff) && kind != WaitKind::Lock;
        Key { kind, terminal: if works { Terminal::Running } else { self.terminal }, ..self }
    }

    /// Whether both are charges of one finding, so that a wait that met both is one wait.
    fn is_like(&self, other: &Key) -> bool {
        let (a, b) = (self.subject(), other.subject());
        let locked = |k: &Key| k.kind == WaitKind::Lock && k.terminal != Terminal::IdleByDesign;
        a == b || locked(&a) && locked(&b) && a.lock == b.lock
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
    /// Where waiters blocked, by the length of these waits in nanoseconds.
    pub wait_stacks: FxHashMap<StackId, u64>,
    /// Where the terminal let them go, by the same.
    pub release_stacks: FxHashMap<StackId, u64>,
    /// Samples of the terminal, weighted by blame in nanoseconds.
    pub samples: FxHashMap<StackId, f64>,
    /// The last stacks counted, and what they have come to since they were written to the maps.
    waited: (StackId, u64),
    released: (StackId, u64),
}

/// What is counted of a wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub(super) thread: ThreadIdx,
    pub(super) length: u64,
    pub(super) stack: StackId,
    pub(super) waker: ThreadIdx,
    pub(super) waker_stack: StackId,
}

/// How a wait counts in one of the cells to which it was charged.
#[derive(Debug, Clone, Copy)]
pub(super) struct As {
    /// Whether the thread may not have been counted here before.
    pub(super) new: bool,
    /// Whether no other cell of the same subject counts it.
    pub(super) first: bool,
    /// Whether the thread at the chain's end ended it.
    pub(super) ended: bool,
}

impl Counted {
    /// How it counts in the cell of `key`, after it was counted in those of `earlier`.
    pub(super) fn counts_as(&self, key: Key, mut earlier: impl Iterator<Item = Key>) -> As {
        As { new: true, first: !earlier.any(|e| e.is_like(&key)), ended: self.waker == key.thread }
    }
}

impl Cell {
    /// Counts a wait that was charged here.
    #[inline]
    pub(super) fn count(&mut self, wait: &Counted, how: As) {
        self.waits += u64::from(how.first);
        self.longest_ns = self.longest_ns.max(wait.length);
        if how.new {
            self.threads.insert(wait.thread);
        }
        add_run(&mut self.waited, &mut self.wait_stacks, wait.stack, wait.length);
        if how.ended {
            add_run(&mut self.released, &mut self.release_stacks, wait.waker_stack, wait.length);
        }
    }

    /// Counts something that was charged only here.
    pub(super) fn count_alone(&mut self, thread: ThreadIdx, length: u64, stack: StackId) {
        let wait = Counted { thread, length, stack, waker: ThreadIdx::NONE, waker_stack: StackId::NONE };
        self.count(&wait, As { new: true, first: true, ended: false });
    }

    pub(super) fn flush_stacks(&mut self) {
        add_run(&mut self.waited, &mut self.wait_stacks, StackId::NONE, 0);
        add_run(&mut self.released, &mut self.release_stacks, StackId::NONE, 0);
    }

    /// Adds what an earlier part of the trace charged.
    pub(super) fn absorb(&mut self, earlier: Cell) {
        self.thread_ns = self.thread_ns.saturating_add(earlier.thread_ns);
        self.cpu_ns += earlier.cpu_ns;
        self.rank_ns += earlier.rank_ns;
        self.idle_ns += earlier.idle_ns;
        self.waits += earlier.waits;
        self.longest_ns = self.longest_ns.max(earlier.longest_ns);
        self.threads.extend(earlier.threads);
        add_all(&mut self.wait_stacks, earlier.wait_stacks);
        add_all(&mut self.release_stacks, earlier.release_stacks);
        earlier.samples.into_iter().for_each(|(stack, ns)| *self.samples.entry(stack).or_default() += ns);
    }
}

/// Equal stacks come in runs: only where one ends the map is touched.
#[inline]
fn add_run(run: &mut (StackId, u64), sums: &mut FxHashMap<StackId, u64>, stack: StackId, ns: u64) {
    if run.0 == stack {
        run.1 = run.1.saturating_add(ns);
        return;
    }
    let (ended, sum) = std::mem::replace(run, (stack, ns));
    if ended != StackId::NONE {
        add_all(sums, std::iter::once((ended, sum)));
    }
}

fn add_all(sums: &mut FxHashMap<StackId, u64>, more: impl IntoIterator<Item = (StackId, u64)>) {
    for (stack, ns) in more {
        let sum = sums.entry(stack).or_default();
        *sum = sum.saturating_add(ns);
    }
}

/// All cells by key.
#[derive(Debug, Default)]
pub(super) struct Cells {
    index: FxHashMap<Key, u32>,
    pub(super) keys: Vec<Key>,
    pub(super) cells: Vec<Cell>,
    /// By cell: which of `spans` is its subject's.
    of: Vec<u32>,
    subjects: FxHashMap<Key, u32>,
    spans: Vec<Spans>,
    /// Spans closer than this are one, in nanoseconds.
    gap: u64,
}

impl Cells {
    pub(super) fn new(gap: u64) -> Self {
        Cells { gap, ..Cells::default() }
    }

    pub(super) fn id(&mut self, key: Key) -> u32 {
        let Cells { index, keys, cells, of, subjects, spans, .. } = self;
        *index.entry(key).or_insert_with(|| {
            keys.push(key);
            cells.push(Cell::default());
            of.push(*subjects.entry(key.subject()).or_insert_with(|| {
                spans.push(Spans::default());
                spans.len() as u32 - 1
            }));
            keys.len() as u32 - 1
        })
    }

    #[inline]
    pub(super) fn at(&mut self, id: u32) -> &mut Cell {
        &mut self.cells[id as usize]
    }

    /// One more is charged in a cell from `t` on, going backwards.
    #[inline]
    pub(super) fn enter(&mut self, id: u32, t: u64) {
        self.spans[self.of[id as usize] as usize].enter(t);
    }

    /// One less, at the earlier time `t`.
    #[inline]
    pub(super) fn leave(&mut self, id: u32, t: u64) {
        self.spans[self.of[id as usize] as usize].leave(t, self.gap);
    }

    /// A span in which a cell was charged, earlier than those before but perhaps for longer.
    pub(super) fn add_window(&mut self, id: u32, from: u64, to: u64) {
        self.spans[self.of[id as usize] as usize].add(Span { from, to, covered: to - from }, self.gap);
    }

    /// All of them, complete.
    pub(super) fn finish(mut self) -> (Vec<(Key, Cell)>, BySubject) {
        self.cells.iter_mut().for_each(Cell::flush_stacks);
        let spans = &mut self.spans;
        let taken = self.subjects.into_iter().map(|(key, at)| (key, std::mem::take(&mut spans[at as usize])));
        let spans = taken.collect();
        (self.keys.into_iter().zip(self.cells).collect(), spans)
    }
}
