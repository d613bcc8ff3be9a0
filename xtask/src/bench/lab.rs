//! The lab beside C written by hand: the same things measured by programs that share nothing with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Bench, median};

/// An experiment, its settings, and the C program that measures the same.
struct Pair {
    experiment: &'static str,
    settings: &'static [&'static str],
    program: &'static str,
    /// The unit of the C program's figures.
    unit: &'static str,
}

const PAIRS: [Pair; 4] = [
    Pair { experiment: "memory", settings: &["sizes_kb=16,256,1024,8192,131072"], program: "memory", unit: "ns" },
    Pair { experiment: "send-delay", settings: &["delays=1,2,3,5,8", "messages=40"], program: "send_delay", unit: "s" },
    Pair {
        experiment: "timemutex",
        settings: &["locks=pthread_recursive", "threads=1", "sweeps=depth,nested,malloc,outside,points"],
        program: "timemutex",
        unit: "ns",
    },
    Pair { experiment: "counters", settings: &["threads=1,2"], program: "counters", unit: "ns" },
];

/// Figures by series and place.
type Figures = BTreeMap<(String, String), f64>;

/// Builds both, runs them in turns, and prints the medians beside each other.
pub fn run(bench: &Bench) -> Result<()> {
    let lab = build_lab(&bench.root)?;
    for pair in &PAIRS {
        let program = compile(bench, pair.program)?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..bench.rounds.min(3) {
            theirs.push(by_hand(&program)?);
            ours.push(by_the_lab(&lab, pair)?);
        }
        print(pair, &ours, &theirs);
    }
    Ok(())
}

fn build_lab(root: &Path) -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--quiet", "-p", "holdup-lab", "--example", "lab"]).current_dir(root);
    ensure!(cargo.status()?.success(), "the lab can't be built");
    Ok(root.join("target/release/examples/lab"))
}

fn compile(bench: &Bench, program: &str) -> Result<PathBuf> {
    let source = bench.root.join(format!("xtask/src/bench/lab/{program}.c"));
    let made = bench.scratch.join(format!("lab-{program}"));
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-Wall", "-Wextra", "-pthread", "-o"]).arg(&made).arg(&source);
    ensure!(cc.status().context("cc can't be started")?.success(), "{} can't be compiled", source.display());
    Ok(made)
}

fn output(command: &mut Command) -> Result<String> {
    let out = command.output().with_context(|| format!("{command:?} can't be started"))?;
    ensure!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
    Ok(String::from_utf8(out.stdout)?)
}

/// Lines of SERIES, PLACE and FIGURE, with tabs between them.
fn by_hand(program: &Path) -> Result<Figures> {
    let text = output(&mut Command::new(program))?;
    let figure = |line: &str| {
        let mut parts = line.split('\t');
        let (series, x) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        Some(((series, x), parts.next()?.parse().ok()?))
    };
    text.lines().map(|line| figure(line).with_context(|| format!("not a figure: {line}"))).collect()
}

fn by_the_lab(lab: &Path, pair: &Pair) -> Result<Figures> {
    let text = output(Command::new(lab).args([pair.experiment, "--quick"]).args(pair.settings))?;
    let outcome: serde_json::Value = serde_json::from_str(&text)?;
    let mut figures = Figures::new();
    for series in outcome["series"].as_array().into_iter().flatten() {
        for point in series["points"].as_array().into_iter().flatten() {
            let (name, x) = (series["name"].as_str().unwrap_or(""), point["x"].as_f64().unwrap_or(f64::NAN));
            figures.insert((name.to_owned(), x.to_string()), point["median"].as_f64().unwrap_or(f64::NAN));
        }
    }
    Ok(figures)
}

fn print(pair: &Pair, ours: &[Figures], theirs: &[Figures]) {
    println!("{:<44} {:>8} {:>10} {:>10} {:>7}", pair.experiment, "at", "by hand", "the lab", "ratio");
    for key in theirs[0].keys() {
        let of = |all: &[Figures]| median(&all.iter().filter_map(|f| f.get(key).copied()).collect::<Vec<_>>());
        let (hand, lab) = (of(theirs), of(ours));
        println!("  {:<42} {:>8} {hand:>10.2} {lab:>10.2} {:>7.2}  {}", key.0, key.1, lab / hand, pair.unit);
    }
}
