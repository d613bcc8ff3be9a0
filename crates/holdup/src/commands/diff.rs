//! `holdup diff`: two traces or sets, side by side.

use std::path::PathBuf;
use std::process::ExitCode;

use holdup_analysis::Options;
use holdup_analysis::diff::{DiffOptions, Facts, diff, folded};
use holdup_base::output::{Output, Readers};

use super::flame;
use crate::cli::Diff;
use crate::{open, text};
use holdup_view::Machine;

/// Runs the command. Exit code 1 if something grew by more than `--fail-on` allows.
pub fn run(args: &Diff) -> anyhow::Result<ExitCode> {
    let flame = args.flame.as_ref().map(|path| Output::create(path, Readers::Umask)).transpose()?;
    let options = Options { window: args.window, focus: args.focus.clone(), ..Options::default() };
    let (before, after) = (facts(&args.before, &options)?, facts(&args.vs, &options)?);
    if let Some(file) = flame {
        draw(file, &before, &after, args.per)?;
    }
    let answer = diff(&before, &after, &DiffOptions { per: args.per, fail_on: args.fail_on });
    if args.json {
        text::print_json(&answer)?;
    } else {
        text::diff::print(&answer, args.top, args.fail_on)?;
    }
    Ok(ExitCode::from(u8::from(!answer.regressions.is_empty())))
}

fn facts(paths: &[PathBuf], options: &Options) -> anyhow::Result<Vec<Facts>> {
    let one = |path: &PathBuf| {
        let trace = open::open(path)?;
        Ok(Facts::new(&trace, &path.display().to_string(), options, &Machine)?)
    };
    paths.iter().map(one).collect()
}

fn draw(file: Output, before: &[Facts], after: &[Facts], per: Option<(f64, f64)>) -> anyhow::Result<()> {
    let lines = folded(before, after, per);
    let path = file.path().display();
    anyhow::ensure!(!lines.is_empty(), "{path}: no flame graph, because neither side has CPU samples");
    flame::draw(file, &lines, "after, coloured by what changed: red grew, blue shrank", "µs of CPU")
}
