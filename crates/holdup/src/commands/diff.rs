//! `holdup diff`: two traces or sets, side by side.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use holdup_analysis::diff::{DiffOptions, Facts, diff, folded};
use holdup_analysis::{Options, spans};
use holdup_base::output::{Output, Readers};
use holdup_base::text::clean;
use holdup_trace::{Error, Trace};

use super::flame;
use crate::cli::Diff;
use crate::cli::diff::Per;
use crate::{open, text};
use holdup_view::Machine;

/// Names that are told where one is not found.
const MOST_NAMES: usize = 8;

/// Runs the command. Exit code 1 if something grew by more than `--fail-on` allows.
pub fn run(args: &Diff) -> anyhow::Result<ExitCode> {
    let flame = args.flame.as_ref().map(|path| Output::create(path, Readers::Umask)).transpose()?;
    let options = Options { window: args.window, focus: args.focus.clone(), ..Options::default() };
    let (before, worked_before) = facts(args, &args.before, &options)?;
    let (after, worked_after) = facts(args, &args.vs, &options)?;
    let per = match args.per {
        Some(Per::Amounts(n, m)) => Some((n, m)),
        Some(Per::Spans(_)) => Some((worked_before, worked_after)),
        None => None,
    };
    if let Some(file) = flame {
        draw(file, &before, &after, per)?;
    }
    let answer = diff(&before, &after, &DiffOptions { per, fail_on: args.fail_on });
    if args.json {
        text::print_json(&answer)?;
    } else {
        text::diff::print(&answer, args.top, args.fail_on)?;
    }
    Ok(ExitCode::from(u8::from(!answer.regressions.is_empty())))
}

/// The facts of some traces, and how many spans a run had on average, if these count.
fn facts(args: &Diff, paths: &[PathBuf], options: &Options) -> anyhow::Result<(Vec<Facts>, f64)> {
    let (mut all, mut spans) = (Vec::new(), 0.0);
    for path in paths {
        let trace = open::open(path)?;
        if let Some(Per::Spans(name)) = &args.per {
            spans += count(args, path, &trace, name)?;
        }
        all.push(Facts::new(&trace, &path.display().to_string(), options, &Machine)?);
    }
    Ok((all, spans / paths.len() as f64))
}

/// How many spans of a name there are, in the window if there is one.
fn count(args: &Diff, path: &Path, trace: &Trace, name: &str) -> anyhow::Result<f64> {
    let part = args.window.map(|(from, to)| open::window(trace, from, to)).transpose()?;
    let names = spans::names(part.as_ref().unwrap_or(trace))?;
    let found = names.iter().find(|known| known.name == name || (name.is_empty() && names.len() == 1));
    let known: Vec<&str> = names.iter().map(|known| known.name.as_str()).take(MOST_NAMES).collect();
    let none = || {
        let there = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
        let wanted = if name.is_empty() { "spans of one name".to_owned() } else { format!("spans named {name:?}") };
        Error::input(path, clean(&format!("has no {wanted} to count: {there}")))
    };
    Ok(found.map(|found| found.count as f64).ok_or_else(none)?)
}

fn draw(file: Output, before: &[Facts], after: &[Facts], per: Option<(f64, f64)>) -> anyhow::Result<()> {
    let lines = folded(before, after, per);
    let path = file.path().display();
    anyhow::ensure!(!lines.is_empty(), "{path}: no flame graph, because neither side has CPU samples");
    flame::draw(file, &lines, "after, coloured by what changed: red grew, blue shrank", "µs of CPU")
}
