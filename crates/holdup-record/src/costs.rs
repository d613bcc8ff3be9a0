//! What was spent when each segment of a ring began: a trace tells what it cost itself, not what came before it.

use std::collections::VecDeque;

use crate::budget::Reading;
use crate::{clock, proc};

/// The counters at the begin of each segment that is kept.
#[derive(Debug)]
pub(crate) struct Costs {
    /// CPU seconds of this process before it recorded: loading programs is not yet recording.
    cpu_before: f64,
    begins: VecDeque<Begin>,
}

#[derive(Debug)]
struct Begin {
    segment: u64,
    reading: Reading,
    stolen: Option<f64>,
}

impl Costs {
    /// Recording begins now.
    pub(crate) fn begin() -> Costs {
        let first = Begin { segment: 0, reading: Reading::default(), stolen: proc::stolen_seconds() };
        Costs { cpu_before: clock::cpu_seconds(), begins: VecDeque::from([first]) }
    }

    /// CPU seconds of this process since.
    pub(crate) fn cpu_s(&self) -> f64 {
        clock::cpu_seconds() - self.cpu_before
    }

    /// A segment begins, and `oldest` is the first that is still kept.
    pub(crate) fn segment(&mut self, segment: u64, oldest: u64, reading: Reading) {
        self.begins.push_back(Begin { segment, reading, stolen: proc::stolen_seconds() });
        self.forget(oldest);
    }

    /// What was spent, and stolen, from the begin of the segment `oldest` to `now`.
    pub(crate) fn since(&mut self, oldest: u64, now: &Reading) -> (Reading, Option<f64>) {
        self.forget(oldest);
        let Some(begin) = self.begins.front() else { return (*now, None) };
        let stolen = proc::stolen_seconds().zip(begin.stolen).map(|(now, before)| now - before);
        (now.since(&begin.reading), stolen)
    }

    fn forget(&mut self, oldest: u64) {
        while self.begins.get(1).is_some_and(|next| next.segment <= oldest) {
            self.begins.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_before_the_oldest_segment_does_not_count() {
        let mut costs = Costs::begin();
        let reading = |base: u64| Reading { base, reader_s: base as f64, ..Reading::default() };
        for n in 1..100 {
            costs.segment(n, n.saturating_sub(3), reading(n * 10));
        }
        assert_eq!(costs.begins.len(), 4);
        let (spent, _) = costs.since(96, &reading(1000));
        assert_eq!((spent.base, spent.reader_s), (40, 40.0));
        assert_eq!(costs.since(99, &reading(1000)).0.base, 10);
        assert_eq!(Costs::begin().since(0, &reading(7)).0.base, 7, "all of it");
    }
}
