//! Statistics of operations, one table for each thread.

use core::cell::RefCell;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::op_stats::merge_into;
use crate::{Padded, Totals};

/// Number, sum, least and greatest of a value for each of a fixed set of operations, without any locked instruction.
///
/// Each thread has a table that it alone writes, with plain loads and stores; a registry finds all tables. When a thread
/// ends, its table is folded into one history entry, so that short-lived threads are counted and cost no memory.
///
/// *Cost:* [`add`](Self::add) a few nanoseconds, O(tables of this kind that the thread uses); the first of a thread takes
/// the registry's lock. [`report`](Self::report) is O(operations × live threads). *Memory:* 32 bytes for each operation
/// and live thread.
///
/// *When not:* with thousands of threads, or many that live for microseconds ([`OpStats`](crate::OpStats) is bounded by the
/// CPUs); where the four numbers must be of one moment while threads add: here each number is exact, but they are read one after
/// the other.
///
/// ```
/// use holdup_sync::ThreadStats;
///
/// const PARSE: usize = 0;
/// let stats = ThreadStats::new(1);
/// std::thread::scope(|scope| {
///     for nanos in [40, 60] {
///         let stats = &stats;
///         scope.spawn(move || stats.add(PARSE, nanos));
///     }
/// });
/// let parse = stats.report()[PARSE];
/// assert_eq!((parse.count, parse.sum, parse.min, parse.max), (2, 100, 40, 60));
/// ```
pub struct ThreadStats(Arc<Registry>);

/// The table of one thread, or of all that have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadReport {
    /// The thread's name; `None` if it has none, and for the history.
    pub name: Option<String>,
    /// Whether this is the history: the sum of all threads that have ended.
    pub history: bool,
    /// Totals by operation.
    pub totals: Vec<Totals>,
}

struct Registry {
    operations: usize,
    /// Raised by `clear`; tables of earlier epochs count as empty.
    epoch: AtomicU64,
    threads: Mutex<Threads>,
}

struct Threads {
    live: Vec<Arc<Table>>,
    history: Vec<Totals>,
}

/// Four operations to a pair of cache lines; tables of two threads share none.
type Cells = Padded<[Cell; 4]>;

struct Table {
    name: Option<String>,
    epoch: AtomicU64,
    cells: Box<[Cells]>,
}

#[derive(Default)]
struct Cell {
    count: AtomicU64,
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
}

/// A thread's hold on its table; folds it into the history when the thread ends.
struct Local {
    registry: Weak<Registry>,
    table: Arc<Table>,
}

std::thread_local! {
    static LOCALS: RefCell<Vec<Local>> = const { RefCell::new(Vec::new()) };
}

impl ThreadStats {
    /// Empty tables for operations 0 to `operations` − 1.
    pub fn new(operations: usize) -> Self {
        let threads = Threads { live: Vec::new(), history: vec![Totals::EMPTY; operations] };
        ThreadStats(Arc::new(Registry { operations, epoch: AtomicU64::new(0), threads: Mutex::new(threads) }))
    }

    /// Adds a value to an operation, in this thread's table.
    ///
    /// In a thread that is ending, whose thread locals are gone, it goes to the history.
    ///
    /// # Panics
    /// If there is no such operation.
    pub fn add(&self, operation: usize, value: u64) {
        let operations = self.0.operations;
        assert!(operation < operations, "operation {operation} of {operations}: numbers begin at 0");
        let added = LOCALS.try_with(|locals| {
            let mut locals = locals.borrow_mut();
            let own = |local: &Local| core::ptr::eq(local.registry.as_ptr(), &raw const *self.0);
            let index = locals.iter().position(own).unwrap_or_else(|| self.register(&mut locals));
            locals[index].table.add(self.0.epoch.load(Relaxed), operation, value);
        });
        if added.is_err() {
            self.0.threads().history[operation].record(value);
        }
    }

    #[cold]
    fn register(&self, locals: &mut Vec<Local>) -> usize {
        locals.retain(|local| local.registry.strong_count() > 0);
        let mut threads = self.0.threads();
        let table = Arc::new(Table {
            name: std::thread::current().name().map(str::to_owned),
            epoch: AtomicU64::new(self.0.epoch.load(Relaxed)),
            cells: (0..self.0.operations.div_ceil(4)).map(|_| Cells::default()).collect(),
        });
        table.reset();
        threads.live.push(Arc::clone(&table));
        locals.push(Local { registry: Arc::downgrade(&self.0), table });
        locals.len() - 1
    }

    /// The totals of all threads, dead ones included, by operation. Exact about every [`add`](Self::add) that happened
    /// before.
    pub fn report(&self) -> Vec<Totals> {
        let mut all = vec![Totals::EMPTY; self.0.operations];
        self.report_by_thread().iter().for_each(|thread| merge_into(&mut all, &thread.totals));
        all
    }

    /// The totals of each live thread, in the order of their first [`add`](Self::add), then those of the history.
    pub fn report_by_thread(&self) -> Vec<ThreadReport> {
        let threads = self.0.threads();
        let epoch = self.0.epoch.load(Relaxed);
        let mut reports: Vec<_> = (threads.live.iter())
            .map(|table| ThreadReport {
                name: table.name.clone(),
                history: false,
                totals: table.totals(epoch, self.0.operations),
            })
            .collect();
        reports.push(ThreadReport { name: None, history: true, totals: threads.history.clone() });
        reports
    }

    /// Forgets everything. What a thread adds at that very moment may be forgotten, too.
    pub fn clear(&self) {
        let mut threads = self.0.threads();
        // Each thread empties its own table when it next adds: nobody else may write it.
        self.0.epoch.fetch_add(1, Relaxed);
        threads.history.fill(Totals::EMPTY);
    }
}

impl Registry {
    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let Some(registry) = self.registry.upgrade() else { return };
        let mut threads = registry.threads();
        threads.live.retain(|table| !Arc::ptr_eq(table, &self.table));
        let last = self.table.totals(registry.epoch.load(Relaxed), registry.operations);
        merge_into(&mut threads.history, &last);
    }
}

impl Table {
    /// Called by the table's thread alone.
    fn add(&self, epoch: u64, operation: usize, value: u64) {
        if self.epoch.load(Relaxed) != epoch {
            self.reset();
            // Whoever sees the new epoch sees nothing older than the empty table.
            self.epoch.store(epoch, Release);
        }
        let cell = &self.cells[operation / 4].0[operation % 4];
        let mut totals = cell.totals();
        totals.record(value);
        cell.store(&totals);
    }

    /// Called by the table's thread alone, or before others know the table.
    fn reset(&self) {
        self.cells.iter().flat_map(|cells| &cells.0).for_each(|cell| cell.store(&Totals::EMPTY));
    }

    fn totals(&self, epoch: u64, operations: usize) -> Vec<Totals> {
        if self.epoch.load(Acquire) != epoch {
            return vec![Totals::EMPTY; operations];
        }
        self.cells.iter().flat_map(|cells| &cells.0).take(operations).map(Cell::totals).collect()
    }
}

impl Cell {
    fn totals(&self) -> Totals {
        let [count, sum, min, max] = [&self.count, &self.sum, &self.min, &self.max].map(|word| word.load(Relaxed));
        Totals { count, sum, min, max }
    }

    fn store(&self, totals: &Totals) {
        self.count.store(totals.count, Relaxed);
        self.sum.store(totals.sum, Relaxed);
        self.min.store(totals.min, Relaxed);
        self.max.store(totals.max, Relaxed);
    }
}

impl fmt::Debug for ThreadStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.report_by_thread()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// What `add(_, value)` for each of these values makes.
    fn of(values: &[u64]) -> Totals {
        let mut totals = Totals::EMPTY;
        values.iter().for_each(|value| totals.record(*value));
        totals
    }

    #[test]
    fn dead_threads_are_in_the_history() {
        let stats = Arc::new(ThreadStats::new(6));
        stats.add(5, 7);
        for value in [1, 2, 3] {
            let stats = Arc::clone(&stats);
            std::thread::Builder::new()
                .name(format!("worker {value}"))
                .spawn(move || stats.add(0, value))
                .unwrap()
                .join()
                .unwrap();
        }
        let threads = stats.report_by_thread();
        assert_eq!(threads.len(), 2, "this thread and the history");
        assert_eq!(threads[0].name.as_deref(), std::thread::current().name());
        assert_eq!(threads[0].totals[5], of(&[7]));
        assert!(threads[1].history);
        assert_eq!(threads[1].totals[0], of(&[1, 2, 3]));
        assert_eq!(stats.report()[0], of(&[1, 2, 3]));
        assert_eq!(stats.report()[5], of(&[7]));
    }

    #[test]
    fn clear_forgets_the_living_and_the_dead() {
        let stats = ThreadStats::new(1);
        stats.add(0, 9);
        std::thread::scope(|scope| drop(scope.spawn(|| stats.add(0, 1)).join()));
        stats.clear();
        assert_eq!(stats.report(), [Totals::EMPTY]);
        stats.add(0, 4);
        assert_eq!(stats.report(), [of(&[4])]);
    }

    #[test]
    fn tables_of_two_sets_are_apart() {
        let first = ThreadStats::new(1);
        first.add(0, 1);
        {
            let second = ThreadStats::new(2);
            second.add(1, 2);
            assert_eq!(second.report(), [Totals::EMPTY, of(&[2])]);
        }
        ThreadStats::new(1).add(0, 3);
        assert_eq!(first.report(), [of(&[1])]);
    }

    #[test]
    fn readers_meanwhile_see_no_more_than_was_added() {
        let stats = ThreadStats::new(1);
        let adds = if cfg!(miri) { 20 } else { 20_000 };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..adds).for_each(|_| stats.add(0, 5)));
            }
            let mut before = 0;
            for _ in 0..50 {
                let count = stats.report()[0].count;
                assert!((before..=3 * adds).contains(&count), "{count} after {before}");
                before = count;
            }
        });
        let totals = stats.report()[0];
        assert_eq!((totals.count, totals.sum, totals.min, totals.max), (3 * adds, 15 * adds, 5, 5));
    }

    #[test]
    #[should_panic(expected = "operation 1 of 1: numbers begin at 0")]
    fn an_operation_that_does_not_exist() {
        ThreadStats::new(1).add(1, 1);
    }
}
