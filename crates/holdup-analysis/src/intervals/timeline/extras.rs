//! What else a part has to tell than what its threads do.

use holdup_trace::{LockId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::super::output::Output;
use super::super::part::{Chunk, Extra, Part};
use super::super::state::State;
use super::Timeline;
use crate::classify::WaitKind;

impl Timeline<'_> {
    /// Who releases the locks next for which threads wait at the end of part `index`.
    pub(super) fn releasers(&self, index: usize, out: &Output, last: &[State]) -> Vec<(LockId, ThreadIdx)> {
        let waits = last.iter().filter_map(|state| state.wait()).map(|w| &out.waits[w as usize]);
        let mut locks: FxHashMap<LockId, u64> = FxHashMap::default();
        for wait in waits.filter(|w| w.kind == WaitKind::Lock) {
            let until = locks.entry(wait.lock).or_default();
            *until = wait.woken.max(*until);
        }
        let next = |(lock, until): (LockId, u64)| {
            let parts = self.parts[index + 1..].iter().take_while(|p| p.from <= until);
            let found = |p: &Part| p.releases.binary_search_by_key(&lock, |r| r.lock).map(|at| p.releases[at]);
            let release = parts.filter_map(|p| found(p).ok()).next()?;
            (release.t <= until).then_some((lock, release.by))
        };
        let mut releasers: Vec<_> = locks.into_iter().filter_map(next).collect();
        releasers.sort_unstable();
        releasers
    }

    /// The changes of a part that nobody's steps tell.
    pub(super) fn extras(&self, from: u64, to: u64, chunk: &Chunk) -> Vec<(u64, Extra)> {
        let inside = |t: &u64| (from..to).contains(t);
        let mut extras = Vec::new();
        for loss in &self.losses {
            extras.extend(Some(loss.from).filter(inside).map(|t| (t, Extra::Lost(loss.cpu, false))));
            extras.extend(Some(loss.to).filter(inside).map(|t| (t, Extra::Lost(loss.cpu, true))));
        }
        for span in chunk.owners.iter().chain(&chunk.owners_at_end) {
            let begins = Extra::OwnerBegins(span.lock, span.owner);
            extras.extend(Some(span.from).filter(inside).map(|t| (t, begins)));
        }
        extras.extend(chunk.owners.iter().map(|s| (s.to, Extra::OwnerEnds(s.lock, s.owner))));
        // At one instant an owner ends before the next one begins.
        extras.sort_by_key(|e| (e.0, matches!(e.1, Extra::OwnerBegins(..))));
        extras
    }
}
