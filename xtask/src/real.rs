//! `cargo xtask real`: programs of others under real loads. Does `explain` say what another instrument says?

mod case;
mod judge;
mod programs;
mod row;
mod said;
pub mod scene;
pub mod servers;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::holdup::Holdup;
use crate::{take_flag, take_number, take_option};
use case::Case;
use row::{Bound, Row};
use scene::Scene;

/// How often a load and its fix are measured, in turn.
const ROUNDS: usize = 3;

struct Options {
    holdup: Holdup,
    seconds: f64,
    /// Measure the fixes too.
    bounds: bool,
    /// Record by perf too.
    perf: bool,
    /// The machine has other work to do.
    busy: bool,
    /// Record the whole machine too.
    machine: bool,
    scratch: PathBuf,
}

/// Runs the cases named in `args`, or all. Whether none was answered wrongly.
pub fn run(root: &Path, args: &[String]) -> Result<bool> {
    let mut args = args.to_vec();
    let options = Options {
        holdup: Holdup::new(root, take_option(&mut args, "--holdup")?)?,
        seconds: take_number(&mut args, "--seconds", 5.0)?,
        bounds: take_flag(&mut args, "--bounds"),
        perf: take_flag(&mut args, "--perf"),
        busy: take_flag(&mut args, "--busy"),
        machine: take_flag(&mut args, "--machine"),
        scratch: root.join("target/real"),
    };
    let results = take_option(&mut args, "--results")?.map_or_else(|| root.join("target/real/results"), PathBuf::from);
    let table = take_option(&mut args, "--table")?;
    let only_table = take_flag(&mut args, "--print");
    let known: Vec<&Case> = servers::ALL.iter().chain(programs::ALL).copied().collect();
    for name in &args {
        let names = || known.iter().map(|c| c.name).collect::<Vec<_>>().join(", ");
        ensure!(known.iter().any(|c| c.name == name), "no case is called {name}: there are {}", names());
    }
    fs::create_dir_all(&results)?;
    let chosen = |c: &&&Case| !only_table && (args.is_empty() || args.iter().any(|name| name == c.name));
    let mut none_wrong = true;
    for case in known.iter().filter(chosen) {
        match options.try_case(case) {
            Ok(row) => {
                println!("{}", row.in_words());
                none_wrong &= !row.verdict.is_wrong();
                fs::write(results.join(format!("{}.json", case.name)), serde_json::to_vec_pretty(&row)?)?;
            }
            Err(e) => {
                println!("{}: {e:#}", case.name);
                none_wrong &= e.is::<scene::Missing>();
            }
        }
    }
    let rows = known.iter().filter_map(|case| row::read(&results, case.name)).collect::<Result<Vec<_>>>()?;
    match table {
        Some(path) => fs::write(&path, row::page(&rows)).with_context(|| path)?,
        None => println!("\n{}", row::sum(&rows)),
    }
    Ok(none_wrong)
}

impl Options {
    fn try_case(&self, case: &Case) -> Result<Row> {
        eprintln!("{} …", case.name);
        let scene = self.scene(case, "run")?;
        let recorded = (case.record)(&scene)?;
        let mut row = judge::row(case, &self.holdup, &recorded, self.busy)?;
        if self.machine {
            let recorded = (case.record)(&self.scene(case, "machine")?.of_machine())?;
            row.machine = Some(judge::other(case, case.expect, &self.holdup, &recorded.trace, None, self.busy)?);
        }
        if self.perf {
            let recorded = (case.record)(&self.scene(case, "perf")?.by_perf())?;
            row.perf =
                Some(judge::other(case, case.expect, &self.holdup, &recorded.trace, Some(recorded.focus), self.busy)?);
        }
        if self.bounds
            && let Some(fix) = &case.fix
        {
            let scene = self.scene(case, "fix")?;
            let mut rates = [Vec::new(), Vec::new()];
            for _ in 0..ROUNDS {
                for (fixed, rates) in rates.iter_mut().enumerate() {
                    rates.push((fix.rate)(&scene, fixed == 1)?);
                }
            }
            row.bound = Some(Bound::new(fix.what, rates, row.gain_at_most));
        }
        Ok(row)
    }

    fn scene(&self, case: &Case, what: &str) -> Result<Scene<'_>> {
        Scene::new(&self.holdup, &self.scratch.join(case.name).join(what), self.seconds, case.needs)
    }
}
