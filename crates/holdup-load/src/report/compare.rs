//! Reports against reports.

use holdup_base::named;
use holdup_base::numbers::figure;
use serde::Serialize;

use super::Report;
use crate::stats;

/// What came of a comparison.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Comparison {
    /// The name of the format.
    pub schema: &'static str,
    /// Reports on each side.
    pub reports: [usize; 2],
    /// Measure by measure.
    pub changes: Vec<Change>,
    /// One sentence.
    pub verdict: String,
    /// What stands against trusting it.
    pub notes: Vec<String>,
}

/// One measure.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Change {
    /// What was measured.
    pub name: Quantity,
    /// The mean of the reports before.
    pub before: f64,
    /// The mean of those after.
    pub after: f64,
    /// After / before.
    pub ratio: f64,
    /// The 95 % interval of the ratio; none if there is too little to tell.
    pub ci95: Option<[f64; 2]>,
    /// Mann–Whitney's p of the reports of each side; none with fewer than three.
    pub p: Option<f64>,
    /// Whether more is worse.
    #[serde(skip)]
    more_is_worse: bool,
}

named! {
    /// What is compared, with its unit.
    pub enum Quantity {
        /// Calls that succeeded.
        Throughput = "calls/s",
        /// The median response time.
        P50 = "p50 ms",
        /// What 99 % of the response times do not exceed.
        P99 = "p99 ms",
        /// What 99.9 % do not exceed.
        P999 = "p99.9 ms",
        /// The mean response time.
        Mean = "mean ms",
        /// The generator's own CPU time.
        Cpu = "CPU ns a call",
        /// Calls that failed.
        Errors = "errors",
    }
}

impl Change {
    /// Whether the interval leaves out 1.
    fn is_sure(&self) -> bool {
        self.ci95.is_some_and(|[low, high]| low > 1.0 || high < 1.0)
    }
}

impl Comparison {
    /// Whether throughput surely fell, or the 99th percentile surely rose, by more than a share such as 0.05.
    pub fn is_worse_by(&self, share: f64) -> bool {
        self.changes.iter().filter(|change| matches!(change.name, Quantity::Throughput | Quantity::P99)).any(|change| {
            let worse = if change.more_is_worse { change.ratio - 1.0 } else { 1.0 - change.ratio };
            change.is_sure() && worse > share
        })
    }
}

/// Compares reports before with reports after. With three or more a side, the spread of the reports is the noise; with fewer,
/// that of the time slices of a run is, which can't know what differs from run to run.
pub fn compare(before: &[Report], after: &[Report]) -> Comparison {
    let changes = vec![
        throughput(before, after),
        change(Quantity::P50, before, after, true, |r| r.latency_ms.p50),
        p99(before, after),
        change(Quantity::P999, before, after, true, |r| r.latency_ms.p999),
        change(Quantity::Mean, before, after, true, |r| r.latency_ms.mean),
        change(Quantity::Cpu, before, after, true, |r| r.generator.cpu_ns_per_call),
        change(Quantity::Errors, before, after, true, |r| r.errors as f64),
    ];
    Comparison {
        schema: "holdup.load-compare/1",
        reports: [before.len(), after.len()],
        verdict: verdict(&changes),
        notes: notes(before, after),
        changes,
    }
}

fn change(name: Quantity, before: &[Report], after: &[Report], more_is_worse: bool, of: fn(&Report) -> f64) -> Change {
    let [a, b] = [before, after].map(|side| side.iter().map(of).collect::<Vec<f64>>());
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (before, after) = (mean(&a), mean(&b));
    let enough = a.len() >= 3 && b.len() >= 3;
    Change {
        name,
        before,
        after,
        ratio: if before == after { 1.0 } else { after / before },
        ci95: stats::compare(&a, &b).map(|ratio| [ratio.low, ratio.high]),
        p: if enough { stats::mann_whitney(&a, &b).map(|test| test.p) } else { None },
        more_is_worse,
    }
}

fn throughput(before: &[Report], after: &[Report]) -> Change {
    let mut change = change(Quantity::Throughput, before, after, false, |r| r.throughput.mean);
    if let ([a], [b]) = (before, after) {
        change.ci95 = stats::compare_slices(&a.rates(), &b.rates()).map(|ratio| [ratio.low, ratio.high]);
    }
    change
}

/// Of one run a side, the ratio lies between those of the ends of both intervals: wider than it need be.
fn p99(before: &[Report], after: &[Report]) -> Change {
    let mut change = change(Quantity::P99, before, after, true, |r| r.latency_ms.p99);
    if let ([a], [b]) = (before, after) {
        change.ci95 = a.p99_ci95_ms.zip(b.p99_ci95_ms).map(|(a, b)| [b[0] / a[1], b[1] / a[0]]);
    }
    change
}

fn verdict(changes: &[Change]) -> String {
    let said: Vec<String> = changes
        .iter()
        .filter(|change| {
            matches!(change.name, Quantity::Throughput | Quantity::P50 | Quantity::P99) && change.is_sure()
        })
        .map(|change| {
            let is_worse = (change.ratio > 1.0) == change.more_is_worse;
            let word = if is_worse { "worse" } else { "better" };
            format!("{} {}× ({word})", change.name, figure(change.ratio))
        })
        .collect();
    if said.is_empty() { "no sure difference in throughput or response times".to_owned() } else { said.join(", ") }
}

/// A part of a run's set-up, as text.
type Setting = fn(&Report) -> String;

fn notes(before: &[Report], after: &[Report]) -> Vec<String> {
    let mut notes = Vec::new();
    if before.len() < 3 || after.len() < 3 {
        notes.push(
            "two single runs also differ by what each keeps to its end (placement, neighbours): three or more of each, taken in \
             turns, would know that"
                .to_owned(),
        );
    }
    let all = || before.iter().chain(after);
    let differs = |of: Setting| all().any(|report| of(report) != of(&before[0]));
    let setups: [(&str, Setting); 4] = [
        ("rate", |r| format!("{:?} {:?}", r.rate, r.rate_sine)),
        ("threads", |r| r.threads.to_string()),
        ("concurrency", |r| r.concurrency.to_string()),
        ("function", |r| r.function.clone()),
    ];
    let other: Vec<&str> = setups.into_iter().filter(|(_, of)| differs(*of)).map(|(name, _)| name).collect();
    if !other.is_empty() {
        notes.push(format!("the runs differ in {}", other.join(", ")));
    }
    if all().any(|report| report.cut.is_some()) {
        notes.push("a run was cut before its time".to_owned());
    }
    notes
}
