//! Sweeps all parts of a trace, on as many CPUs as there are.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use holdup_trace::{Result, Trace};

use super::sum::Sum;
use super::sweep::{Part, sweep};
use super::{Blame, Window};
use crate::classify::Classifier;
use crate::focus::Focus;
use crate::intervals::{Chunk, Timeline};

/// What a sweep looks at.
#[derive(Clone, Copy)]
pub struct Study<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Its parts.
    pub timeline: &'a Timeline<'a>,
    /// Whose waits count.
    pub focus: &'a Focus,
    /// What stacks tell.
    pub classifier: &'a Classifier<'a>,
    /// Which part of its time.
    pub window: Window,
}

impl Study<'_> {
    /// Nanoseconds for each sample.
    pub(super) fn period(&self) -> f64 {
        self.trace.meta.sample_period_ns as f64
    }

    /// Spans of blame closer than this are one, in nanoseconds.
    pub(super) fn gap(&self) -> u64 {
        (self.window.to - self.window.from) / 500
    }
}

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
    let parts: Vec<usize> = (0..study.timeline.len()).rev().filter(|&i| is_inside(study, i)).collect();
    let next = AtomicUsize::new(0);
    let order = Mutex::new(Order { sum: Sum::new(study.gap()), fold: &mut fold, early: BTreeMap::new(), added: 0 });
    let work = || -> Result<()> {
        let (mut reader, mut memory) = (study.timeline.reader(), None);
        loop {
            let Some(&part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) else { return Ok(()) };
            let chunk = reader.chunk(part, memory.take())?;
            let found = (sweep(study, &chunk), also(&chunk));
            let position = parts[0] - part;
            order.lock().unwrap_or_else(std::sync::PoisonError::into_inner).add(position, found);
            memory = Some(chunk);
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
    Ok(order.sum.finish(study.window))
}

fn is_inside(study: &Study, part: usize) -> bool {
    let (from, to) = study.timeline.span(part);
    let last = part + 1 == study.timeline.len();
    from <= study.window.to && (to > study.window.from || last)
}

/// Adds the parts in their order, whoever is done first: sums of fractions depend on it.
struct Order<'f, X, F: FnMut(X)> {
    sum: Sum,
    fold: &'f mut F,
    early: BTreeMap<usize, (Part, X)>,
    added: usize,
}

impl<X, F: FnMut(X)> Order<'_, X, F> {
    fn add(&mut self, position: usize, found: (Part, X)) {
        self.early.insert(position, found);
        while let Some((part, also)) = self.early.remove(&self.added) {
            self.sum.add(part);
            (self.fold)(also);
            self.added += 1;
        }
    }
}
