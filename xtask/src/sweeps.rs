//! `cargo xtask scenarios --scale`: is the planted reason for not scaling found, and by the right law?

use std::path::Path;

use anyhow::{Context, Result};
use holdup_analysis::diff::scaling::Verdict;
use regex::Regex;
use serde::Deserialize;

use crate::holdup::{Attribution, Holdup};
use crate::table;
use crate::truth::{build, check_names, read_truth};

/// `scenarios/truth.toml`.
#[derive(Deserialize)]
struct Truths {
    sweep: Vec<Sweep>,
}

/// What must be said of one program.
#[derive(Deserialize)]
struct Sweep {
    name: String,
    args: Vec<String>,
    /// Each is right.
    verdict: Vec<Verdict>,
    /// One for the name of the largest cause by that law; empty: anything, or none.
    site: String,
}

/// Sweeps the programs named in `args`, or all. Whether every verdict was right.
pub fn run(root: &Path, holdup: &Holdup, args: &[String]) -> Result<bool> {
    let truths: Truths = read_truth(root)?;
    check_names(args, truths.sweep.iter().map(|s| s.name.as_str()))?;
    let chosen: Vec<&Sweep> = truths.sweep.iter().filter(|s| args.is_empty() || args.contains(&s.name)).collect();
    let programs = root.join("target/scenarios");
    build(root, &[], &programs, chosen.iter().map(|s| s.name.as_str()))?;

    let mut rows = Vec::new();
    let mut all_right = true;
    for sweep in chosen {
        eprintln!("{}", sweep.name);
        let (right, row) = match swept(holdup, sweep, &programs.join(&sweep.name)) {
            Ok((efficiency, found)) => judge(sweep, efficiency, &found)?,
            Err(e) => (false, vec![sweep.name.clone(), format!("FAIL: {e:#}")]),
        };
        all_right &= right;
        rows.push(row);
    }
    table::print(&["program", "", "efficiency", "verdict", "thread time", "causes"], &rows);
    Ok(all_right)
}

/// The efficiency with two threads in a run that was not recorded, and what the recorded ones say.
fn swept(holdup: &Holdup, sweep: &Sweep, program: &Path) -> Result<(f64, Attribution)> {
    let answer = holdup.scale(program, &sweep.args)?;
    let efficiency = answer.points.last().context("no points")?.efficiency;
    Ok((efficiency, answer.attribution.context("nothing was attributed")?))
}

fn judge(sweep: &Sweep, efficiency: f64, found: &Attribution) -> Result<(bool, Vec<String>)> {
    let law = found.verdict.law();
    let first = found.causes.iter().find(|cause| Some(cause.law) == law).map_or("", |cause| cause.name.as_str());
    let right = sweep.verdict.contains(&found.verdict) && Regex::new(&sweep.site)?.is_match(first);
    let [before, after] = found.cost_s_per_unit;
    let mut row = vec![sweep.name.clone(), if right { "ok" } else { "FAIL" }.to_owned()];
    row.extend([format!("{efficiency:.2}"), found.verdict.to_string(), format!("{:.2}×", after / before)]);
    let causes = found.causes.iter().take(3);
    row.push(causes.map(|c| format!("{} {} {:.2}", c.law, c.name, c.share)).collect::<Vec<_>>().join(", "));
    Ok((right, row))
}
