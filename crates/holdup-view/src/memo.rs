//! What each part of the trace comes to, kept: a window is answered from the parts that lie in it, and two that lie across its borders.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdup_analysis::intervals::{Chunk, Reader, Timeline};

use crate::parts::{Parts, read, touched};
use crate::{Cancel, Result};

/// Bytes that one kind of sums may take; parts beyond are made anew for each question.
const MOST_BYTES: usize = 160 << 20;

/// Parts that are summed up before they are looked at.
const AT_ONCE: usize = 64;

/// How large a sum is.
pub(crate) trait Weighs {
    /// Bytes that it takes.
    fn bytes(&self) -> usize;
}

/// What each part comes to, as far as it was asked for.
pub(crate) struct Memo<T> {
    kept: Mutex<Kept<T>>,
}

struct Kept<T> {
    parts: Vec<Option<Arc<T>>>,
    bytes: usize,
}

/// A part, and what of it is wanted.
struct Job {
    part: usize,
    window: (u64, u64),
    whole: bool,
}

impl<T: Weighs + Send + Sync> Memo<T> {
    pub(crate) fn new(timeline: &Timeline) -> Self {
        let parts = (0..timeline.len()).map(|_| None).collect();
        Memo { kept: Mutex::new(Kept { parts, bytes: 0 }) }
    }

    fn lock(&self) -> MutexGuard<'_, Kept<T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, part: usize) -> Option<Arc<T>> {
        self.lock().parts[part].clone()
    }

    fn keep(&self, part: usize, sum: &Arc<T>) {
        let (mut kept, bytes) = (self.lock(), sum.bytes());
        if kept.parts[part].is_none() && kept.bytes + bytes <= MOST_BYTES {
            kept.bytes += bytes;
            kept.parts[part] = Some(sum.clone());
        }
    }

    /// Shows `see` what the parts between `from` and `to` come to, in the order of time. `of` sums up what of a part lies in a window.
    /// O(events) of the parts that are not kept.
    ///
    /// # Errors
    /// If a table is damaged, or if nobody wants to know any more.
    pub(crate) fn within(
        &self,
        timeline: &Timeline,
        parts: &Parts,
        (from, to): (u64, u64),
        cancel: &Cancel,
        of: impl Fn(&Chunk, (u64, u64)) -> T + Sync,
        mut see: impl FnMut(&T),
    ) -> Result<()> {
        let job = |part| {
            let (begin, end) = timeline.span(part);
            let window = (from.max(begin), to.min(end));
            Job { part, window, whole: window == (begin, end) }
        };
        let jobs: Vec<Job> = touched(timeline, from, to).map(job).collect();
        let make = |reader: &mut Reader<'_, '_>, job: &Job| {
            cancel.check()?;
            if !job.whole {
                return Ok(Arc::new(of(&*parts.get_by(reader, job.part)?, job.window)));
            }
            if let Some(known) = self.known(job.part) {
                return Ok(known);
            }
            let made = Arc::new(of(&reader.chunk(job.part, None)?, job.window));
            self.keep(job.part, &made);
            Ok(made)
        };
        for few in jobs.chunks(AT_ONCE) {
            read(timeline, few, make)?.iter().for_each(|sum| see(sum));
        }
        Ok(())
    }

    /// Whether there is room for more.
    pub(crate) fn has_room(&self) -> bool {
        self.lock().bytes < MOST_BYTES
    }

    /// Keeps what a whole part comes to, if that is not known.
    pub(crate) fn learn(&self, timeline: &Timeline, part: usize, chunk: &Chunk, of: impl Fn(&Chunk, (u64, u64)) -> T) {
        if self.has_room() && self.known(part).is_none() {
            self.keep(part, &Arc::new(of(chunk, timeline.span(part))));
        }
    }
}
