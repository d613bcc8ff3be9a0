//! The parts of the trace that narrow windows touch, the latest few kept.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use holdup_analysis::intervals::{Chunk, Timeline};

use crate::{Cancel, Result};

/// Parts kept for the next question: some 25 MB each.
const KEPT: usize = 4;

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
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|(i, _)| *i == index) {
            let found = kept.remove(at);
            kept.push(found.clone());
            return Ok(found.1);
        }
        drop(kept);
        let chunk = Arc::new(timeline.reader().chunk(index, None)?);
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
        for index in touched(timeline, from, to) {
            cancel.check()?;
            see(&*self.get(timeline, index)?);
        }
        Ok(())
    }
}

/// The parts that touch the time from `from` to `to`.
pub(crate) fn touched(timeline: &Timeline, from: u64, to: u64) -> Range<usize> {
    let all = timeline.len();
    let first = (0..all).find(|&i| timeline.span(i).1 > from).unwrap_or(all - 1);
    let behind = (first + 1..all).find(|&i| timeline.span(i).0 >= to).unwrap_or(all);
    first..behind
}
