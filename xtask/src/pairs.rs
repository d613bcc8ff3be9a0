//! `cargo xtask scenarios --diff`: is the planted difference of two builds among the first changes, and a cause?

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use holdup_analysis::diff::report::Role;
use regex::Regex;
use serde::Deserialize;

use crate::bounds::Fix;
use crate::holdup::{Change, Compared, Holdup};
use crate::truth::{build, check_names, read_truth};
use crate::{bounds, table, take_flag, take_number};

/// How often each is run to measure what a fix gains.
const ROUNDS: usize = 3;
/// How many changes may come before the planted one, with itself.
const AMONG: usize = 3;

/// `scenarios/truth.toml`.
#[derive(Deserialize)]
struct Truths {
    pair: Vec<Pair>,
}

/// What must be said of one pair.
#[derive(Deserialize)]
struct Pair {
    name: String,
    args: Vec<String>,
    /// Each among the first changes, as a cause.
    sites: Vec<String>,
    /// Each a symptom, and nowhere a cause.
    #[serde(default)]
    symptoms: Vec<String>,
    /// In the reason of some cause.
    #[serde(default)]
    because: String,
    /// `fixed` is the earlier build.
    #[serde(default)]
    regression: bool,
}

struct Options {
    holdup: Holdup,
    runs: usize,
    programs: PathBuf,
}

/// Runs the pairs named in `args`, or all. Whether every planted difference was found.
pub fn run(root: &Path, holdup: Holdup, mut args: Vec<String>) -> Result<bool> {
    let bounds = take_flag(&mut args, "--bounds");
    let runs = take_number(&mut args, "--runs", if bounds { ROUNDS } else { 1 })?;
    ensure!(runs > 0, "--runs must be at least 1");
    let truths: Truths = read_truth(root)?;
    check_names(&args, truths.pair.iter().map(|p| p.name.as_str()))?;
    let chosen: Vec<&Pair> = truths.pair.iter().filter(|p| args.is_empty() || args.contains(&p.name)).collect();
    let options = Options { holdup, runs, programs: root.join("target/scenarios/pairs") };
    build(root, &["--pairs"], &options.programs, chosen.iter().map(|p| p.name.as_str()))?;

    let mut rows = Vec::new();
    let mut all_right = true;
    for pair in chosen {
        eprintln!("{}", pair.name);
        let judged = if bounds { options.bound(pair) } else { options.compare(pair).and_then(|c| judge(pair, &c)) };
        let (right, row) = match judged {
            Ok(judged) => judged,
            Err(e) => {
                eprintln!("{}: {e:#}", pair.name);
                (false, vec![pair.name.clone(), "FAIL: no comparison".to_owned()])
            }
        };
        all_right &= right;
        rows.push(row);
    }
    if bounds {
        table::print(&bounds::HEAD, &rows);
        return Ok(all_right);
    }
    table::print(&["pair", "", "before s", "after s", "first change", "role", "delta s", "then", "then"], &rows);
    Ok(all_right)
}

impl Options {
    /// What the fix gains, beside what is said of the fault.
    fn bound(&self, pair: &Pair) -> Result<(bool, Vec<String>)> {
        let scratch = self.programs.join("runs");
        fs::create_dir_all(&scratch)?;
        let [held, fixed] = ["held", "fixed"].map(|side| self.programs.join(side).join(&pair.name));
        let fix = Fix { name: &pair.name, programs: [&held, &fixed], args: &pair.args, scratch: &scratch };
        fix.judge(&self.holdup, self.runs)
    }

    fn compare(&self, pair: &Pair) -> Result<Compared> {
        let sides = if pair.regression { ["fixed", "held"] } else { ["held", "fixed"] };
        let scratch = self.programs.join("runs");
        fs::create_dir_all(&scratch)?;
        let trace = |side: &str, run: usize| scratch.join(format!("{}.{side}.{run}.holdup", pair.name));
        // In turn, so that what disturbs the machine for a while disturbs both.
        for run in 0..self.runs {
            for side in sides {
                self.holdup.record(&trace(side, run), &self.programs.join(side).join(&pair.name), &pair.args)?;
            }
        }
        let [before, after] = sides.map(|side| (0..self.runs).map(|run| trace(side, run)).collect::<Vec<_>>());
        self.holdup.diff(&before, &after)
    }
}

fn judge(pair: &Pair, compared: &Compared) -> Result<(bool, Vec<String>)> {
    let wrong = complaint(pair, &compared.changes)?;
    let seconds = |s: f64| format!("{s:.2}");
    let mut row = vec![pair.name.clone(), wrong.as_ref().map_or("ok".to_owned(), |w| format!("FAIL: {w}"))];
    row.extend([seconds(compared.before.elapsed_s), seconds(compared.after.elapsed_s)]);
    if let Some(first) = compared.changes.first() {
        row.extend([
            format!("{} {}", first.what, first.name),
            first.role.to_string(),
            format!("{:+.2}", first.delta_s),
        ]);
    }
    let then = compared.changes.iter().take(AMONG).skip(1);
    row.extend(then.map(|c| format!("{} {} {} {:+.2}", c.role, c.what, c.name, c.delta_s)));
    Ok((wrong.is_none(), row))
}

/// The first thing that `changes` do not say though they should.
fn complaint(pair: &Pair, changes: &[Change]) -> Result<Option<String>> {
    let cause = |c: &&Change| c.role == Role::Cause;
    for site in &pair.sites {
        let site = Regex::new(site)?;
        if !changes.iter().take(AMONG).filter(cause).any(|c| site.is_match(&c.name)) {
            return Ok(Some(format!("{site} is no cause among the first {AMONG}")));
        }
    }
    for symptom in &pair.symptoms {
        let symptom = Regex::new(symptom)?;
        let of_it: Vec<&Change> = changes.iter().filter(|c| symptom.is_match(&c.name)).collect();
        if of_it.iter().any(|c| c.role == Role::Cause) || !of_it.iter().any(|c| c.role == Role::Symptom) {
            return Ok(Some(format!("{symptom} is no symptom")));
        }
    }
    let because = Regex::new(&pair.because)?;
    let given = pair.because.is_empty() || changes.iter().filter(cause).any(|c| because.is_match(&c.because));
    Ok((!given).then(|| format!("no cause gives the reason {because}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> Pair {
        Pair {
            name: "spin_hold".into(),
            args: Vec::new(),
            sites: vec!["update_book".into()],
            symptoms: vec!["acquire_book".into()],
            because: "longer".into(),
            regression: true,
        }
    }

    fn change(name: &str, role: Role, because: &str) -> Change {
        Change { name: name.into(), role, because: because.into(), ..Change::default() }
    }

    fn said(changes: &[Change]) -> Option<String> {
        complaint(&pair(), changes).unwrap()
    }

    #[test]
    fn a_cause_with_its_symptom_is_right() {
        let changes =
            [change("update_book", Role::Cause, "it is 2.0 times longer"), change("acquire_book", Role::Symptom, "")];
        assert_eq!(said(&changes), None);
    }

    #[test]
    fn a_site_must_be_a_cause_and_among_the_first() {
        let symptom = change("acquire_book", Role::Symptom, "");
        let late = [symptom.clone(), symptom.clone(), symptom.clone(), change("update_book", Role::Cause, "longer")];
        assert!(said(&late).unwrap().starts_with("update_book"));
        assert!(said(&[change("update_book", Role::Unclear, "longer"), symptom]).unwrap().starts_with("update_book"));
    }

    #[test]
    fn a_symptom_is_nowhere_a_cause() {
        let cause = change("update_book", Role::Cause, "longer");
        let both = [cause.clone(), change("acquire_book", Role::Symptom, ""), change("acquire_book", Role::Cause, "")];
        assert!(said(&both).unwrap().starts_with("acquire_book"));
        assert!(said(&[cause]).unwrap().starts_with("acquire_book"));
    }

    #[test]
    fn the_reason_is_that_of_a_cause() {
        let changes = [change("update_book", Role::Cause, ""), change("acquire_book", Role::Symptom, "longer")];
        assert_eq!(said(&changes).unwrap(), "no cause gives the reason longer");
    }
}
