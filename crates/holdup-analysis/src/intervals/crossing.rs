//! Waits that cross the border between two parts: each is written down once, as it is when it is over.

use super::wait::{GOES_ON_BEYOND, Wait};

/// All crossing waits by number.
#[derive(Debug, Default)]
pub(super) struct Crossing {
    waits: Vec<Wait>,
    /// Which later one of these may go on with one that timed out: (this, that, when this timed out).
    same: Vec<(u32, u32, u64)>,
}

impl Crossing {
    /// A wait that is not over yet.
    pub(super) fn open(&mut self, wait: Wait) -> u32 {
        self.waits.push(wait);
        self.waits.len() as u32 - 1
    }

    /// The wait is over, or the trace is.
    pub(super) fn close(&mut self, number: u32, wait: Wait) {
        // Its index is one of that part.
        let goes_on = if wait.goes_on == 0 { 0 } else { GOES_ON_BEYOND };
        self.waits[number as usize] = Wait { goes_on, ..wait };
    }

    /// The wait timed out for the last time at `resumed`; perhaps it goes on in another crossing one, of which it is not
    /// known yet for what it waits.
    pub(super) fn may_go_on(&mut self, number: u32, later: u32, resumed: u64) {
        self.same.push((number, later, resumed));
    }

    /// When all of them are over: each ends as the last with which it goes on.
    pub(super) fn settle(&mut self) {
        // Later ones have greater numbers and are settled first.
        self.same.sort_unstable();
        for (number, later, resumed) in std::mem::take(&mut self.same).into_iter().rev() {
            let follow = self.waits[later as usize];
            self.waits[number as usize].join(&follow, resumed, GOES_ON_BEYOND);
        }
    }

    pub(super) fn get(&self, number: u32) -> &Wait {
        &self.waits[number as usize]
    }
}
