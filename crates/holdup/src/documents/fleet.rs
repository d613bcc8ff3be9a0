//! What `holdup fleet … --json` prints.

use holdup_fleet::{Change, Different, Rows};
use schemars::JsonSchema;
use serde::Serialize;

/// Which traces an answer is about.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Traces {
    /// The data set.
    pub dataset: String,
    /// The first day on which there are traces, of those asked for; empty if there are none.
    pub since: String,
    /// The last.
    pub until: String,
    /// Hosts with traces.
    pub hosts: i64,
    /// How many traces.
    pub traces: i64,
}

/// The answer to one question.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Table {
    /// Which question.
    pub name: &'static str,
    /// How many rows there are; those beyond the first hundred are not counted.
    pub of: usize,
    /// The first of them.
    #[serde(flatten)]
    pub rows: Rows,
}

/// What `holdup fleet report --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FleetReport {
    /// `holdup.fleet-report/1`.
    pub schema: &'static str,
    /// Of what.
    pub of: Traces,
    /// CPU seconds of all hosts.
    pub cpu_seconds: f64,
    /// Of these, of CPUs that stood still while threads were held up.
    pub held_up: f64,
    /// The questions: causes, locks, wait-sites, functions, builds, kernels.
    pub tables: Vec<Table>,
    /// Hosts that are held up by something much more than their peers, the worst first.
    pub different: Vec<Different>,
    /// The account of each day.
    pub days: Rows,
    /// The six causes that cost most, by day.
    pub course: Rows,
    /// The account of each host.
    pub hosts: Rows,
}

/// What `holdup fleet diff --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FleetDiff {
    /// `holdup.fleet-diff/1`.
    pub schema: &'static str,
    /// Of what.
    pub of: Traces,
    /// The first day of *after*; empty if there are traces of one day alone.
    pub at: String,
    /// How many days were tried for it.
    pub tried: usize,
    /// Hosts with traces on both sides.
    pub hosts: usize,
    /// Whether these are too few to tell a change from chance.
    pub too_few: bool,
    /// The significant ones first, then by size.
    pub changes: Vec<Change>,
}

/// What `holdup fleet example --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FleetExample {
    /// `holdup.fleet-example/1`.
    pub schema: &'static str,
    /// Of what.
    pub of: Traces,
    /// The traces, the best example first.
    #[serde(flatten)]
    pub rows: Rows,
}
