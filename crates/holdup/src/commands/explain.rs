//! `holdup explain`: the page.

use std::path::Path;
use std::process::ExitCode;

use holdup_analysis::{Explanation, Options};
use holdup_record::Outcome;
use holdup_trace::{Error, Trace};

use super::Usage;
use super::record::{self, Keep};
use crate::cli::{self, Explain};
use crate::disassembler::Machine;
use crate::text::screen::say;
use crate::{open, text};

/// Runs the command.
pub fn run(args: &Explain) -> anyhow::Result<ExitCode> {
    let (trace, path, outcome) = match &args.trace {
        Some(path) => (open::open(path).map_err(|e| hint(path, e))?, path.display().to_string(), None),
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
    Ok(outcome.map_or(ExitCode::SUCCESS, |outcome| end(&outcome)))
}

/// The exit code of a recorded command is that of this one: who runs it in a script learns whether the command failed.
fn end(outcome: &Outcome) -> ExitCode {
    match (outcome.signal, outcome.exit_code) {
        (Some(signal), _) => {
            say!("holdup: the command was ended by signal {signal}, so this exit code is {}", 128 + signal);
        }
        (None, Some(code)) if code != 0 => say!("holdup: the command's exit code was {code}, and so is this one"),
        _ => {}
    }
    record::exit_code(outcome)
}

/// Whoever names a program instead of a trace wants it recorded.
fn hint(path: &Path, error: Error) -> Error {
    match error {
        Error::Input(what) if cli::is_program(path) => {
            Error::Input(format!("{what}; to record it: holdup explain -- {}", path.display()))
        }
        error => error,
    }
}

/// Explains a trace.
pub fn explain(trace: &Trace, path: &str, options: &Options) -> anyhow::Result<Explanation> {
    Ok(holdup_analysis::explain(trace, path, options, &Machine)?)
}

/// Prints the page, or the document.
pub fn print(answer: &Explanation, trace: &Trace, as_json: bool) -> anyhow::Result<()> {
    if as_json { text::print_json(answer) } else { text::page::print(answer, trace) }
}

fn record_first(args: &Explain) -> anyhow::Result<(Trace, String, Option<Outcome>)> {
    let source = &args.source;
    if !source.is_given() {
        return Err(
            Usage("nothing to explain: give a trace, -- CMD, -p PID or -a; see holdup explain --help".into()).into()
        );
    }
    let folder = tempfile::tempdir()?;
    let passing = folder.path().join("trace.holdup");
    let keep = args.keep.as_deref().map_or(Keep::Here(&passing), Keep::File);
    let outcome = record::record(source, None, keep)?;
    let shown = args.keep.as_deref().map_or_else(|| describe(source), |p: &Path| p.display().to_string());
    Ok((open::open(args.keep.as_deref().unwrap_or(&passing))?, shown, Some(outcome)))
}

fn describe(source: &crate::cli::Source) -> String {
    match (source.pid.as_slice(), &source.cgroup, source.cmd.as_slice()) {
        (_, Some(path), _) => format!("control group {}", path.display()),
        ([], None, []) => "this machine".to_owned(),
        ([], None, cmd) => cmd.join(" "),
        ([one], None, _) => format!("process {one}"),
        (several, None, _) => format!("processes {}", several.join(", ")),
    }
}
