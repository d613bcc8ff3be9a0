//! The answer of `holdup diff`, in the contract's names.

use holdup_trace::Amount;
use serde::Serialize;

pub use super::change::{Change, Role, Subject};
use super::facts::Facts;
use super::items::Sides;
use super::series::{Series, middle};
use super::{regress, roles};

/// What is compared with what.
#[derive(Debug, Clone, Default)]
pub struct DiffOptions {
    /// Units of work done before and after; without them every run did the same work.
    pub per: Option<(f64, f64)>,
    /// The growth from which on the answer is "no", as a share: 0.05 for 5 %.
    pub fail_on: Option<f64>,
}

/// The comparison.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Diff {
    /// `holdup.diff/1`.
    pub schema: &'static str,
    /// The earlier side.
    pub before: Side,
    /// The later side.
    pub after: Side,
    /// Elapsed time after, divided by that before, for the same work.
    pub slower: f64,
    /// CPU time after, divided by that before, for the same work.
    pub cpu: f64,
    /// What changed: causes first, then by size.
    pub changes: Vec<Change>,
    /// What grew by more than the caller allows.
    pub regressions: Vec<String>,
    /// How many differences are within the noise of one run against another.
    pub within_noise: usize,
    /// What the reader should know about how far this can be trusted.
    pub notes: Vec<String>,
}

/// One side, as its typical run.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Side {
    /// The traces.
    pub traces: Vec<String>,
    /// How many runs.
    pub runs: usize,
    /// How long the program in focus lived, in seconds.
    pub elapsed_s: f64,
    /// CPU seconds that it used.
    pub cpu_s: f64,
    /// CPU seconds that were idle while it waited.
    pub held_up_s: f64,
    /// The share of all CPUs that others used.
    pub other_share: f64,
    /// Units of work, where the caller tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<f64>,
}

/// Compares runs before with runs after. Both sides need at least one.
pub fn diff(before: &[Facts], after: &[Facts], options: &DiffOptions) -> Diff {
    let scale = options.per.map_or(1.0, |(n, m)| n / m);
    let sides = Sides { before, after, scale };
    let elapsed = sides.total(|f| f.elapsed_ns);
    let cpu = sides.total(|f| f.ran_ns);
    let judged = roles::judge(&sides, &elapsed);
    let regressions =
        options.fail_on.map_or(Vec::new(), |limit| regress::found(&sides, &judged, &elapsed, &cpu, limit));
    Diff {
        schema: "holdup.diff/1",
        before: side(before, options.per.map(|p| p.0)),
        after: side(after, options.per.map(|p| p.1)),
        slower: ratio(&elapsed),
        cpu: ratio(&cpu),
        changes: judged.changes,
        regressions,
        within_noise: judged.within_noise,
        notes: notes(&sides),
    }
}

fn ratio(series: &Series) -> f64 {
    if series.was() > 0.0 { series.now() / series.was() } else { 1.0 }
}

fn side(runs: &[Facts], work: Option<f64>) -> Side {
    let typical = |of: fn(&Facts) -> f64| middle(&runs.iter().map(of).collect::<Vec<_>>());
    let seconds = |of| Amount(typical(of)).seconds();
    Side {
        traces: runs.iter().map(|f| f.path.clone()).collect(),
        runs: runs.len(),
        elapsed_s: seconds(|f| f.elapsed_ns),
        cpu_s: seconds(|f| f.ran_ns),
        held_up_s: seconds(|f| f.held_up_ns),
        other_share: typical(Facts::neighbours),
        work,
    }
}

fn notes(sides: &Sides) -> Vec<String> {
    let mut notes = Vec::new();
    let all = || sides.before.iter().chain(sides.after);
    let by = sides.disturbance();
    if !by.is_quiet() {
        let host =
            if by.stolen > 0.005 { format!(", the host up to {:.0} %", 100.0 * by.stolen) } else { String::new() };
        notes.push(format!(
            "other programs used up to {:.0} % of the CPUs{host}: elapsed time and waits say little, CPU time by function \
             and undisturbed hold times are what to look at",
            100.0 * by.neighbours
        ));
    }
    let mut models: Vec<&str> = all().map(|f| f.cpu_model.as_str()).collect();
    models.sort_unstable();
    models.dedup();
    if models.len() > 1 {
        notes.push(format!("the runs are from different machines: {}", models.join("; ")));
    }
    if all().any(|f| f.functions.is_empty()) {
        notes.push("a trace without CPU samples is among them: functions and instructions cannot be compared".into());
    }
    for facts in all().filter(|f| f.lost > 0) {
        notes.push(format!("{}: {} events were lost, so its waits are incomplete", facts.path, facts.lost));
    }
    if sides.before.len() < 3 || sides.after.len() < 3 {
        notes.push("with three or more runs on each side the noise is measured instead of assumed".into());
    }
    notes
}

/// Both sides' stacks, as lines `process;outermost;…;leaf BEFORE AFTER` in whole microseconds of CPU of a typical run:
/// what differential flame graphs are made of.
pub fn folded(before: &[Facts], after: &[Facts], per: Option<(f64, f64)>) -> Vec<String> {
    let sides = Sides { before, after, scale: per.map_or(1.0, |(n, m)| n / m) };
    let stacks = sides.collect(|facts, add| facts.folded.iter().for_each(|(stack, ns)| add(stack.clone(), *ns)));
    let average = |values: &[f64]| (values.iter().sum::<f64>() / values.len().max(1) as f64 / 1e3).round() as u64;
    let line = |(stack, s): (String, Series)| format!("{stack} {} {}", average(&s.before), average(&s.after));
    stacks.into_iter().map(line).collect()
}
