//! Where charges are collected: one cell for each way of being held up.

use holdup_trace::{LockId, StackId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::key::{Key, Terminal};
use super::spans::{BySubject, Span, Spans};

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
    /// Those of them in the middle of somebody's work.
    pub at_work: AtWork,
    /// Where waiters blocked, by the length of these waits in nanoseconds; where it is for a lock, those that waited for it
    /// themselves.
    pub wait_stacks: FxHashMap<StackId, u64>,
    /// The same of those that waited for the lock's waiters: a wait of theirs is as long as many of that lock.
    pub behind_stacks: FxHashMap<StackId, u64>,
    /// Where the terminal let them go, by the same.
    pub release_stacks: FxHashMap<StackId, u64>,
    /// Samples of the terminal, weighted by blame in nanoseconds.
    pub samples: FxHashMap<StackId, f64>,
    /// The last stacks counted, and what they have come to since they were written to the maps.
    waited: (StackId, u64),
    released: (StackId, u64),
}

/// Waits of threads that were in the middle of their work: neither at home, nor an idle thread of a scheduler without a task, nor what
/// others wait for.
#[derive(Debug, Clone, Default)]
pub struct AtWork {
    /// How many.
    pub waits: u64,
    /// The longest of them in nanoseconds.
    pub longest_ns: u64,
    /// How long they are together, in nanoseconds: also what of them is charged elsewhere.
    pub total_ns: u64,
    /// Whose.
    pub threads: FxHashSet<ThreadIdx>,
}

impl AtWork {
    pub(crate) fn absorb(&mut self, other: AtWork) {
        self.waits += other.waits;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.threads.extend(other.threads);
    }
}

/// What is counted of a wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub(super) thread: ThreadIdx,
    pub(super) length: u64,
    /// Whether its thread was in the middle of its work.
    pub(super) at_work: bool,
    pub(super) stack: StackId,
    /// For what it waited.
    pub(super) lock: LockId,
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
    /// Whether it is for another lock than the cell, or for none.
    pub(super) behind: bool,
    /// Whether it is what others wait for: the sleep, or the disk, at the chain's end.
    pub(super) end: bool,
}

impl Counted {
    /// How it counts in the cell of `key`, after it was counted in those of `earlier`.
    pub(super) fn counts_as(&self, key: Key, mut earlier: impl Iterator<Item = Key>) -> As {
        let (first, ended) = (!earlier.any(|e| e.is_like(&key)), self.waker == key.thread);
        let behind = key.lock != LockId::NONE && key.lock != self.lock;
        let end =
            key.thread == self.thread && matches!(key.terminal, Terminal::Timer | Terminal::Disk | Terminal::Outside);
        As { new: true, first, ended, behind, end }
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
        if wait.at_work && !how.end {
            self.at_work.waits += u64::from(how.first);
            self.at_work.longest_ns = self.at_work.longest_ns.max(wait.length);
            self.at_work.total_ns = self.at_work.total_ns.saturating_add(wait.length);
            if how.new {
                self.at_work.threads.insert(wait.thread);
            }
        }
        if how.behind {
            add_all(&mut self.behind_stacks, (wait.stack != StackId::NONE).then_some((wait.stack, wait.length)));
        } else {
            add_run(&mut self.waited, &mut self.wait_stacks, wait.stack, wait.length);
        }
        if how.ended {
            add_run(&mut self.released, &mut self.release_stacks, wait.waker_stack, wait.length);
        }
    }

    /// Counts something that was charged only here.
    pub(super) fn count_alone(&mut self, thread: ThreadIdx, length: u64, stack: StackId) {
        let (lock, waker, waker_stack) = (LockId::NONE, ThreadIdx::NONE, StackId::NONE);
        let wait = Counted { thread, length, at_work: false, stack, lock, waker, waker_stack };
        self.count(&wait, As { new: true, first: true, ended: false, behind: false, end: false });
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
        self.at_work.absorb(earlier.at_work);
        add_all(&mut self.wait_stacks, earlier.wait_stacks);
        add_all(&mut self.behind_stacks, earlier.behind_stacks);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::WaitKind;

    #[test]
    fn who_waits_for_a_locks_waiters_does_not_tell_where_it_is_waited_for() {
        let key = Key { lock: LockId(3), kind: WaitKind::Lock, ..Key::default() };
        let wait = |lock, stack, length| Counted {
            thread: ThreadIdx(1),
            length,
            at_work: true,
            stack: StackId(stack),
            lock,
            waker: ThreadIdx(2),
            waker_stack: StackId::NONE,
        };
        let mut cell = Cell::default();
        for wait in [wait(LockId::NONE, 7, 4000), wait(LockId(3), 8, 20), wait(LockId(3), 8, 30)] {
            cell.count(&wait, wait.counts_as(key, std::iter::empty()));
        }
        // Who keeps house, and who is what others wait for, are not at work.
        let home = Counted { at_work: false, ..wait(LockId(3), 8, 0) };
        cell.count(&home, home.counts_as(key, std::iter::empty()));
        let disk = Key { terminal: Terminal::Disk, thread: ThreadIdx(1), ..key };
        let own = wait(LockId(3), 8, 0);
        cell.count(&own, own.counts_as(disk, std::iter::empty()));
        assert_eq!((cell.waits, cell.at_work.waits, cell.at_work.total_ns), (5, 3, 4050));
        cell.flush_stacks();
        assert_eq!(cell.wait_stacks, FxHashMap::from_iter([(StackId(8), 50)]));
        assert_eq!(cell.behind_stacks, FxHashMap::from_iter([(StackId(7), 4000)]));
        let any = Key { lock: LockId::NONE, ..key };
        assert!(!wait(LockId(5), 8, 1).counts_as(any, std::iter::empty()).behind, "no lock, no other one");
    }
}
