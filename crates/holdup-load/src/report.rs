//! What `holdup load run` says: figures with their uncertainty, and what stands against trusting them.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use holdup_base::named;
use serde::{Deserialize, Serialize};

use crate::driver::ServerInfo;
use crate::harness::{Cut, ErrorKind, Outcome, Plan, Wave};
use crate::stats;

mod compare;
mod detail;
mod hdr;
mod hdr_log;
mod messages;
mod plot;
mod several;
mod slices;

pub use compare::{Change, Comparison, compare};
pub use detail::{FunctionTimes, Metric, Percentile};
pub use hdr_log::{write_hdr_log, write_saved_hdr_log};
pub use plot::draw;
pub use several::{Panel, draw_several};
pub use slices::SlicePoint;

/// The name of the format.
pub const SCHEMA: &str = "holdup.load/1";

/// Served less than this share of what was offered: saturated.
const SERVED: f64 = 0.98;

/// A whole run. Times are in the unit that a field's name ends with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// The script.
    pub workload: String,
    /// The functions that were called, with weights.
    pub function: String,
    /// The server.
    pub address: Option<String>,
    /// What that server said of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerInfo>,
    /// The script's parameters and their values.
    pub params: BTreeMap<String, String>,
    /// Words of the user's, to tell reports apart.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Seconds since 1970 at the end of the run.
    pub finished_unix_s: u64,
    /// Threads of the generator.
    pub threads: usize,
    /// Calls under way at most, for each thread.
    pub concurrency: usize,
    /// Calls due a second; none in a closed loop.
    pub rate: Option<f64>,
    /// How that rate swings, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_sine: Option<Wave>,
    /// Calls that succeeded.
    pub cycles: u64,
    /// Calls that failed.
    pub errors: u64,
    /// The most frequent failures.
    pub error_kinds: Vec<ErrorKind>,
    /// Calls that were due in the measured time: `cycles + errors + unserved + unfinished`. Open loop only.
    pub due: Option<u64>,
    /// Due, and nothing began to serve them.
    pub unserved: u64,
    /// Due in the warm-up, and not begun when it was over: the measurement begins without them.
    #[serde(default)]
    pub warmup_unserved: u64,
    /// Begun, and not ended when the run was over.
    pub unfinished: u64,
    /// The measured time.
    pub elapsed_s: f64,
    /// Successful calls a second, within the measured time.
    pub throughput: Throughput,
    /// Whether less was served than was offered.
    pub saturated: bool,
    /// Response times: from the time a call was due. Those that nothing served count with what they had waited.
    pub latency_ms: Latencies,
    /// Service times: from the actual start.
    pub service_ms: Latencies,
    /// Service times of each function of a mix; empty without one.
    #[serde(default)]
    pub functions: Vec<FunctionTimes>,
    /// What the script said of the run with `set_report_field`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
    /// The script's own metrics, recorded with `record_metric`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// More percentiles of response times, with 95 % intervals.
    #[serde(default)]
    pub percentiles: Vec<Percentile>,
    /// Calls under way on average.
    #[serde(default)]
    pub mean_concurrency: f64,
    /// Statements for each call that succeeded or failed.
    #[serde(default)]
    pub requests_per_call: f64,
    /// Rows for each of them.
    #[serde(default)]
    pub rows_per_call: f64,
    /// 95 % interval of the 99th percentile of response times.
    pub p99_ci95_ms: Option<[f64; 2]>,
    /// Statements of measured calls that were answered.
    pub requests: u64,
    /// Further attempts at statements.
    pub retries: u64,
    /// Rows that came back to measured calls.
    pub rows: u64,
    /// What the generator used itself.
    pub generator: Generator,
    /// The width of a slice of the series.
    pub slice_s: f64,
    /// The series.
    pub series: Vec<SlicePoint>,
    /// Why the run ended early, if it did.
    pub cut: Option<String>,
    /// The same in kind.
    #[serde(default)]
    pub cut_kind: Option<CutKind>,
    /// What stands against trusting the figures.
    pub warnings: Vec<String>,
    /// The histogram of response times in nanoseconds: HdrHistogram V2, compressed, base64.
    pub hdr: String,
    /// The same of service times; empty where it is the same.
    pub service_hdr: String,
}

named! {
    /// Why a run ended early, in kind.
    pub enum CutKind {
        /// Somebody asked for it.
        Asked = "asked",
        /// An error that trying again can't mend.
        Error = "error",
        /// Nothing but errors came for as long as was allowed.
        OnlyErrors = "only-errors",
        /// It had not ended when this was written down.
        Running = "running",
    }
}

impl CutKind {
    fn of(cut: &Cut) -> CutKind {
        match cut {
            Cut::Asked => CutKind::Asked,
            Cut::Error(_) => CutKind::Error,
            Cut::OnlyErrors(_) => CutKind::OnlyErrors,
            Cut::Running => CutKind::Running,
        }
    }
}

/// Calls a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Throughput {
    /// On average.
    pub mean: f64,
    /// The 95 % interval of the mean, widened by how much each slice resembles the one before; the mean twice where the run is
    /// too short to tell.
    pub ci95: [f64; 2],
}

/// A distribution of times in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[allow(missing_docs)] // The names say it.
pub struct Latencies {
    pub mean: f64,
    pub min: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// What the generator used itself, in the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Generator {
    /// CPU time of all its threads.
    pub cpu_s: f64,
    /// In user mode.
    pub user_s: f64,
    /// In the kernel.
    pub system_s: f64,
    /// Ready to run, but without a CPU.
    pub ready_s: f64,
    /// CPU time for each call.
    pub cpu_ns_per_call: f64,
    /// The CPU time of the busiest thread as a share of the time.
    pub busiest: f64,
    /// Involuntary switches.
    pub preemptions: u64,
    /// How late it began calls that waited for their time: on average and at most.
    pub late_ms: Option<[f64; 2]>,
}

impl Report {
    /// The report of a run. O(slices × values).
    pub fn new(plan: &Plan, outcome: &Outcome, tags: Vec<String>) -> Report {
        let elapsed_s = outcome.elapsed.as_secs_f64();
        let slice_s = outcome.slice.as_secs_f64();
        let intervals = slices(outcome);
        let per_call = |count: u64| count as f64 / (outcome.done + outcome.errors).max(1) as f64;
        let mut report = Report {
            schema: SCHEMA.to_owned(),
            workload: plan.source.path.display().to_string(),
            function: plan.mix.describe(),
            address: plan.connect.as_ref().map(|options| options.address.to_string()),
            server: outcome.server.clone(),
            params: outcome
                .params
                .iter()
                .map(|p| (p.name.clone(), p.value.clone().unwrap_or(p.default.clone())))
                .collect(),
            tags,
            finished_unix_s: std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs()),
            threads: plan.threads,
            concurrency: plan.concurrency,
            rate: plan.rate,
            rate_sine: plan.wave,
            cycles: outcome.done,
            errors: outcome.errors,
            error_kinds: outcome.kinds.clone(),
            due: plan.rate.map(|_| outcome.done + outcome.errors + outcome.unserved + outcome.unfinished),
            unserved: outcome.unserved,
            warmup_unserved: outcome.left_behind,
            unfinished: outcome.unfinished,
            elapsed_s,
            throughput: throughput(plan, outcome, elapsed_s, slice_s),
            saturated: false,
            latency_ms: Latencies::of(&outcome.response),
            service_ms: Latencies::of(&outcome.service),
            functions: detail::functions(plan, outcome),
            fields: outcome.notes.fields.clone(),
            metrics: detail::metrics(&outcome.notes),
            percentiles: detail::percentiles(outcome, &intervals),
            mean_concurrency: detail::mean_concurrency(outcome),
            requests_per_call: per_call(outcome.traffic.requests),
            rows_per_call: per_call(outcome.traffic.rows),
            p99_ci95_ms: detail::interval(&intervals, 99.0),
            requests: outcome.traffic.requests,
            retries: outcome.traffic.retries,
            rows: outcome.traffic.rows,
            generator: Generator::of(outcome),
            slice_s,
            series: slices::points(outcome, slice_s),
            cut: outcome.cut.as_ref().map(messages::cut),
            cut_kind: outcome.cut.as_ref().map(CutKind::of),
            warnings: Vec::new(),
            hdr: hdr::encoded(&outcome.response),
            service_hdr: if plan.rate.is_some() { hdr::encoded(&outcome.service) } else { String::new() },
        };
        report.saturated = report.offered().is_some_and(|offered| {
            outcome.cut.is_none() && report.errors == 0 && report.throughput.mean < SERVED * offered
        });
        report.warnings = messages::warnings(&report);
        report
    }

    /// Calls due a second on average, of the whole run; none in a closed loop.
    pub fn offered(&self) -> Option<f64> {
        Some(self.rate? * self.rate_sine.map_or(1.0, |wave| wave.over(0.0, self.elapsed_s)))
    }

    /// Whether the run ended for an error.
    pub fn has_failed(&self) -> bool {
        self.cut_kind.is_some_and(|kind| kind != CutKind::Asked)
    }

    /// Whether an error ended it before any call was measured.
    pub fn is_empty(&self) -> bool {
        self.has_failed() && self.cycles + self.errors + self.unserved + self.unfinished == 0
    }

    /// Reads a report.
    ///
    /// # Errors
    /// It is none: why, as a part of a sentence.
    pub fn parse(text: &str) -> Result<Report, String> {
        let mut report: Report = serde_json::from_str(text).map_err(|e| e.to_string())?;
        // Reports of earlier versions have the sentence alone.
        report.cut_kind = report.cut_kind.or_else(|| report.cut.as_deref().map(messages::kind_of));
        if report.schema == SCHEMA {
            Ok(report)
        } else {
            Err(format!("its schema is {:?}, not {SCHEMA:?}", report.schema))
        }
    }

    /// The series of calls a second.
    pub fn rates(&self) -> Vec<f64> {
        self.series.iter().map(|point| point.rate).collect()
    }
}

fn throughput(plan: &Plan, outcome: &Outcome, elapsed_s: f64, slice_s: f64) -> Throughput {
    if elapsed_s <= 0.0 {
        return Throughput { mean: 0.0, ci95: [0.0; 2] };
    }
    let mean = outcome.done_in_time as f64 / elapsed_s;
    // What follows the wave of the rate is no chance; a server that can't is not as fast as asked.
    let wave = plan.wave.filter(|_| outcome.unserved == 0);
    let by_wave =
        |i: usize| wave.map_or(0.0, |w| plan.rate.unwrap_or(0.0) * (w.over(i as f64 * slice_s, slice_s) - 1.0));
    let rates = outcome.slices.iter().enumerate().map(|(i, slice)| slice.done as f64 / slice_s - by_wave(i));
    let rates: Vec<f64> = rates.collect();
    // The interval is of whole slices; the mean also counts a last one that is not.
    let half = stats::mean_interval(&rates).map_or(0.0, |interval| interval.high - interval.mean);
    Throughput { mean, ci95: [(mean - half).max(0.0), mean + half] }
}

fn slices(outcome: &Outcome) -> stats::Slices {
    let mut slices = stats::Slices::new();
    for slice in &outcome.slices {
        slices.push(slice.counts.iter().copied());
    }
    slices
}

fn ms(nanos: f64) -> f64 {
    // To the nanosecond.
    nanos.round() / 1e6
}

impl Latencies {
    fn of(histogram: &Histogram<u64>) -> Latencies {
        if histogram.is_empty() {
            return Latencies::default();
        }
        let at = |share: f64| ms(histogram.value_at_quantile(share) as f64);
        Latencies {
            mean: ms(histogram.mean()),
            min: ms(histogram.min() as f64),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: ms(histogram.max() as f64),
        }
    }
}

impl Generator {
    fn of(outcome: &Outcome) -> Generator {
        let usage = &outcome.usage;
        let calls = outcome.done + outcome.errors;
        Generator {
            cpu_s: usage.cpu().as_secs_f64(),
            user_s: usage.user.as_secs_f64(),
            system_s: usage.system.as_secs_f64(),
            ready_s: usage.ready.as_secs_f64(),
            cpu_ns_per_call: if calls == 0 { 0.0 } else { usage.cpu().as_nanos() as f64 / calls as f64 },
            busiest: outcome.busiest,
            preemptions: usage.preemptions,
            late_ms: outcome.late.map(|(mean, max)| [mean.as_secs_f64() * 1e3, max.as_secs_f64() * 1e3]),
        }
    }
}
