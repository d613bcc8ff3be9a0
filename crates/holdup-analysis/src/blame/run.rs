//! Sweeps all parts of a trace, on as many CPUs as there are.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use holdup_trace::Result;

use super::Blame;
use super::charged::Charged;
use super::course::{Asked, Course};
use super::study::Study;
use super::sum::Sum;
use super::sweep::{counted, record, sweep};
use crate::intervals::Chunk;

/// Charges every CPU second of the window. `also` is called with each part of the trace, in any order and by several
/// threads, and `fold` with what it returned, the latest part first: for whatever else is to be learned of the waits.
///
/// # Errors
/// If a table is damaged.
pub fn blame<X: Send>(
    study: &Study,
    also: impl Fn(&Chunk) -> X + Sync,
    mut fold: impl FnMut(X) + Send,
) -> Result<Blame> {
    let parts: Vec<usize> = (0..study.timeline.len()).rev().filter(|&i| study.touches(i)).collect();
    let next = AtomicUsize::new(0);
    let order = Mutex::new(Order { sum: Sum::new(study.gap()), fold: &mut fold, early: BTreeMap::new(), added: 0 });
    let work = || -> Result<()> {
        let (mut reader, mut memory) = (study.timeline.reader(), None);
        loop {
            let Some(&part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) else {
                // Who follows the trace forward begins with these.
                memory.into_iter().for_each(|(part, chunk)| study.timeline.keep(part, chunk));
                return Ok(());
            };
            let chunk = reader.chunk(part, memory.take().map(|(_, chunk)| chunk))?;
            let found = (sweep(study, &chunk), also(&chunk));
            let position = parts[0] - part;
            order.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(position, found);
            memory = Some((part, chunk));
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(parts.len());
    let results: Vec<Result<()>> = match workers {
        0 | 1 => vec![work()],
        _ => std::thread::scope(|scope| {
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let joined = threads.into_iter().map(|t| t.join());
            joined.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        }),
    };
    results.into_iter().collect::<Result<()>>()?;
    let order = order.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(order.sum.finish(study))
}

/// Charges every CPU second of the window that lies in one part of the trace. Waits that began before it count with what lies in it.
pub fn blame_part(study: &Study, chunk: &Chunk) -> Blame {
    let mut sum = Sum::new(study.gap());
    sum.add(sweep(study, chunk));
    let before = chunk.waits().iter().filter(|wait| wait.start < chunk.from);
    sum.count_open(&before.map(|wait| (wait.thread, counted(wait, study))).collect());
    sum.finish(study)
}

/// What was charged when, in the parts of the trace that the window touches; `stop` is asked before each.
///
/// # Errors
/// If a table is damaged.
pub fn over_time(study: &Study, asked: &Asked, stop: impl Fn() -> bool + Sync) -> Result<Course> {
    let mut sum = Course::new(asked.steps, asked.count);
    let touched = |part: &usize| study.touches(*part);
    let parts: Vec<usize> = (0..study.timeline.len()).filter(touched).collect();
    let (first, behind) = (parts.first().map_or(0, |p| *p), parts.last().map_or(0, |p| *p + 1));
    let record = |chunk: &Chunk| if stop() { None } else { record(study, chunk, asked) };
    study.timeline.each(first..behind, record, |found| {
        if let Some((first, course)) = found {
            sum.add(first, &course);
        }
    })?;
    Ok(sum)
}

/// What was charged when in one part of the trace, if that has any of the steps: with the first that it has.
pub fn over_part(study: &Study, chunk: &Chunk, asked: &Asked) -> Option<(usize, Course)> {
    record(study, chunk, asked)
}

/// Adds the parts in their order, whoever is done first: sums of fractions depend on it.
struct Order<'f, X, F: FnMut(X)> {
    sum: Sum,
    fold: &'f mut F,
    early: BTreeMap<usize, (Charged, X)>,
    added: usize,
}

impl<X, F: FnMut(X)> Order<'_, X, F> {
    fn add(&mut self, position: usize, found: (Charged, X)) {
        self.early.insert(position, found);
        while let Some((part, also)) = self.early.remove(&self.added) {
            self.sum.add(part);
            (self.fold)(also);
            self.added += 1;
        }
    }
}
