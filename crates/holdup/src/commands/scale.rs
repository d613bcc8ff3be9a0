//! `holdup scale`: a sweep, its law, and with `--trace` the causes of the loss.

pub mod trace;

use std::os::unix::process::CommandExt;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use holdup_base::output::{self, Output, Readers};
use holdup_load::scale::{About, Axis, Scaling};
use holdup_load::sweep::{Measure, Plan, Sweep, allowed_cpus, default_counts, restrict_to};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::beside;
use crate::cli::{Launch, Scale};
use crate::documents::scaling::Answer;
use crate::text;
use crate::text::lab::ProgressLine;
use crate::text::screen::say;

/// Runs the command.
pub fn run(args: &Scale) -> anyhow::Result<ExitCode> {
    let plan = plan(args)?;
    plan.check()?;
    // Found out now, not after the last run.
    let plot = args.plot.as_ref().map(|path| Output::create(path, Readers::Umask)).transpose()?;
    // A second signal ends this program as the first would have.
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let traces = if args.trace { trace::record(&plan, args, &stop)? } else { Vec::new() };
    let sweep = sweep(&plan, &stop)?;
    anyhow::ensure!(!sweep.runs.is_empty(), "interrupted before any run was measured");
    let about = About {
        command: plan.command.join(" "),
        axis: if plan.restrict { Axis::Cpus } else { Axis::Threads },
        cpus: allowed_cpus().len(),
        beyond_cpus: args.beyond_cpus || plan.restrict,
    };
    let mut scaling = Scaling::new(about, &sweep.runs);
    // Where the work is not known, none of its cost is.
    let attribution = match scaling.set_time {
        true => None,
        false => trace::attribution(&traces, &plan, &sweep.runs, &scaling.points),
    };
    if let Some(attribution) = &attribution {
        scaling.advice.clone_from(&attribution.advice);
    }
    if let Some(file) = plot {
        let path = file.path().to_owned();
        holdup_load::plot::draw(&scaling, file, beside::to_png).map_err(anyhow::Error::msg)?;
        say!("drawn: {}", path.display());
    }
    let answer = Answer { scaling, interrupted: sweep.interrupted, traces, attribution };
    if args.json { text::print_json(&answer) } else { text::scale::print(&answer) }?;
    Ok(ExitCode::SUCCESS)
}

fn plan(args: &Scale) -> anyhow::Result<Plan> {
    let cpus = allowed_cpus().len();
    let told = args.env.is_some() || args.cmd.iter().any(|word| word.contains("{n}"));
    let restrict = !args.cpus.is_empty() || (args.threads.is_empty() && !told);
    let mut counts = if restrict { args.cpus.clone() } else { args.threads.clone() };
    if counts.is_empty() {
        counts = default_counts(cpus);
    }
    counts.sort_unstable();
    counts.dedup();
    let measure = match (&args.work, &args.rate) {
        (Some(pattern), _) => Measure::work_pattern(pattern)?,
        (None, Some(pattern)) => Measure::rate_pattern(pattern)?,
        (None, None) if args.load => Measure::Load,
        (None, None) => Measure::Elapsed,
    };
    Ok(Plan {
        command: args.cmd.clone(),
        counts,
        env: args.env.clone(),
        restrict,
        runs: args.runs,
        timeout: args.timeout,
        measure,
    })
}

fn sweep(plan: &Plan, stop: &AtomicBool) -> anyhow::Result<Sweep> {
    let mut line: Option<ProgressLine> = None;
    let mut show = |i: usize, all: usize, n: usize| {
        let what = if i == 0 { format!("n = {n}, to warm up") } else { format!("n = {n}") };
        line = Some(ProgressLine::new(&what, i, all));
    };
    let sweep = plan.run(stop, &mut show);
    if let Some(line) = line {
        line.finish();
    }
    Ok(sweep?)
}

/// Becomes the command.
pub fn launch(args: &Launch) -> anyhow::Result<ExitCode> {
    if !args.on.is_empty() {
        restrict_to(&args.on)?;
    }
    let output = output::create_new(&args.output).with_context(|| args.output.display().to_string())?;
    let mut command = std::process::Command::new(&args.cmd[0]);
    command.args(&args.cmd[1..]).stdout(output);
    if let Some((name, value)) = args.set.as_deref().and_then(|s| s.split_once('=')) {
        command.env(name, value);
    }
    Err(anyhow::Error::from(command.exec()).context(format!("`{}` cannot be run", args.cmd.join(" "))))
}
