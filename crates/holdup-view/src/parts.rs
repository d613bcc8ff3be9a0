//! The parts of the trace that narrow windows touch, the latest few kept.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use holdup_analysis::intervals::{Chunk, Reader, Timeline};

use crate::{Cancel, Result};

/// Parts kept for the next question: some 6 MB each.
const KEPT: usize = 16;
/// Parts that are made before they are looked at.
const AT_ONCE: usize = 4;

/// The parts that were asked for last.
#[derive(Default)]
pub(crate) struct Parts {
    kept: Mutex<Vec<(usize, Arc<Chunk>)>>,
}

impl Parts {
    /// Part `index`. O(its events), if it is not kept.
    ///
    /// # Errors
    /// If a table is damaged.
    pub(crate) fn get(&self, timeline: &Timeline, index: usize) -> Result<Arc<Chunk>> {
        self.get_by(&mut timeline.reader(), index)
    }

    /// The same with a reader that has just made the part before.
    pub(crate) fn get_by(&self, reader: &mut Reader<'_, '_>, index: usize) -> Result<Arc<Chunk>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|(i, _)| *i == index) {
            let found = kept.remove(at);
            kept.push(found.clone());
            return Ok(found.1);
        }
        drop(kept);
        let chunk = Arc::new(reader.chunk(index, None)?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push((index, chunk.clone()));
        if kept.len() > KEPT {
            kept.remove(0);
        }
        Ok(chunk)
    }

    /// Shows `see` the parts that the window touches, in the order of time.
    ///
    /// # Errors
    /// If a table is damaged, or if nobody wants to know any more.
    pub(crate) fn each(
        &self,
        timeline: &Timeline,
        (from, to): (u64, u64),
        cancel: &Cancel,
        mut see: impl FnMut(&Chunk),
    ) -> Result<()> {
        let indices: Vec<usize> = touched(timeline, from, to).collect();
        for few in indices.chunks(AT_ONCE) {
            cancel.check()?;
            read(timeline, few, |reader, &index| self.get_by(reader, index))?.iter().for_each(|chunk| see(chunk));
        }
        Ok(())
    }

    /// What `map` makes of each of `indices`, in their order; several are made at once where there are CPUs for it.
    ///
    /// # Errors
    /// If a table is damaged, or if nobody wants to know any more.
    pub(crate) fn map<X: Send>(
        &self,
        timeline: &Timeline,
        indices: impl Iterator<Item = usize>,
        cancel: &Cancel,
        map: impl Fn(&Chunk) -> X + Sync,
    ) -> Result<Vec<X>> {
        let indices: Vec<usize> = indices.collect();
        read(timeline, &indices, |reader, &index| {
            cancel.check()?;
            Ok(map(&*self.get_by(reader, index)?))
        })
    }
}

/// Neighbouring parts that one thread takes at once, at most: who reads them in a row decodes little twice.
const RUN: usize = 8;

/// Calls `work` with each of `jobs`, which are parts in the order of time, and a reader; by several threads where there are CPUs for them. What they
/// return is in the order of the jobs.
pub(crate) fn read<'t, J: Sync, X: Send>(
    timeline: &'t Timeline<'t>,
    jobs: &[J],
    work: impl Fn(&mut Reader<'t, 't>, &J) -> Result<X> + Sync,
) -> Result<Vec<X>> {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    let run = jobs.len().div_ceil(cpus).clamp(1, RUN);
    let workers = cpus.min(jobs.len().div_ceil(run));
    if workers < 2 {
        let mut reader = timeline.reader();
        return jobs.iter().map(|job| work(&mut reader, job)).collect();
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let (mut reader, mut done) = (timeline.reader(), Vec::new());
        loop {
            let first = next.fetch_add(run, Ordering::Relaxed);
            let Some(few) = jobs.get(first..jobs.len().min(first + run)).filter(|few| !few.is_empty()) else {
                return Ok(done);
            };
            for (at, job) in (first..).zip(few) {
                done.push((at, work(&mut reader, job)?));
            }
        }
    };
    let done: Vec<Result<Vec<(usize, X)>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(take)).collect();
        let joined = threads.into_iter().map(|t| t.join());
        joined.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    let mut all: Vec<(usize, X)> = done.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    all.sort_by_key(|(at, _)| *at);
    Ok(all.into_iter().map(|(_, found)| found).collect())
}

/// The parts that touch the time from `from` to `to`.
pub(crate) fn touched(timeline: &Timeline, from: u64, to: u64) -> Range<usize> {
    let all = timeline.len();
    let first = (0..all).find(|&i| timeline.span(i).1 > from).unwrap_or(all - 1);
    let behind = (first + 1..all).find(|&i| timeline.span(i).0 >= to).unwrap_or(all);
    first..behind
}
