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
use crate::text::screen::say;
use crate::text::status::StatusLine;
use crate::{open, text};

/// Runs the command. Its exit code is that of the recorded command.
pub fn run(args: &Record) -> anyhow::Result<ExitCode> {
    let source = &crate::cli::Source { all: args.source.all || args.everything, ..args.source.clone() };
    if !source.all && source.pid.is_none() && source.cmd.is_empty() {
        return Err(
            super::Usage("nothing to record: give -- CMD, -p PID or -a; see holdup record --help".into()).into()
        );
    }
    let outcome = record(source, args.ring, &args.output)?;
    say!("holdup: try  holdup explain {}", args.output.display());
    Ok(outcome.exit_code.map_or(ExitCode::SUCCESS, |code| ExitCode::from(code as u8)))
}

/// Records `source` into the file `output`.
pub fn record(source: &Source, ring: Option<Duration>, output: &Path) -> anyhow::Result<Outcome> {
    let spool_path = spool_beside(output);
    let stop = Arc::new(AtomicBool::new(false));
    let mut line = StatusLine::new();
    let mut show = |status: &Status| line.update(status);
    let outcome = holdup_record::record(&options(source, ring), &spool_path, &mut show, &stop)?;
    line.finish();
    let kept = || format!("the recording is kept: holdup explain {} reads it", spool_path.display());
    let mut trace = read_spool(&spool_path, output).with_context(kept)?;
    if source.all {
        trace.meta.focus_pids.clear();
    }
    file::write(&trace, output).with_context(kept)?;
    std::fs::remove_file(&spool_path)?;
    report(&trace, &outcome, output);
    Ok(outcome)
}

fn options(source: &Source, ring: Option<Duration>) -> Options {
    let target = match (source.pid, source.cmd.is_empty()) {
        (Some(pid), _) => Target::Pid(pid),
        (None, true) => Target::System,
        (None, false) => Target::Command { argv: source.cmd.iter().map(OsString::from).collect() },
    };
    Options {
        target,
        duration: source.duration,
        freq: source.freq,
        min_wait: Nanos(u64::try_from(source.min_wait.as_nanos()).unwrap_or(u64::MAX)),
        ring,
        buffer_mb_per_cpu: source.buffer as usize,
        ..Options::default()
    }
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
    spool::read(spool_path, &mut builder)?;
    open::finish(builder)
}

fn report(trace: &Trace, outcome: &Outcome, output: &Path) {
    let size = std::fs::metadata(output).map_or(0, |m| m.len());
    let events = outcome.status.events;
    say!(
        "holdup: {:.2} s, {} events, {} lost → {} ({})",
        trace.meta.duration_ns as f64 / 1e9,
        text::status::count(events),
        text::status::count(outcome.status.lost),
        output.display(),
        text::status::bytes(size)
    );
    for note in &outcome.notes {
        say!("holdup: note: {note}");
    }
}
