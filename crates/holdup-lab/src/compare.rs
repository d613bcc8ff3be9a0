//! Two results side by side: which series differ by more than their spreads.

use serde::Serialize;

use crate::machine::Machine;
use crate::report::Report;
use crate::result::{Outcome, Point, Series};

/// The name and version of the document.
pub const SCHEMA: &str = "holdup.lab-compare/1";

/// What differs between two results.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Where the first was made.
    pub before: Machine,
    /// Where the second was made.
    pub after: Machine,
    /// Series that both have, in the order of the first.
    pub series: Vec<Pair>,
    /// How many of them agree.
    pub agree: usize,
    /// Series that only one has, as `experiment: name`.
    pub missing: Vec<String>,
    /// Verdicts that differ: experiment, whether it was reproduced before, and after.
    pub verdicts: Vec<(String, bool, bool)>,
}

/// One series of both.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Pair {
    /// Of which experiment.
    pub experiment: String,
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Its points that both have.
    pub points: Vec<PairOfPoints>,
    /// Whether all points agree.
    pub agree: bool,
}

/// One point of both.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct PairOfPoints {
    /// Its place.
    pub x: f64,
    /// The first median.
    pub before: f64,
    /// The second.
    pub after: f64,
    /// The second as a multiple of the first; 0 where the first is 0.
    pub ratio: f64,
    /// Whether the intervals overlap.
    pub agree: bool,
}

/// Compares two results.
pub fn compare(before: &Report, after: &Report) -> Comparison {
    let (mut series, mut missing, mut verdicts) = (Vec::new(), Vec::new(), Vec::new());
    for first in &before.experiments {
        let second = after.experiments.iter().find(|e| e.name == first.name);
        for s in &first.series {
            match second.and_then(|e| same_series(e, s)) {
                Some(other) => series.push(pair(&first.name, s, other)),
                None => missing.push(format!("{}: {}", first.name, s.name)),
            }
        }
        if let Some(second) = second.filter(|e| e.verdict.reproduced != first.verdict.reproduced) {
            verdicts.push((first.name.clone(), first.verdict.reproduced, second.verdict.reproduced));
        }
    }
    for second in &after.experiments {
        let first = before.experiments.iter().find(|e| e.name == second.name);
        let new = second.series.iter().filter(|s| first.and_then(|e| same_series(e, s)).is_none());
        missing.extend(new.map(|s| format!("{}: {}", second.name, s.name)));
    }
    let agree = series.iter().filter(|p| p.agree).count();
    let (before, after) = (before.machine.clone(), after.machine.clone());
    Comparison { schema: SCHEMA, before, after, series, agree, missing, verdicts }
}

fn same_series<'a>(outcome: &'a Outcome, wanted: &Series) -> Option<&'a Series> {
    outcome.series.iter().find(|s| s.name == wanted.name && s.axis == wanted.axis)
}

fn pair(experiment: &str, before: &Series, after: &Series) -> Pair {
    let both = |a: &Point| after.points.iter().find(|b| b.x == a.x).map(|b| pair_of_points(a, b));
    let points: Vec<PairOfPoints> = before.points.iter().filter_map(both).collect();
    Pair {
        experiment: experiment.to_owned(),
        name: before.name.clone(),
        unit: before.unit.clone(),
        agree: points.iter().all(|p| p.agree),
        points,
    }
}

fn pair_of_points(a: &Point, b: &Point) -> PairOfPoints {
    PairOfPoints {
        x: a.x,
        before: a.median,
        after: b.median,
        ratio: if a.median == 0.0 { 0.0 } else { b.median / a.median },
        agree: a.low <= b.high && b.low <= a.high,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Verdict;

    fn report(name: &str, medians: [f64; 2]) -> Report {
        let points = [1.0, 2.0].into_iter().zip(medians).map(|(x, m)| Point::of(x, [m])).collect();
        let series = vec![Series { name: name.to_owned(), unit: "ns".to_owned(), axis: None, points }];
        let outcome = Outcome {
            name: "locks".to_owned(),
            params: Default::default(),
            axis: "threads".to_owned(),
            series,
            notes: Vec::new(),
            verdict: Verdict::default(),
            elapsed_s: 0.0,
        };
        Report { schema: String::new(), machine: Machine::default(), quick: true, experiments: vec![outcome] }
    }

    #[test]
    fn overlapping_intervals_agree() {
        let same = compare(&report("std", [100.0, 200.0]), &report("std", [102.0, 195.0]));
        assert_eq!((same.agree, same.series.len(), same.missing.len()), (1, 1, 0));
        let other = compare(&report("std", [100.0, 200.0]), &report("std", [100.0, 400.0]));
        assert_eq!(other.agree, 0);
        assert_eq!(other.series[0].points[1].ratio, 2.0);
        assert_eq!(compare(&report("std", [1.0; 2]), &report("mcs", [1.0; 2])).missing, ["locks: std", "locks: mcs"]);
    }
}
