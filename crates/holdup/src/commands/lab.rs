//! `holdup lab`: experiments on synchronisation.

use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

use anyhow::Context;
use holdup_base::output::{self, Output, Readers};
use holdup_lab::experiment::Experiment;
use holdup_lab::knobs::Values;
use holdup_lab::machine::Machine;
use holdup_lab::report::{Report, SCHEMA};
use holdup_lab::{compare, experiments, plot};

use super::Usage;
use crate::cli::{Lab, LabRun};
use crate::text;
use crate::text::lab::ProgressLine;
use crate::text::screen::say;

/// Runs the command.
pub fn run(command: &Lab) -> anyhow::Result<ExitCode> {
    match command {
        Lab::List { json: true } => text::print_json(&text::lab::listing())?,
        Lab::List { json: false } => text::lab::print_list()?,
        Lab::Run(args) => run_experiments(args)?,
        Lab::Reproduce(_) => return Err(Usage::of_the_workbench("holdup-load").into()),
        Lab::Compare { before, after, json } => compare_files(before, after, *json)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn run_experiments(args: &LabRun) -> anyhow::Result<()> {
    let chosen = choose(&args.experiments)?;
    let values = with_knobs(&chosen, args)?;
    let machine = Machine::this();
    let file = args.output.as_ref().map(|path| Output::create(path, Readers::Umask)).transpose()?;
    let plots = args.plots.as_ref().map(|folder| plots(folder, &chosen)).transpose()?;
    let mut report = Report { schema: SCHEMA.to_owned(), machine, quick: args.quick, experiments: Vec::new() };
    if !args.json {
        text::lab::print_machine(&report.machine)?;
    }
    for (i, (experiment, values)) in chosen.iter().zip(values).enumerate() {
        let mut line = ProgressLine::new(experiment.name, i, chosen.len());
        let outcome = experiment.perform(values, args.quick, &report.machine, &mut |done| line.update(done));
        line.finish();
        report.experiments.push(outcome?);
        if !args.json {
            text::lab::print_outcome(report.experiments.last().expect("just pushed"))?;
        }
    }
    for (outcome, files) in report.experiments.iter().zip(plots.into_iter().flatten()) {
        let drawn = plot::draw(outcome, &report.machine.caption(), files).map_err(anyhow::Error::msg)?;
        drawn.iter().for_each(|path| say!("drawn: {}", path.display()));
    }
    if let Some(file) = file {
        text::write_json(file, &report)?;
    }
    if args.json {
        text::print_json(&report)?;
    }
    Ok(())
}

/// The files of all plots, in a folder that is made if it is not there.
fn plots(folder: &Path, chosen: &[&'static Experiment]) -> anyhow::Result<Vec<[Output; 2]>> {
    output::create_folder(folder)?;
    let files: io::Result<_> = chosen.iter().map(|experiment| plot::outputs(experiment.name, folder)).collect();
    Ok(files?)
}

fn choose(names: &[String]) -> holdup_lab::Result<Vec<&'static Experiment>> {
    if names.is_empty() || names == ["all"] {
        return Ok(experiments::ALL.to_vec());
    }
    names.iter().map(|name| experiments::find(name)).collect()
}

/// The knobs of each chosen experiment. A knob has to belong to at least one of them.
fn with_knobs(chosen: &[&'static Experiment], args: &LabRun) -> anyhow::Result<Vec<Values>> {
    let mut values: Vec<Values> = chosen.iter().map(|e| Values::new(e.knobs, args.quick)).collect();
    for setting in settings(args)? {
        let (name, value) = setting;
        let (only, knob) = name.split_once('.').map_or((None, name.as_str()), |(e, k)| (Some(e), k));
        let mut mine: Vec<&mut Values> =
            chosen.iter().zip(&mut values).filter(|(e, _)| only.is_none_or(|o| o == e.name)).map(|(_, v)| v).collect();
        if mine.is_empty() {
            return Err(
                Usage(format!("--set {name}: `{}` is not among the experiments to run", only.unwrap_or(""))).into()
            );
        }
        if !mine.iter().any(|v| v.has(knob)) {
            mine[0].set(knob, &value)?;
        }
        mine.iter_mut().filter(|v| v.has(knob)).try_for_each(|v| v.set(knob, &value))?;
    }
    Ok(values)
}

fn settings(args: &LabRun) -> anyhow::Result<Vec<(String, String)>> {
    let shortcut = |name: &str, value: &Option<String>| value.clone().map(|v| (name.to_owned(), v));
    let mut all: Vec<_> =
        [shortcut("cpus", &args.cpus), shortcut("threads", &args.threads)].into_iter().flatten().collect();
    for setting in &args.set {
        let bad = || Usage(format!("--set {setting}: write it as KNOB=VALUE; `holdup lab list` names the knobs"));
        let (name, value) = setting.split_once('=').ok_or_else(bad)?;
        all.push((name.to_owned(), value.to_owned()));
    }
    Ok(all)
}

fn compare_files(before: &Path, after: &Path, json: bool) -> anyhow::Result<()> {
    let comparison = compare::compare(&read_report(before)?, &read_report(after)?);
    if json { text::print_json(&comparison) } else { text::lab::print_comparison(&comparison) }
}

fn read_report(path: &Path) -> anyhow::Result<Report> {
    let text = fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))?;
    let what = || format!("{} is not a result of `holdup lab run -o`", path.display());
    let report: Report = serde_json::from_str(&text).with_context(what)?;
    anyhow::ensure!(report.schema == SCHEMA, "{}: its schema is {:?}, not {SCHEMA:?}", what(), report.schema);
    Ok(report)
}
