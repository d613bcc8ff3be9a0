//! `cargo xtask scenarios`: does the planted culprit come first?

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use anyhow::Result;

use crate::holdup::{Explained, Finding, Holdup, perf_events, recorded};
use crate::truth::{Truth, Truths, build, check_names, read_truth};
use crate::{pairs, sweeps, table, take_flag, take_number, take_option};

struct Options {
    holdup: Holdup,
    hog: bool,
    perf: bool,
    seconds: f64,
    programs: PathBuf,
    scratch: PathBuf,
}

/// Runs the scenarios named in `args`, or all. Whether every one was explained rightly.
pub fn run(root: &Path, args: &[String]) -> Result<bool> {
    let mut args = args.to_vec();
    let holdup = Holdup::new(root, take_option(&mut args, "--holdup")?)?;
    if take_flag(&mut args, "--diff") {
        return pairs::run(root, holdup, args);
    }
    if take_flag(&mut args, "--scale") {
        return sweeps::run(root, &holdup, &args);
    }
    let (hog, perf) = (take_flag(&mut args, "--hog"), take_flag(&mut args, "--perf"));
    let seconds = take_number(&mut args, "--seconds", 4.0)?;
    let (programs, scratch) = (root.join("target/scenarios"), root.join("target/scenarios/runs"));
    fs::create_dir_all(&scratch)?;
    let options = Options { holdup, hog, perf, seconds, programs, scratch };

    let truths: Truths = read_truth(root)?;
    check_names(&args, truths.scenario.iter().map(|t| t.name.as_str()))?;
    let chosen = |t: &&Truth| !t.beside && (args.is_empty() || args.contains(&t.name));
    let chosen: Vec<&Truth> = truths.scenario.iter().filter(chosen).collect();
    let names = chosen.iter().map(|t| t.name.as_str()).chain(["hog"]);
    build(root, &[], &options.programs, names)?;

    let mut rows = Vec::new();
    let mut all_right = true;
    for truth in chosen {
        let ways: &[Way] = if options.perf { &[Way::Holdup, Way::Perf] } else { &[Way::Holdup] };
        for &way in ways {
            eprintln!("{} ({})", truth.name, way.name());
            let (right, row) = match options.record(truth, way) {
                Ok(explained) => judge(truth, way, &explained)?,
                Err(e) => (false, vec![truth.name.clone(), way.name().into(), "FAIL".into(), format!("{e:#}")]),
            };
            all_right &= right;
            rows.push(row);
        }
    }
    table::print(&["scenario", "by", "", "first finding", "function", "thread", "CPU s", "sure", "then"], &rows);
    Ok(all_right)
}

/// How a scenario is recorded.
#[derive(Clone, Copy)]
enum Way {
    Holdup,
    Perf,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Holdup => "holdup",
            Way::Perf => "perf",
        }
    }
}

impl Options {
    fn record(&self, truth: &Truth, way: Way) -> Result<Explained> {
        let program = self.programs.join(&truth.name);
        let trace = self.scratch.join(format!("{}.{}", truth.name, way.name()));
        let _hog = if self.hog { Some(self.start_hog()?) } else { None };
        let mut command = match way {
            Way::Holdup => Command::new(self.holdup.path()),
            Way::Perf => Command::new("perf"),
        };
        command.args(["record", "-o"]).arg(&trace);
        if let Way::Perf = way {
            command.args(["-a", "-g"]).args(perf_events());
        }
        command.arg("--").arg(&program).arg(self.seconds.to_string());
        recorded(&mut command, &self.scratch)?;
        self.holdup.explain(&trace)
    }

    fn start_hog(&self) -> Result<Hog> {
        let seconds = (self.seconds + 60.0).to_string();
        Ok(Hog(Command::new(self.programs.join("hog")).arg("1").arg(seconds).spawn()?))
    }
}

/// Ends with the scenario beside which it runs.
struct Hog(Child);

impl Drop for Hog {
    fn drop(&mut self) {
        // It may have ended by itself: nothing to do then.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn judge(truth: &Truth, way: Way, explained: &Explained) -> Result<(bool, Vec<String>)> {
    let total = explained.cpu_seconds.get("total").copied().unwrap_or(0.0);
    let parts: f64 = explained.cpu_seconds.iter().filter(|(name, _)| *name != "total").map(|(_, s)| s).sum();
    let sums = total > 0.0 && (parts - total).abs() <= total * 0.001;
    let held_up = explained.cpu_seconds.get("held_up").copied().unwrap_or(0.0);
    let little = truth.held_up_at_most.is_none_or(|most| held_up <= most * total);
    let first = explained.findings.first();
    let same = truth.is_met_by(first)?;
    let verdict = match (sums, little, same) {
        (true, true, true) => "ok".to_owned(),
        (false, ..) => format!("FAIL: parts {parts:.3} of {total:.3}"),
        (_, false, _) => format!("FAIL: held up {held_up:.2} of {total:.2}"),
        (_, _, false) => "FAIL".to_owned(),
    };
    let none = Finding::default();
    let (kind, f) = first.map_or(("none", &none), |f| (f.kind.name(), f));
    let then = explained.findings.get(1).map(|f| format!("{} {} {:.2}", f.kind, f.function(), f.blame_cpu_s));
    let row = [&truth.name, way.name(), &verdict, kind, f.function(), f.thread()].map(str::to_owned);
    let mut row = row.to_vec();
    row.extend([
        format!("{:.2}", f.blame_cpu_s),
        first.map_or(String::new(), |f| f.confidence.to_string()),
        then.unwrap_or_default(),
    ]);
    Ok((sums && little && same, row))
}
