//! `holdup record`: records into a spool, then turns it into a `.holdup` file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use holdup_record::{Options, Outcome, Status, Target};
use holdup_symbols::StackUnwinder;
use holdup_trace::{Destination, Nanos, Trace, TraceBuilder, file, spool};

use crate::cli::{Record, Source};
use crate::text::progress::Progress;
use crate::text::screen::{self, say};
use crate::text::status::StatusLine;
use crate::{open, text};

/// Runs the command. Its exit code is that of the recorded command.
pub fn run(args: &Record) -> anyhow::Result<ExitCode> {
    let source = &args.source;
    if !source.is_given() {
        return Err(
            super::Usage("nothing to record: give -- CMD, -p PID or -a; see holdup record --help".into()).into()
        );
    }
    let outcome = record(source, args.ring, Keep::File(&args.output))?;
    anstream::eprintln!("holdup: try  holdup explain {}", args.output.display());
    Ok(exit_code(&outcome))
}

/// The exit code of the recorded command; 128 + n if it was ended by signal n.
pub fn exit_code(outcome: &Outcome) -> ExitCode {
    outcome.exit_code.map_or(ExitCode::SUCCESS, |code| ExitCode::from(code as u8))
}

/// What becomes of a recording.
#[derive(Debug, Clone, Copy)]
pub enum Keep<'a> {
    /// It stays in this file.
    File(&'a Path),
    /// It is needed for a moment: what calls removes it together with its folder.
    Here(&'a Path),
}

impl Keep<'_> {
    fn path(&self) -> &Path {
        match self {
            Keep::File(path) | Keep::Here(path) => path,
        }
    }

    /// What to say where a recording cannot be turned into its file.
    fn on_failure(&self, spool: &Path) -> String {
        match self {
            Keep::File(_) => format!("the recording is kept: holdup explain {} reads it", spool.display()),
            Keep::Here(_) => {
                "the recording is lost with its temporary folder: `holdup record -o FILE` keeps what it records"
                    .to_owned()
            }
        }
    }
}

/// Records `source` into a file.
pub fn record(source: &Source, ring: Option<Duration>, keep: Keep) -> anyhow::Result<Outcome> {
    let output = keep.path();
    let spool_path = spool_beside(output);
    let stop = Arc::new(AtomicBool::new(false));
    let mut line = StatusLine::new(!source.cmd.is_empty());
    let mut show = |status: &Status| line.update(status);
    let options = options(source, ring)?;
    let outcome = holdup_record::record(&options, &spool_path, &mut show, &stop)?;
    line.finish();
    if !source.cmd.is_empty() {
        screen::begin_line();
    }
    let kept = || keep.on_failure(&spool_path);
    let mut trace = read_spool(&spool_path, output).with_context(kept)?;
    if source.all {
        trace.meta.focus_pids.clear();
    }
    let writing = Progress::of_step("writing the recording");
    file::write(&trace, output).with_context(kept)?;
    drop(writing);
    std::fs::remove_file(&spool_path)?;
    report(&trace, &outcome, keep);
    Ok(outcome)
}

fn options(source: &Source, ring: Option<Duration>) -> holdup_trace::Result<Options> {
    let mut pids = match source.pid.as_slice() {
        [] => Vec::new(),
        wanted => holdup_record::processes(wanted)?,
    };
    if let Some(path) = &source.cgroup {
        pids.extend(holdup_record::processes_in_cgroup(path)?);
        pids.sort_unstable();
        pids.dedup();
    }
    let target = match (pids.is_empty(), source.cmd.is_empty()) {
        (false, _) => Target::Pids(pids),
        (true, true) => Target::System,
        (true, false) => Target::Command { argv: source.cmd.iter().map(OsString::from).collect() },
    };
    Ok(Options {
        target,
        duration: source.duration,
        freq: source.freq,
        min_wait: Nanos(u64::try_from(source.min_wait.as_nanos()).unwrap_or(u64::MAX)),
        ring,
        buffer_mb_per_cpu: source.buffer as usize,
        ..Options::default()
    })
}

/// `trace.holdup` is recorded as `trace.holdup.spool`: what remains of a killed recorder is found beside its target.
fn spool_beside(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".spool");
    PathBuf::from(name)
}

/// Tables go through files in the output's folder, so that memory stays bounded however long the recording was.
fn read_spool(spool_path: &Path, output: &Path) -> holdup_trace::Result<Trace> {
    let folder = output.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = TraceBuilder::new(&Destination::Folder(folder.to_owned()))?;
    builder.set_unwinder(Box::new(StackUnwinder::new()));
    let cannot = |e| holdup_trace::Error::input(spool_path, format_args!("cannot be read: {e}"));
    let spool = std::fs::File::open(spool_path).map_err(cannot)?;
    let progress = Progress::of_file("reading the recording", &spool);
    spool::read_from(spool, spool_path, &mut builder)?;
    progress.next("naming its functions");
    open::finish(builder)
}

fn report(trace: &Trace, outcome: &Outcome, keep: Keep) {
    let size = std::fs::metadata(keep.path()).map_or(0, |m| m.len());
    let events = outcome.status.events;
    let file = match keep {
        Keep::File(path) => format!(" → {} ({})", path.display(), text::status::bytes(size)),
        Keep::Here(_) => String::new(),
    };
    say!(
        "holdup: {:.2} s, {} events, {} lost{file}",
        trace.meta.duration_ns as f64 / 1e9,
        text::status::count(events),
        text::status::count(outcome.status.lost),
    );
    for note in &outcome.notes {
        anstream::eprintln!("holdup: note: {note}");
    }
}
