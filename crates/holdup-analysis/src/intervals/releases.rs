//! Who releases each lock first in a part: for those who wait for it when the part begins, its present holder.

use holdup_trace::{LockId, ThreadIdx};

use super::wait::Wait;
use crate::classify::WaitKind;

/// The first release of a lock in a part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Release {
    pub(super) lock: LockId,
    pub(super) t: u64,
    pub(super) by: ThreadIdx,
}

/// The first releases of the present part, by lock.
#[derive(Debug)]
pub(super) struct Releases {
    first: Vec<Option<Release>>,
    touched: Vec<LockId>,
}

impl Releases {
    pub(super) fn new(locks: usize) -> Self {
        Releases { first: vec![None; locks], touched: Vec::new() }
    }

    /// A wait was ended in this part.
    pub(super) fn see(&mut self, release: Release) {
        let Some(first) = self.first.get_mut(release.lock.index()) else { return };
        match first {
            Some(known) if known.t <= release.t => {}
            Some(known) => *known = release,
            None => {
                *first = Some(release);
                self.touched.push(release.lock);
            }
        }
    }

    /// All of the part, by lock; the next part has none yet.
    pub(super) fn take(&mut self) -> Vec<Release> {
        self.touched.sort_unstable();
        self.touched.drain(..).filter_map(|lock| self.first[lock.index()].take()).collect()
    }
}

/// The release by which a wait ended, if it may be one of a lock.
pub(super) fn of(wait: &Wait) -> Option<Release> {
    let may_be = matches!(wait.kind, WaitKind::Lock | WaitKind::Futex) && wait.lock != LockId::NONE;
    let by = wait.waker;
    (may_be && by.is_real() && by != wait.thread).then_some(Release { lock: wait.lock, t: wait.woken, by })
}

/// The first of two that are sorted by lock.
pub(super) fn add_to(releases: &mut Vec<Release>, release: Release) {
    match releases.binary_search_by_key(&release.lock, |r| r.lock) {
        Ok(at) if releases[at].t <= release.t => {}
        Ok(at) => releases[at] = release,
        Err(at) => releases.insert(at, release),
    }
}
