//! Any value, once for each CPU.

use core::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::{Padded, cpu};

/// A value for each CPU, each behind a lock of its own that is practically never contended.
///
/// For data that can be kept in parts and put together when read: counts by key, histograms, free lists, buffers to be
/// flushed. [`with`](Self::with) takes the cell of the CPU that the thread runs on. If that one is held (by a thread that
/// was preempted inside), it takes the next free one, so that nobody waits for a thread that does not run.
///
/// *Cost:* `with` costs an uncontended lock at any number of threads. *Memory:* a padded `T` for each possible CPU.
///
/// *When not:* where an operation needs the whole (a lookup in a map that was filled by other threads), or reads are as
/// frequent as writes: [`merged`](Self::merged) locks every cell.
///
/// A panic inside `with` leaves the cell as it was then, and usable.
///
/// ```
/// use std::collections::HashMap;
/// use holdup_sync::PerCpu;
///
/// // Before: static HITS: Mutex<HashMap<u16, u64>>
/// let hits = PerCpu::new(HashMap::<u16, u64>::new);
/// hits.with(|hits| *hits.entry(404).or_default() += 1);
/// hits.with(|hits| *hits.entry(404).or_default() += 1);
///
/// let all = hits.merged(HashMap::new(), |mut all, cell| {
///     cell.iter().for_each(|(code, count)| *all.entry(*code).or_insert(0) += count);
///     all
/// });
/// assert_eq!(all[&404], 2);
/// ```
pub struct PerCpu<T> {
    cells: Box<[Padded<Mutex<T>>]>,
}

impl<T> PerCpu<T> {
    /// A value from `make` for each possible CPU.
    pub fn new(mut make: impl FnMut() -> T) -> Self {
        PerCpu { cells: (0..cpu::possible()).map(|_| Padded(Mutex::new(make()))).collect() }
    }

    /// Runs `change` on the value of this CPU, or on another one if that is held now.
    ///
    /// Which one is a matter of speed alone: a thread may be moved to another CPU at any time. Calls inside `change`
    /// get another cell, and wait for ever if this thread holds all.
    pub fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let own = cpu::hint(self.cells.len());
        let (before, from) = self.cells.split_at(own);
        let free = from.iter().chain(before).find_map(|cell| match cell.try_lock() {
            Ok(cell) => Some(cell),
            Err(TryLockError::Poisoned(cell)) => Some(cell.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        });
        change(&mut free.unwrap_or_else(|| lock(&self.cells[own])))
    }

    /// Folds the values of all CPUs, in their order, one locked at a time: not a picture of one moment.
    pub fn merged<A>(&self, start: A, mut add: impl FnMut(A, &mut T) -> A) -> A {
        self.cells.iter().fold(start, |all, cell| add(all, &mut lock(cell)))
    }

    /// The values, in the order of the CPUs.
    pub fn into_values(self) -> impl Iterator<Item = T> {
        self.cells.into_iter().map(|cell| cell.0.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

fn lock<T>(cell: &Mutex<T>) -> MutexGuard<'_, T> {
    cell.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Default> Default for PerCpu<T> {
    fn default() -> Self {
        Self::new(T::default)
    }
}

impl<T: fmt::Debug> fmt::Debug for PerCpu<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.cells.iter().map(|cell| &cell.0)).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn no_change_is_lost() {
        let cells = PerCpu::new(|| 0u64);
        let (threads, changes) = if cfg!(miri) { (3, 20) } else { (8, 10_000) };
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..changes).for_each(|_| cells.with(|cell| *cell += 1)));
            }
        });
        assert_eq!(cells.merged(0, |sum, cell| sum + *cell), threads * changes);
        assert_eq!(cells.into_values().sum::<u64>(), threads * changes);
    }

    #[test]
    fn a_held_cell_is_passed_over() {
        let cells = PerCpu::new(|| 0);
        if cells.cells.len() > 1 {
            cells.with(|outer| {
                cells.with(|inner| *inner += 1);
                *outer += 1;
            });
            assert_eq!(cells.merged(0, |sum, cell| sum + *cell), 2);
        }
    }

    #[test]
    fn a_panic_poisons_nothing() {
        let cells = PerCpu::new(|| 0);
        let panicked = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            cells.with(|cell| {
                *cell += 1;
                panic!("on purpose");
            })
        }));
        assert!(panicked.is_err());
        (0..100).for_each(|_| cells.with(|cell| *cell += 1));
        assert_eq!(cells.merged(0, |sum, cell| sum + *cell), 101);
    }
}
