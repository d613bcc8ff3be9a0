//! `holdup record`; with `--count` a flight recorder whose traces are written by another process, while it goes on.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use holdup_record::{Kept, Left, Observer, Options, Status};
use holdup_trace::{Error, Result, file};

use super::Usage;
use super::record::{self, Then};
use super::ship;
use crate::cli::{KeepRing, Record, Source};
use crate::text::screen::say;
use crate::text::status::{self, StatusLine};

/// Runs `holdup record`, which is this command with `--count`.
pub fn run(args: &Record) -> anyhow::Result<ExitCode> {
    let source = &Source { all: args.source.all || args.everything, ..args.source.clone() };
    if !source.is_given() {
        return Err(Usage("nothing to record: give -- CMD, -p PID or -a; see holdup record --help".into()).into());
    }
    match (args.count, args.ring()) {
        (None, _) => record::run(args, source),
        (Some(_), None) => {
            Err(Usage("--count writes what a ring keeps: give --ring 30s, or --ring-size 512MB".into()).into())
        }
        (Some(_), Some(_)) => record(&record::all_options(args, source)?, source, args),
    }
}

/// Records until all is kept that is asked for, or until it is told to end: then what is in the ring is nobody's.
fn record(options: &Options, source: &Source, args: &Record) -> anyhow::Result<ExitCode> {
    let output = &args.output;
    if let Some(to) = &args.ship {
        ship::go_on(output, to)?;
    }
    // Whether the result can be written is said now.
    drop(file::create(&numbered(output, 1))?);
    let (spool, _) = record::claim(output)?;
    let mut keeper = Keeper::new(output, source, args.ship.clone());
    let done = holdup_record::record_and_keep(options, spool, &mut keeper, &AtomicBool::new(false));
    keeper.line.finish();
    let written = keeper.wait();
    let (outcome, recorded) = done?;
    recorded.remove()?;
    for note in &outcome.notes {
        say!("holdup: note: {note}");
    }
    let kept = outcome.kept;
    let events = status::count(outcome.status.events);
    let lost = status::count(outcome.status.missing());
    say!("holdup: {kept} traces in {:.0} s; {events} events, {lost} lost", outcome.status.elapsed.as_secs_f64());
    anyhow::ensure!(written, "a trace could not be written");
    Ok(record::exit_code(&outcome))
}

/// Starts the processes that write the traces, one at a time.
struct Keeper {
    line: StatusLine,
    output: PathBuf,
    machine: bool,
    /// Where traces are carried.
    ship: Option<String>,
    writer: Option<Child>,
    number: u64,
    failed: bool,
}

impl Keeper {
    fn new(output: &Path, source: &Source, ship: Option<String>) -> Keeper {
        let line = StatusLine::new(!source.cmd.is_empty());
        Keeper { line, output: output.to_owned(), machine: source.all, ship, writer: None, number: 0, failed: false }
    }

    /// The next name that nothing has: traces of an earlier run stay.
    fn next(&mut self) -> PathBuf {
        loop {
            self.number += 1;
            let path = numbered(&self.output, self.number);
            if path.symlink_metadata().is_err() {
                return path;
            }
        }
    }

    /// Waits for the last trace; whether all could be written.
    fn wait(&mut self) -> bool {
        if let Some(mut writer) = self.writer.take() {
            self.failed |= !writer.wait().is_ok_and(|status| status.success());
        }
        !self.failed
    }
}

impl Observer for Keeper {
    fn status(&mut self, status: &Status) {
        self.line.update(status);
        // A writer that has ended is buried at once, not at the next condition.
        self.is_busy();
    }

    fn is_busy(&mut self) -> bool {
        let Some(writer) = &mut self.writer else { return false };
        match writer.try_wait() {
            Ok(None) => true,
            ended => {
                self.failed |= !matches!(ended, Ok(Some(status)) if status.success());
                self.writer = None;
                false
            }
        }
    }

    fn keep(&mut self, kept: Kept) -> Result<()> {
        let path = self.next();
        self.line.finish();
        say!("holdup: {}; writing {}", kept.why, path.display());
        let bad = |e: std::io::Error| Error::Input(format!("{} cannot be written: {e}", path.display()));
        let mut command = Command::new(std::env::current_exe().map_err(bad)?);
        command.arg("keep-ring").arg("--output").arg(&path).stdin(Stdio::null()).stdout(Stdio::null());
        if self.machine {
            command.arg("--machine");
        }
        command.args(self.ship.iter().flat_map(|to| ["--ship", to]));
        command.args(kept.pass_on().map_err(bad)?.iter().map(i32::to_string));
        self.writer = Some(command.spawn().map_err(bad)?);
        Ok(())
    }
}

/// `F.holdup` as `F-1.holdup`.
fn numbered(output: &Path, number: u64) -> PathBuf {
    let mut name = output.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = output.extension() {
        name.push(".");
        name.push(extension);
    }
    output.with_file_name(name)
}

/// The work of the process beside the recorder.
pub fn keep(args: &KeepRing) -> anyhow::Result<ExitCode> {
    holdup_record::step_back();
    let path = &args.output;
    let open = |number: &u32| File::open(format!("/proc/self/fd/{number}"));
    let parts = args.parts.iter().map(open).collect::<std::io::Result<Vec<File>>>();
    let parts = parts.map_err(|e| Error::Input(format!("keep-ring is started by holdup record --count alone: {e}")))?;
    let result = file::create(path)?;
    let trace = record::convert_parts(parts, Left::default(), path, path.parent(), args.machine, Then::Done)?;
    file::write_to(&trace, result).with_context(|| path.display().to_string())?;
    let size = std::fs::metadata(path).map_or(0, |m| m.len());
    let seconds = trace.meta.duration().seconds();
    say!("holdup: {seconds:.2} s → {} ({})", path.display(), status::bytes(size));
    if let Some(to) = &args.ship {
        drop(trace);
        ship::ship(path, to)?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_before_the_extension() {
        assert_eq!(numbered(Path::new("/a/b.holdup"), 2), Path::new("/a/b-2.holdup"));
        assert_eq!(numbered(Path::new("b"), 1), Path::new("b-1"));
    }
}
