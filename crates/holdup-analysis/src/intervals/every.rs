//! All parts of the trace, one by one or made on as many CPUs as there are.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use holdup_trace::Result;

use super::part::Chunk;
use super::timeline::Timeline;

/// Parts that are made before an earlier one is done, for each worker.
const AHEAD: usize = 2;

impl Timeline<'_> {
    /// Calls `each` with each of `parts` in that order, on this thread and in the memory of one. O(events).
    ///
    /// # Errors
    /// If a table is damaged.
    pub fn one_by_one(&self, parts: impl Iterator<Item = usize>, mut each: impl FnMut(&Chunk)) -> Result<()> {
        let (mut reader, mut memory) = (self.reader(), None);
        for index in parts {
            let chunk = reader.chunk(index, memory.take())?;
            each(&chunk);
            memory = Some(chunk);
        }
        Ok(())
    }

    /// Calls `map` with each of `parts`, by several threads where there are CPUs for them, and `fold` with what it returned, in the
    /// order of time. O(events).
    ///
    /// # Errors
    /// If a table is damaged.
    pub fn each<X: Send>(
        &self,
        parts: Range<usize>,
        map: impl Fn(&Chunk) -> X + Sync,
        fold: impl FnMut(X) + Send,
    ) -> Result<()> {
        let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(parts.len());
        let next = AtomicUsize::new(parts.start);
        let line = Line {
            order: Mutex::new(Order { early: BTreeMap::new(), added: parts.start, fold, stopped: false }),
            turn: Condvar::new(),
            ahead: AHEAD * workers,
        };
        let work = || -> Result<()> {
            let _end = StopsOthers(&line);
            let (mut reader, mut memory) = (self.reader(), None);
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= parts.end {
                    return Ok(());
                }
                if !line.wait_for_room(index) {
                    return Ok(());
                }
                let chunk = reader.chunk(index, memory.take()).inspect_err(|_| line.stop())?;
                line.add(index, map(&chunk));
                memory = Some(chunk);
            }
        };
        if workers < 2 {
            return work();
        }
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let mut joined = threads.into_iter().map(|t| t.join());
            joined.try_for_each(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }
}

/// Results on their way to `fold`.
struct Line<X, F: FnMut(X)> {
    order: Mutex<Order<X, F>>,
    turn: Condvar,
    ahead: usize,
}

struct Order<X, F: FnMut(X)> {
    early: BTreeMap<usize, X>,
    added: usize,
    fold: F,
    /// Whether somebody failed: nothing more is wanted.
    stopped: bool,
}

impl<X, F: FnMut(X)> Line<X, F> {
    fn lock(&self) -> MutexGuard<'_, Order<X, F>> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until part `index` is near those that were added: who makes the one that is due never waits. `false` if it is
    /// not wanted any more.
    fn wait_for_room(&self, index: usize) -> bool {
        let mut order = self.lock();
        while index >= order.added + self.ahead && !order.stopped {
            order = self.turn.wait(order).unwrap_or_else(PoisonError::into_inner);
        }
        !order.stopped
    }

    fn add(&self, index: usize, found: X) {
        let mut order = self.lock();
        order.early.insert(index, found);
        loop {
            let due = order.added;
            let Some(found) = order.early.remove(&due) else { break };
            (order.fold)(found);
            order.added += 1;
        }
        self.turn.notify_all();
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.turn.notify_all();
    }
}

/// Nobody waits for what a worker that panicked will never bring.
struct StopsOthers<'l, X, F: FnMut(X)>(&'l Line<X, F>);

impl<X, F: FnMut(X)> Drop for StopsOthers<'_, X, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}
