//! The series of a report.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::{hdr, ms};
use crate::harness::{Cut, Outcome, SliceSum};

/// One slice of the series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SlicePoint {
    /// The start of the slice, since the measured time began.
    pub t_s: f64,
    /// Successful calls a second.
    pub rate: f64,
    /// Failed calls.
    pub errors: u64,
    /// Response times: none without calls.
    pub p50_ms: Option<f64>,
    /// The same.
    pub p99_ms: Option<f64>,
    /// The same.
    pub max_ms: Option<f64>,
    /// The histogram of its response times, as [`super::Report::hdr`]; empty without calls, and in a report of a run that had not
    /// ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hdr: String,
}

/// All slices of a run.
pub(super) fn points(outcome: &Outcome, slice_s: f64) -> Vec<SlicePoint> {
    // While it goes on, encoding all of them again and again would take the CPU that calls want.
    let with_hdr = outcome.cut != Some(Cut::Running);
    outcome.slices.iter().enumerate().map(|(i, slice)| SlicePoint::of(i, slice_s, slice, with_hdr)).collect()
}

impl SlicePoint {
    fn of(index: usize, slice_s: f64, slice: &SliceSum, with_hdr: bool) -> SlicePoint {
        let at = |share: f64| (!slice.counts.is_empty()).then(|| ms(slice.quantile(share) as f64));
        let is_kept = with_hdr && !slice.counts.is_empty();
        SlicePoint {
            t_s: index as f64 * slice_s,
            rate: slice.done as f64 / slice_s,
            errors: slice.errors,
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            max_ms: at(1.0),
            hdr: if is_kept { hdr::encoded(&hdr::of_slice(slice)) } else { String::new() },
        }
    }

    /// The response times; none without calls, and where they were not kept.
    pub(super) fn histogram(&self) -> Option<Histogram<u64>> {
        if self.hdr.is_empty() { None } else { hdr::decoded(&self.hdr) }
    }

    /// The response time in milliseconds that so many percent of the calls did not exceed, as far as it is known.
    pub(super) fn percentile(&self, percent: f64) -> Option<f64> {
        match self.histogram() {
            Some(times) => Some(ms(times.value_at_percentile(percent) as f64)),
            None if percent == 50.0 => self.p50_ms,
            None if percent == 99.0 => self.p99_ms,
            None if percent == 100.0 => self.max_ms,
            None => None,
        }
    }
}
