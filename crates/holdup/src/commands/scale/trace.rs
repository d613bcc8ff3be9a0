//! `holdup scale --trace`: a recording at each count, and what it says of the loss.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context, bail};
use holdup_analysis::Options;
use holdup_analysis::diff::Facts;
use holdup_analysis::diff::scaling::{At, Attribution, Machine, attribute};
use holdup_base::output::create_folder;
use holdup_load::scale::Point;
use holdup_load::sweep::{Plan, Run, allowed_cpus, arithmetic, last_cache};
use holdup_trace::Amount;

use super::super::record::{self, Then};
use crate::cli::{Scale, Source};
use crate::documents::scaling::Traced;
use crate::open;

fn at(traced: &Traced) -> At<'_> {
    At { n: traced.n, work: traced.work, runs: slice::from_ref(&traced.facts) }
}

/// Records a run at each count.
pub fn record(plan: &Plan, args: &Scale, stop: &AtomicBool) -> anyhow::Result<Vec<Traced>> {
    let scratch = tempfile::tempdir()?;
    if let Some(folder) = &args.keep {
        create_folder(folder)?;
    }
    let mut traces = Vec::new();
    for &n in &plan.counts {
        if stop.load(Relaxed) {
            break;
        }
        match one(plan, n, scratch.path(), args.keep.as_deref()) {
            Ok(traced) => traces.push(traced),
            // Its failure is the user's doing.
            Err(_) if stop.load(Relaxed) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(traces)
}

/// Attributes the loss between two of the recorded runs. What was measured without recording tells how much memory it takes.
pub fn attribution(traces: &[Traced], plan: &Plan, measured: &[Run], points: &[Point]) -> Option<Attribution> {
    let (small, large) = ends(traces, plan.restrict)?;
    let rate = |n: usize| points.iter().find(|point| point.n == n).map(|point| point.throughput / n as f64);
    let resident = measured.iter().filter(|run| run.n == large.n).filter_map(|run| run.resident).max();
    let machine = Machine {
        efficiency: rate(small.n).zip(rate(large.n)).map(|(few, many)| many / few),
        arithmetic: arithmetic(large.n),
        fits_cache: resident.zip(last_cache()).map(|(bytes, cache)| bytes <= cache),
    };
    Some(attribute(&at(small), &at(large), machine))
}

/// The smallest count, and the largest that has a CPU for each thread: beyond, threads wait for CPUs.
fn ends(traces: &[Traced], restrict: bool) -> Option<(&Traced, &Traced)> {
    let cpus = allowed_cpus().len();
    let (small, larger) = traces.split_first()?;
    let fits = larger.iter().rev().find(|t| restrict || t.n <= cpus);
    Some((small, fits.or(larger.last())?))
}

/// What the command prints goes into `scratch`, which is nobody else's.
fn one(plan: &Plan, n: usize, scratch: &Path, keep: Option<&Path>) -> anyhow::Result<Traced> {
    let path = keep.map(|folder| folder.join(format!("n{n}.holdup")));
    let output = scratch.join(format!("n{n}.out"));
    let source = source(plan, n, &output)?;
    let (outcome, trace) = match &path {
        None => record::record_unkept(&source, Then::Again)?,
        Some(path) => (record::record(&source, path, Then::Again)?, open::open(path)?),
    };
    match outcome.exit_code {
        Some(0) => {}
        _ if outcome.signal.is_some() => bail!("the recorded run at n = {n} was ended by a signal or by --timeout"),
        code => bail!("the recorded run at n = {n} failed with exit code {}", code.unwrap_or(-1)),
    }
    let path = path.map(|path| path.display().to_string());
    let name = path.clone().unwrap_or_else(|| format!("n = {n}"));
    let facts = Facts::new(&trace, &name, &Options::default(), &holdup_view::Machine)?;
    let elapsed_s = Amount(facts.elapsed_ns).seconds();
    let mut written = File::open(&output)?;
    let work = plan.measure.work(Some(&mut written), elapsed_s);
    let work = work.map_err(|e| anyhow::anyhow!("the recorded run at n = {n} {e}"))?;
    fs::remove_file(&output)?;
    Ok(Traced { n, path, work, elapsed_s, cpu_s: Amount(facts.ran_ns).seconds(), facts })
}

/// What is recorded: this program, which becomes the command.
fn source(plan: &Plan, n: usize, output: &Path) -> anyhow::Result<Source> {
    let launch = plan.launch(n);
    let this: PathBuf = std::env::current_exe().context("where this program is")?;
    let mut cmd = vec![this.display().to_string(), "launch".into(), "--output".into(), output.display().to_string()];
    if let Some(cpus) = &launch.cpus {
        let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
        cmd.extend(["--on".to_owned(), list.join(",")]);
    }
    if let Some((name, value)) = &launch.env {
        cmd.extend(["--set".to_owned(), format!("{name}={value}")]);
    }
    cmd.push("--".to_owned());
    cmd.extend(launch.argv);
    Ok(Source { duration: plan.timeout, ..Source::command(cmd) })
}
