//! What an experiment says: series of points, and a verdict.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What one experiment found.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Outcome {
    /// The experiment.
    pub name: String,
    /// The knobs it ran with, as they would be written on the command line.
    pub params: BTreeMap<String, String>,
    /// What the points' `x` is, with its unit.
    pub axis: String,
    /// The figures.
    pub series: Vec<Series>,
    /// What has to be known to read the figures.
    pub notes: Vec<String>,
    /// What they mean.
    pub verdict: Verdict,
    /// How long it took, in seconds.
    pub elapsed_s: f64,
}

/// One line of a plot.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Series {
    /// What was measured.
    pub name: String,
    /// Unit of medians, lows and highs.
    pub unit: String,
    /// What `x` is, where it is not the experiment's axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axis: Option<String>,
    /// By growing `x`.
    pub points: Vec<Point>,
}

/// A median with its spread.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Point {
    /// The place on the axis.
    pub x: f64,
    /// The median of the clean rounds.
    pub median: f64,
    /// Where a further round may lie: the 2.5 % quantile, at least 3 % below the median.
    pub low: f64,
    /// The 97.5 % quantile, at least 3 % above.
    pub high: f64,
    /// Rounds made.
    pub n: usize,
    /// Rounds in which no worker was preempted: only these count.
    pub clean: usize,
    /// There were more workers than CPUs. They preempt each other, no round can be clean, and all count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub crowded: bool,
    /// What an operation cost besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<Costs>,
    /// Lengths of sampled operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waits>,
}

/// The cost of one operation, over all clean rounds.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Costs {
    /// CPU time, in nanoseconds.
    pub cpu_ns: f64,
    /// The part of it in user mode, where the experiment asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_ns: Option<f64>,
    /// The part of it in kernel mode, where the experiment asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_ns: Option<f64>,
    /// Time on the clock, for the thread that did it, in nanoseconds.
    pub elapsed_ns: f64,
    /// Switches because a thread blocked.
    pub switches: f64,
    /// Switches because another thread took the CPU.
    pub preemptions: f64,
    /// Operations per second of all threads together.
    pub throughput: f64,
    /// Jain's index of the threads' rates: 1 is even, 1/threads is one thread alone.
    pub fairness: f64,
}

/// How long single operations took; one of each batch was timed.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Waits {
    /// Half took at most this.
    pub p50_ns: f64,
    /// 99 of 100 took at most this.
    pub p99_ns: f64,
    /// The longest.
    pub max_ns: f64,
    /// How many were timed.
    pub n: usize,
}

/// What the figures mean.
#[derive(Debug, Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Verdict {
    /// Whether this machine shows the effect that the experiment is about.
    pub reproduced: bool,
    /// Why, with the figures.
    pub because: String,
    /// What to do about it in a program.
    pub advice: String,
}

impl Verdict {
    /// What to say where no round was clean.
    pub fn without_clean_rounds() -> Verdict {
        Verdict {
            reproduced: false,
            because: "there was no clean round: other programs took the CPUs in each".to_owned(),
            advice: "run it again on a quieter machine, or with more rounds (--set rounds=200)".to_owned(),
        }
    }
}

impl Outcome {
    /// The median of the series of this name at `x`.
    pub fn median_in(series: &[Series], name: &str, x: f64) -> Option<f64> {
        let series = series.iter().find(|s| s.name == name)?;
        series.points.iter().find(|p| p.x == x).map(|p| p.median)
    }
}
