//! Parts that were made and are wanted once more: those are kept whose memory is there anyway.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::part::Chunk;

/// So many are kept at most, some 20 MB each.
const MOST: usize = 4;

/// Parts by number.
#[derive(Debug, Default)]
pub(super) struct Made(Mutex<Vec<(usize, Chunk)>>);

impl Made {
    pub(super) fn put(&self, index: usize, chunk: Chunk) {
        let mut kept = self.kept();
        if kept.len() < MOST {
            kept.push((index, chunk));
        }
    }

    pub(super) fn take(&self, index: usize) -> Option<Chunk> {
        let mut kept = self.kept();
        let at = kept.iter().position(|(i, _)| *i == index)?;
        Some(kept.swap_remove(at).1)
    }

    pub(super) fn clear(&self) {
        self.kept().clear();
    }

    fn kept(&self) -> MutexGuard<'_, Vec<(usize, Chunk)>> {
        // Nothing is left half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
