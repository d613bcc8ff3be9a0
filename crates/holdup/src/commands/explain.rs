//! `holdup explain`: the page.

use std::path::Path;
use std::process::ExitCode;

use holdup_analysis::focus::EVERYBODY;
use holdup_analysis::{Explanation, Options, spans};
use holdup_base::output::{Output, Readers};
use holdup_base::text::clean;
use holdup_export::{Choice, Kind, Source};
use holdup_import::spans::Added;
use holdup_record::Outcome;
use holdup_trace::{Error, Trace, file};

use super::record::Then;
use super::{Usage, flame, record};
use crate::cli::{self, Explain};
use crate::text::page::Page;
use crate::text::screen::say;
use crate::{open, text};
use holdup_view::Machine;

/// The longest file of spans that is read, in bytes.
const LONGEST_SPANS: u64 = 512 << 20;

/// Runs the command.
pub fn run(args: &Explain) -> anyhow::Result<ExitCode> {
    let (files, mut names): (Vec<&str>, Vec<&str>) =
        args.spans.iter().map(String::as_str).partition(|spans| is_file(spans));
    if names.len() > 1 || (!files.is_empty() && args.trace.is_none()) {
        let why = "--spans takes one name, and files only beside a trace";
        return Err(Usage(why.into()).into());
    }
    let (name, mut first) = (names.pop().map(str::to_owned), None);
    let flame = args.flame.as_ref().map(|path| Output::create(path, Readers::Umask)).transpose()?;
    let (trace, path, outcome) = match &args.trace {
        Some(path) => (read(path, &files, args.keep.as_deref(), &mut first)?, path.display().to_string(), None),
        None => record_first(args)?,
    };
    if let Some(name) = name.or(first) {
        let options =
            spans::Options { name: name.clone(), argument: args.argument.clone().unwrap_or_default(), slow: args.slow };
        let answer = spans::explain(&trace, &path, &options)?;
        if args.json {
            text::print_json(&answer)?;
        } else {
            text::spans::print(&answer)?;
        }
        return Ok(outcome.map_or(ExitCode::SUCCESS, |outcome| end(&outcome)));
    }
    // The page counts what it does not show.
    let top = if args.json || args.everything { args.top } else { usize::MAX };
    let options =
        Options { window: args.window, focus: focus(args), top, idle: args.idle.clone(), work: args.work.clone() };
    let answer = explain(&trace, &path, &options)?;
    if let Some(file) = flame {
        draw(file, &trace, &path, &options)?;
    }
    let kept = args.trace.is_some() || args.keep.is_some();
    match args.why {
        Some(number) => why(&answer, number)?,
        None if args.json => text::print_json(&answer)?,
        None if args.everything => text::detail::print_all(&answer, &trace.meta.notes)?,
        None => page(&answer, &trace, kept.then_some(path.as_str()), repeated(args)).print()?,
    }
    Ok(outcome.map_or(ExitCode::SUCCESS, |outcome| end(&outcome)))
}

/// What ran and what the idle CPUs are charged to, as a picture whose whole width is CPU time.
fn draw(file: Output, trace: &Trace, path: &str, options: &Options) -> anyhow::Result<()> {
    let part = options.window.map(|(from, to)| open::window(trace, from, to)).transpose()?;
    let trace = part.as_ref().unwrap_or(trace);
    // Samples of something else than time have no common width with idle time.
    let timed = trace.meta.sample_period_ns > 0;
    let kinds = if timed { vec![Kind::OnCpu, Kind::Blame] } else { vec![Kind::Blame] };
    let mut folded = Vec::new();
    let source = Source { trace, name: path, options, disassembler: &Machine };
    holdup_export::folded::write(&source, &Choice { kinds, per_thread: false }, &mut folded)?;
    let lines: Vec<String> = String::from_utf8_lossy(&folded).lines().map(str::to_owned).collect();
    anyhow::ensure!(
        !lines.is_empty(),
        "{path}: no flame graph, because there are neither samples nor CPUs that waited"
    );
    let title = if timed {
        "CPU time: what ran (on-cpu), and what CPUs that stood still are charged to (blame)"
    } else {
        "what CPUs that stood still are charged to"
    };
    flame::draw(file, &lines, title, "µs of CPU")
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

/// The page of an answer; `file` is where the trace is kept.
pub fn page<'a>(answer: &'a Explanation, trace: &'a Trace, file: Option<&'a str>, options: String) -> Page<'a> {
    Page { answer, notes: &trace.meta.notes, file, options }
}

/// One finding, whole.
fn why(answer: &Explanation, number: usize) -> anyhow::Result<()> {
    let found = answer.findings.iter().find(|f| f.id == format!("f{number}"));
    let Some(finding) = found else {
        let all = answer.findings.len();
        let what = match all {
            0 => format!("{}: there is no cause {number}: none was found", answer.trace.path),
            _ => format!("{}: there is no cause {number}; they are numbered from 1 to {all}", answer.trace.path),
        };
        return Err(Usage(what).into());
    };
    Ok(text::detail::print_one(finding)?)
}

/// Who can be held up: of a trace that is there, --machine asks for all of it.
fn focus(args: &Explain) -> Option<String> {
    let all = args.trace.is_some() && args.source.all;
    args.focus.clone().or_else(|| all.then(|| EVERYBODY.to_owned()))
}

/// Options that a further question has to repeat, to ask about the same.
fn repeated(args: &Explain) -> String {
    let mut options = String::new();
    let mut add = |name: &str, value: &str| options.push_str(&format!(" {name} {}", text::page::quoted(value)));
    if let Some((from, to)) = args.window {
        let to = if to == f64::MAX { String::new() } else { to.to_string() };
        add("--window", &format!("{from}..{to}"));
    }
    focus(args).iter().for_each(|focus| add("--focus", focus));
    args.idle.iter().for_each(|site| add("--idle", site));
    args.work.iter().for_each(|site| add("--work", site));
    options
}

fn record_first(args: &Explain) -> anyhow::Result<(Trace, String, Option<Outcome>)> {
    let source = &args.source;
    if !source.is_given() {
        return Err(
            Usage("nothing to explain: give a trace, -- CMD, -p PID or -a; see holdup explain --help".into()).into()
        );
    }
    match &args.keep {
        None => {
            let (outcome, trace) = record::record_unkept(source, Then::Done)?;
            Ok((trace, describe(source), Some(outcome)))
        }
        Some(kept) => {
            let outcome = record::record(source, kept, Then::Done)?;
            Ok((open::open(kept)?, kept.display().to_string(), Some(outcome)))
        }
    }
}

/// Whether `--spans` names a file: they end so, and names of spans do not.
fn is_file(spans: &str) -> bool {
    // `GET /app.json` is a name.
    if spans.contains(char::is_whitespace) && !Path::new(spans).exists() {
        return false;
    }
    let ending = Path::new(spans).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ["json", "jsonl", "ndjson", "csv"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// Adds the spans of a file to the trace, and says what became of them.
fn add_spans(trace: &mut Trace, path: &Path) -> anyhow::Result<Added> {
    let bytes = open::small(path, LONGEST_SPANS)?;
    let added = holdup_import::spans::add(trace, &bytes).map_err(|e| Error::input(path, e))?;
    let left_out: u64 = added.left_out.values().sum();
    let reasons: Vec<String> = added.left_out.iter().map(|(why, count)| format!("{count} {why}")).collect();
    if added.others > 0 {
        say!(
            "holdup: {} names and arguments of {} are too many, and are told as (other)",
            added.others,
            clean(&path.display().to_string())
        );
    }
    let rest = if left_out == 0 { String::new() } else { format!("; left out: {}", reasons.join(", ")) };
    say!("holdup: {} spans of {}{rest}", added.spans, clean(&path.display().to_string()));
    Ok(added)
}

/// Opens a trace; with `--keep`, as a `.holdup` file too: a spool that a killed recorder left is completed so.
/// With the spans of `files`, of whose names the most frequent of the first becomes `first`.
fn read(path: &Path, files: &[&str], keep: Option<&Path>, first: &mut Option<String>) -> anyhow::Result<Trace> {
    let mut open = || -> anyhow::Result<Trace> {
        let mut trace = open::open(path).map_err(|e| hint(path, e))?;
        for file in files {
            let added = add_spans(&mut trace, Path::new(file))?;
            first.get_or_insert_with(|| added.names.first().cloned().unwrap_or_default());
        }
        Ok(trace)
    };
    let Some(keep) = keep else { return open() };
    let output = file::create(keep)?;
    let trace = open()?;
    file::write_to(&trace, output)?;
    say!("holdup: kept as {}", keep.display());
    Ok(trace)
}

fn describe(source: &crate::cli::Source) -> String {
    match (source.pid.as_slice(), &source.cgroup, source.cmd.as_slice()) {
        (_, Some(path), _) => format!("control group {}", path.display()),
        ([], None, []) => "just recorded".to_owned(),
        ([], None, cmd) => cmd.join(" "),
        ([one], None, _) => format!("process {one}"),
        (several, None, _) => format!("processes {}", several.join(", ")),
    }
}
