//! `holdup load`: scripted load, its reports and their comparison.

mod alternating;
mod checkpoints;
mod listed;
mod target;
mod traced;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use holdup_base::Output;
use holdup_load::harness::{self, Length, Marks, Mix, Outcome, Plan, Wave, run_once};
use holdup_load::report::{Panel, Report};
use signal_hook::consts::{SIGINT, SIGTERM};

use checkpoints::{Checkpoints, place};

use super::Usage;
use crate::cli::{Load, LoadCompare, LoadPlot, LoadRows, LoadRun, Target, Width};
use crate::text;
use crate::text::load::Dashboard;
use crate::text::screen::say;

/// What an interrupted run and a failed check exit with.
const NO: u8 = 1;
/// From crest to crest of a rate that swings, unless it is said.
const WAVE: Duration = Duration::from_secs(60);

/// The longest report that is read, in bytes. One of a long run has some hundred kilobytes.
const LONGEST_REPORT: u64 = 64 << 20;

/// Runs the command.
pub fn run(command: &Load) -> anyhow::Result<ExitCode> {
    tell_panics_of_scripts_as_sentences();
    match command {
        Load::Schema(args) => schema(args),
        Load::Rows(args) => load(args),
        Load::Run(args) => measure(args),
        Load::List(args) => listed::list(args),
        Load::Show { report, plot, hdr_log, baseline, json } => {
            show(report, plot.as_deref(), hdr_log.as_deref(), baseline.as_deref(), *json)
        }
        Load::Plot(args) => plot(args),
        Load::Compare(args) => compare(args),
    }
}

/// The engine panics over some scripts; a thread's panic becomes an error there. What Rust prints of it before is of use only to
/// those who asked for it.
fn tell_panics_of_scripts_as_sentences() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_scripts = thread::current().name().is_some_and(|name| name.starts_with("load"));
        if !is_scripts || std::env::var_os("RUST_BACKTRACE").is_some() {
            print(panic);
        }
    }));
}

fn schema(args: &Target) -> anyhow::Result<ExitCode> {
    let options = target::connect_options(args)?;
    let called = run_once(&target::source(args)?, options.as_ref(), target::patience(args), &["schema"])?;
    if called.functions.is_empty() {
        return Err(Usage(format!("{} has no function `schema`", args.workload.display())).into());
    }
    say!("schema: done");
    Ok(ExitCode::SUCCESS)
}

fn load(args: &LoadRows) -> anyhow::Result<ExitCode> {
    let options = target::connect_options(&args.target)?;
    let source = target::source(&args.target)?;
    // `erase` may use what `prepare` prepared.
    let called = run_once(&source, options.as_ref(), target::patience(&args.target), &["prepare", "erase"])?;
    if called.functions.contains(&"erase") {
        say!("erase: done");
    }
    // Workloads that only write have no rows to begin with: the same three commands should do for all.
    if called.load_count.is_none() {
        say!("load: nothing to do, as `prepare` did not set ctx.load_cycle_count");
        return Ok(ExitCode::SUCCESS);
    }
    let mut plan = plan(&args.target, &args.width)?;
    plan.mix = Mix::single("load");
    plan.rate = args.rate;
    plan.length = Length::Cycles(u64::MAX);
    plan.warm_up = Length::Cycles(0);
    plan.slice = Duration::from_millis(100);
    let outcome = perform(&plan, Checkpoints::new(None, &[]))?;
    finish(&Report::new(&plan, &outcome, Vec::new()), args.json)
}

fn measure(args: &LoadRun) -> anyhow::Result<ExitCode> {
    if let Some(file) = &args.trace {
        return traced::run(args, file);
    }
    let mut plan = plan(&args.target, &args.width)?;
    if !args.function.is_empty() {
        plan.mix = Mix::parse(&args.function).map_err(Usage)?;
    }
    if args.mark {
        let marks = Marks::new(plan.mix.names()).context("calls cannot be marked: /sys/kernel/tracing/trace_marker")?;
        plan.marks = Some(Arc::new(marks));
    }
    (plan.rate, plan.length, plan.warm_up) = (args.rate, args.duration, args.warmup);
    plan.wave = wave(args);
    plan.cycles = target::cycles(args.start_cycle, args.end_cycle)?;
    let baseline = args.baseline.as_deref().map(read_report).transpose()?;
    let args = &LoadRun { output: args.output.as_ref().map(|path| target::report_path(path, &plan)), ..args.clone() };
    plan.slice = args.sampling.unwrap_or_else(|| default_slice(args.duration)).max(Duration::from_millis(1));
    if let Some(other) = &args.vs {
        let mut target = args.target.clone();
        target.address = Some(other.clone());
        let other = Plan { connect: target::connect_options(&target)?, ..plan.clone() };
        return alternating::run(args, [&plan, &other]);
    }
    // Found out now, not after the run.
    let opened = |path: &Option<PathBuf>| path.as_deref().map(place).transpose();
    let (file, picture, log) = (opened(&args.output)?, opened(&args.plot)?, opened(&args.hdr_log)?);
    let outcome = perform(&plan, Checkpoints::new(file.as_ref(), &args.tags))?;
    let report = Report::new(&plan, &outcome, args.tags.clone());
    // Files first: whoever reads the page may stop reading.
    if let Some(file) = file {
        text::write_json(file, &report)?;
    }
    if let Some(mut file) = log {
        let written = holdup_load::report::write_hdr_log(&outcome, &mut file);
        written.with_context(|| file.path().display().to_string())?;
        file.commit()?;
    }
    if let Some(file) = picture {
        draw(&report, file)?;
    }
    let code = finish(&report, args.json)?;
    print_beside(baseline.as_ref(), &report)?;
    Ok(code)
}

/// Prints what changed since an earlier report, if there is one.
fn print_beside(baseline: Option<&Report>, report: &Report) -> anyhow::Result<()> {
    let Some(baseline) = baseline else { return Ok(()) };
    let one = std::slice::from_ref;
    text::load::print_comparison(&holdup_load::report::compare(one(baseline), one(report)))
}

/// How a rate swings, if it does.
fn wave(args: &LoadRun) -> Option<Wave> {
    let period_s = args.rate_sine_period.unwrap_or(WAVE).max(Duration::from_millis(1)).as_secs_f64();
    args.rate_sine_amplitude.map(|amplitude| Wave { amplitude, period_s })
}

/// A fiftieth of the run, so that there are enough to tell how sure the mean is; at most a second.
fn default_slice(length: Length) -> Duration {
    match length {
        Length::Time(time) => (time / 50).clamp(Duration::from_millis(10), Duration::from_secs(1)),
        Length::Cycles(_) => Duration::from_millis(100),
    }
}

fn plan(target: &Target, width: &Width) -> anyhow::Result<Plan> {
    let mut plan = Plan::new(target::source(target)?);
    plan.connect = target::connect_options(target)?;
    plan.patience = target::patience(target);
    plan.threads = width.threads;
    plan.concurrency = width.concurrency.unwrap_or(if plan.connect.is_some() { 128 } else { 1 });
    plan.pin = width.pin;
    plan.give_up = width.give_up;
    Ok(plan)
}

/// Runs a plan. Ctrl-C ends it, a second one ends the program.
fn perform(plan: &Plan, mut checkpoints: Checkpoints) -> anyhow::Result<Outcome> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&asked))?;
        signal_hook::flag::register(signal, Arc::clone(&asked))?;
    }
    let mut dashboard = Dashboard::new();
    let outcome = harness::run(plan, &asked, &mut |live| {
        dashboard.update(live);
        checkpoints.update(plan, live);
    });
    dashboard.finish();
    Ok(outcome?)
}

fn finish(report: &Report, json: bool) -> anyhow::Result<ExitCode> {
    match report.cut.as_ref().filter(|_| report.is_empty() && !json) {
        // A table of zeros says nothing.
        Some(why) => say!("holdup: {why}"),
        None => if json { text::print_json(report) } else { text::load::print(report) }?,
    }
    Ok(if report.has_failed() { ExitCode::from(NO) } else { ExitCode::SUCCESS })
}

fn draw(report: &Report, file: Output) -> anyhow::Result<()> {
    let path = file.path().to_owned();
    holdup_load::report::draw(report, file).map_err(anyhow::Error::msg)?;
    say!("drawn: {}", path.display());
    Ok(())
}

fn read_report(path: &Path) -> anyhow::Result<Report> {
    let cant = || format!("can't read {}", path.display());
    let mut bytes = Vec::new();
    fs::File::open(path).with_context(cant)?.take(LONGEST_REPORT + 1).read_to_end(&mut bytes).with_context(cant)?;
    let none = |why: String| {
        let path = path.display();
        anyhow::anyhow!("{path}: this is not a report: {why}. Name a file that `holdup load run -o FILE` wrote")
    };
    if bytes.len() as u64 > LONGEST_REPORT {
        return Err(none(format!("it has more than {} MiB", LONGEST_REPORT >> 20)));
    }
    let text = String::from_utf8(bytes).map_err(|e| {
        none(format!("a report is a JSON text, and byte {} is not UTF-8", e.utf8_error().valid_up_to()))
    })?;
    Report::parse(&text).map_err(none)
}

fn show(
    path: &Path,
    plot: Option<&Path>,
    log: Option<&Path>,
    baseline: Option<&Path>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let report = read_report(path)?;
    let baseline = baseline.map(read_report).transpose()?;
    if let Some(mut file) = log.map(place).transpose()? {
        let written = holdup_load::report::write_saved_hdr_log(&report, &mut file);
        written.with_context(|| file.path().display().to_string())?;
        file.commit()?;
    }
    let picture = plot.map(place).transpose()?;
    if json { text::print_json(&report) } else { text::load::print(&report) }?;
    if let Some(file) = picture {
        draw(&report, file)?;
    }
    print_beside(baseline.as_ref(), &report)?;
    Ok(ExitCode::SUCCESS)
}

fn plot(args: &LoadPlot) -> anyhow::Result<ExitCode> {
    let read = |path: &PathBuf| Ok((path.display().to_string(), read_report(path)?));
    let reports = args.reports.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    let is_unsaid = args.percentiles.is_empty() && !args.throughput;
    let percents: &[f64] = if is_unsaid { &[50.0, 99.0] } else { &args.percentiles };
    let throughput = (is_unsaid || args.throughput).then_some(Panel::Throughput);
    let panels: Vec<Panel> = throughput.into_iter().chain(percents.iter().copied().map(Panel::Percentile)).collect();
    holdup_load::report::draw_several(&reports, &panels, place(&args.output)?).map_err(anyhow::Error::msg)?;
    say!("drawn: {}", args.output.display());
    Ok(ExitCode::SUCCESS)
}

fn compare(args: &LoadCompare) -> anyhow::Result<ExitCode> {
    let (before, after) = match (args.before.as_slice(), args.after.as_slice()) {
        ([before, after], []) => (std::slice::from_ref(before), std::slice::from_ref(after)),
        (_, []) => return Err(Usage("name two reports, or those after behind --vs".to_owned()).into()),
        sides => sides,
    };
    let read = |paths: &[PathBuf]| paths.iter().map(|path| read_report(path)).collect::<anyhow::Result<Vec<_>>>();
    let comparison = holdup_load::report::compare(&read(before)?, &read(after)?);
    if args.json { text::print_json(&comparison) } else { text::load::print_comparison(&comparison) }?;
    let is_worse = args.fail_on.is_some_and(|share| comparison.is_worse_by(share));
    Ok(if is_worse { ExitCode::from(NO) } else { ExitCode::SUCCESS })
}
