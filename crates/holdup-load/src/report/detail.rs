//! Parts of a report that say more of its calls: each function of a mix, further percentiles.

use serde::{Deserialize, Serialize};

use super::{Latencies, ms};
use crate::harness::{Outcome, Plan};
use crate::session::{Better, Notes, Values};
use crate::stats;

/// The percentiles of [`Percentile`].
const PERCENTS: [f64; 9] = [25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.9, 99.99];

/// One function of a mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FunctionTimes {
    /// Its name.
    pub name: String,
    /// Its calls that succeeded.
    pub cycles: u64,
    /// Their service times.
    pub service_ms: Latencies,
}

/// One of the script's own metrics, in the unit that the script means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs)] // The names say it.
pub struct Metric {
    /// Its name.
    pub name: String,
    /// How many values measured calls recorded.
    pub count: u64,
    pub mean: f64,
    pub min: f64,
    /// Percentiles are within one part in 128.
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
    /// Which values are better, if the script says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
}

impl Metric {
    fn of(name: &str, values: &Values, better: Option<Better>) -> Metric {
        let [min, p50, p90, p99, max] = [0.0, 0.5, 0.9, 0.99, 1.0].map(|share| values.quantile(share));
        Metric { name: name.to_owned(), count: values.count(), mean: values.mean(), min, p50, p90, p99, max, better }
    }
}

/// All that have values.
pub(super) fn metrics(notes: &Notes) -> Vec<Metric> {
    notes.metrics.iter().map(|(name, values)| Metric::of(name, values, notes.better.get(name).copied())).collect()
}

/// What so many percent of the response times do not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Percentile {
    /// From 0 to 100.
    pub percent: f64,
    /// Response times.
    pub response_ms: f64,
    /// The 95 % interval of it; none if there is too little to tell.
    pub ci95_ms: Option<[f64; 2]>,
}

/// Each function of a mix; none if there is no mix, or the run still goes on.
pub(super) fn functions(plan: &Plan, outcome: &Outcome) -> Vec<FunctionTimes> {
    let names = plan.mix.names().iter().zip(&outcome.functions);
    names
        .map(|(name, times)| FunctionTimes {
            name: name.clone(),
            cycles: times.len(),
            service_ms: Latencies::of(times),
        })
        .collect()
}

/// Percentiles of the response times. O(slices × values) each.
pub(super) fn percentiles(outcome: &Outcome, slices: &stats::Slices) -> Vec<Percentile> {
    if outcome.response.is_empty() {
        return Vec::new();
    }
    let of = |percent: f64| Percentile {
        percent,
        response_ms: ms(outcome.response.value_at_percentile(percent) as f64),
        ci95_ms: interval(slices, percent),
    };
    PERCENTS.map(of).to_vec()
}

/// The 95 % interval of a percentile of the response times.
pub(super) fn interval(slices: &stats::Slices, percent: f64) -> Option<[f64; 2]> {
    let interval = stats::percentile_interval(slices, percent)?;
    Some([ms(interval.low as f64), ms(interval.high? as f64)])
}

/// How many calls were under way on average: their service times together, over the time (Little's law).
pub(super) fn mean_concurrency(outcome: &Outcome) -> f64 {
    let elapsed_ns = outcome.elapsed.as_nanos() as f64;
    if elapsed_ns > 0.0 { outcome.service.mean() * outcome.service.len() as f64 / elapsed_ns } else { 0.0 }
}
