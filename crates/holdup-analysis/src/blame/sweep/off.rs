//! What a queue's members learn from the end of their chain: how long it held nobody up, and where they are charged.

use super::super::forest::{Counts, Mark};
use super::Sweep;

impl Sweep<'_> {
    /// The last queue before the root.
    fn top(&self, q: u32) -> u32 {
        self.forest.path(q).last().unwrap_or(q)
    }

    /// What [`off`](Self::off), which is that of the queue in which `parent` waits, is for those who wait for `parent`: nothing if it
    /// holds them up.
    pub(super) fn off_behind(&self, parent: u32, off: Mark) -> Mark {
        if self.forest.at(parent).holds() { Mark::default() } else { off }
    }

    /// What those who wait for `parent` count as in the queue in which it waits itself.
    pub(super) fn seen_behind(&self, parent: u32, counts: Counts) -> Counts {
        if self.forest.at(parent).holds() { counts.behind_held() } else { counts }
    }

    /// What ends that held nobody up have come to, for a member of `q`, up to now.
    pub(super) fn off(&mut self, q: u32) -> Mark {
        let top = self.top(q);
        self.flush(top);
        let mut off = Mark::default();
        self.forest.path_by_end(q).for_each(|q| off.add(&self.forest.queue(q).off));
        off
    }

    /// The cells that were charged for a member of `q` later than `since`. To be asked after [`off`](Self::off).
    pub(super) fn charged_since(&self, q: u32, since: u64, found: &mut Vec<(u32, u64)>) {
        found.clear();
        for q in self.forest.path(q) {
            for &(cell, until) in self.forest.queue(q).charged.iter().rev().take_while(|c| c.1 > since) {
                match found.iter_mut().find(|f| f.0 == cell) {
                    Some(known) => known.1 = known.1.max(until),
                    None => found.push((cell, until)),
                }
            }
        }
    }
}
