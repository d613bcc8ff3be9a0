//! `holdup explain`: the page.

use std::path::Path;
use std::process::ExitCode;

use holdup_analysis::{Explanation, Options};
use holdup_trace::{Trace, file};

use super::record::Then;
use super::{Usage, record};
use crate::cli::Explain;
use crate::disassembler::Machine;
use crate::text::screen::say;
use crate::{open, text};

/// Runs the command.
pub fn run(args: &Explain) -> anyhow::Result<ExitCode> {
    let (trace, path) = match &args.trace {
        Some(path) => (read(path, args.keep.as_deref())?, path.display().to_string()),
        None => record_first(args)?,
    };
    let options = Options {
        window: args.window,
        focus: args.focus.clone(),
        top: args.top,
        idle: args.idle.clone(),
        work: args.work.clone(),
    };
    print(&explain(&trace, &path, &options)?, &trace, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Explains a trace.
pub fn explain(trace: &Trace, path: &str, options: &Options) -> anyhow::Result<Explanation> {
    Ok(holdup_analysis::explain(trace, path, options, &Machine)?)
}

/// Prints the page, or the document.
pub fn print(answer: &Explanation, trace: &Trace, as_json: bool) -> anyhow::Result<()> {
    if as_json { text::print_json(answer) } else { text::page::print(answer, trace) }
}

fn record_first(args: &Explain) -> anyhow::Result<(Trace, String)> {
    let source = &args.source;
    if !source.all && source.pid.is_none() && source.cmd.is_empty() {
        return Err(
            Usage("nothing to explain: give a trace, -- CMD, -p PID or -a; see holdup explain --help".into()).into()
        );
    }
    match &args.keep {
        None => Ok((record::record_unkept(source, Then::Done)?.1, describe(source))),
        Some(kept) => {
            record::record(source, None, kept, Then::Done)?;
            Ok((open::open(kept)?, kept.display().to_string()))
        }
    }
}

/// Opens a trace; with `--keep`, as a `.holdup` file too: a spool that a killed recorder left is completed so.
fn read(path: &Path, keep: Option<&Path>) -> anyhow::Result<Trace> {
    let Some(keep) = keep else { return Ok(open::open(path)?) };
    let output = file::create(keep)?;
    let trace = open::open(path)?;
    file::write_to(&trace, output)?;
    say!("holdup: kept as {}", keep.display());
    Ok(trace)
}

fn describe(source: &crate::cli::Source) -> String {
    match (source.pid, source.cmd.as_slice()) {
        (Some(pid), _) => format!("process {pid}"),
        (None, []) => "this machine".to_owned(),
        (None, cmd) => cmd.join(" "),
    }
}
