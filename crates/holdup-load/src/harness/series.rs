//! The series of a run: what ended in each time slice.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

/// All threads' calls that ended in one time slice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SliceSum {
    /// Calls that succeeded.
    pub done: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Response times, in nanoseconds, and how often each came; ascending. The times are rounded to three digits.
    pub counts: Vec<(u64, u64)>,
}

impl SliceSum {
    pub(super) fn add(&mut self, done: u64, errors: u64, counts: Vec<(u64, u64)>) {
        self.done += done;
        self.errors += errors;
        self.counts = merged(&self.counts, counts);
    }

    /// The response time, in nanoseconds, that this share of calls did not exceed; 0 without calls. O(n).
    pub fn quantile(&self, share: f64) -> u64 {
        let total: u64 = self.counts.iter().map(|(_, count)| count).sum();
        let wanted = ((total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let at = self.counts.iter().find(|(_, count)| {
            seen += count;
            seen >= wanted
        });
        at.map_or(0, |(value, _)| *value)
    }
}

/// Two ascending lists of values and counts as one.
fn merged(a: &[(u64, u64)], b: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    if a.is_empty() {
        return b;
    }
    let mut all: Vec<(u64, u64)> = a.iter().copied().chain(b).collect();
    all.sort_unstable_by_key(|(value, _)| *value);
    all.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        if is_same {
            kept.1 += next.1;
        }
        is_same
    });
    all
}

pub(super) fn counts(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
    histogram.iter_recorded().map(|at| (at.value_iterated_to(), at.count_at_value())).collect()
}

/// Every slice of the measured time, also those in which nothing ended; a last one that is not whole is left out, unless it is
/// the only one.
pub(super) fn series(slices: &BTreeMap<u64, SliceSum>, elapsed: Duration, width: Duration) -> Vec<SliceSum> {
    let whole = (elapsed.as_nanos() / width.as_nanos().max(1)).max(1);
    (0..u64::try_from(whole).unwrap_or(u64::MAX)).map(|index| slices.get(&index).cloned().unwrap_or_default()).collect()
}
