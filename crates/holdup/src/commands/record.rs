//! `holdup record`: records into a spool, then turns it into a `.holdup` file.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use holdup_base::Claim;
use holdup_base::text::clean;
use holdup_record::{Farewell, Left, Options, Outcome, Raised, Recorded, Status, Target};
use holdup_trace::{Destination, Error, Nanos, Trace, TraceBuilder, file};

use crate::cli::{Record, Source};
use crate::text::progress::Progress;
use crate::text::screen::{self, say};
use crate::text::status::StatusLine;
use crate::{open, text};

/// Whether this process records again afterwards: what it needs for that is given up as soon as it is not needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It does.
    Again,
    /// It only explains.
    Done,
}

/// Records what `source` says into one trace. Its exit code is that of the recorded command.
pub fn run(args: &Record, source: &Source) -> anyhow::Result<ExitCode> {
    let outcome = record_with(&all_options(args, source)?, source, &args.output, Then::Done)?;
    if let Some(to) = &args.ship {
        super::ship::ship(&args.output, to)?;
    }
    let file = crate::text::page::quoted(&args.output.display().to_string());
    say!("holdup: try  holdup explain {file}   or look at it:  holdup view {file}");
    Ok(exit_code(&outcome))
}

/// With what `holdup record` alone can do.
pub fn all_options(args: &Record, source: &Source) -> holdup_trace::Result<Options> {
    let (ring, keep, until) = (args.ring(), args.keep(), args.until.clone());
    let spans = super::spans::probes(&args.span, &source.cmd)?;
    let (sockets, markers) = (super::spans::sockets(&args.span), super::spans::markers(&args.span));
    Ok(Options { ring, until, after: args.after, keep, spans, sockets, markers, ..options(source)? })
}

/// The exit code of the recorded command; 128 + n if it was ended by signal n.
pub fn exit_code(outcome: &Outcome) -> ExitCode {
    outcome.exit_code.map_or(ExitCode::SUCCESS, |code| ExitCode::from(code as u8))
}

/// Records `source` into the file `output`, which is as it was until the recording is complete.
pub fn record(source: &Source, output: &Path, then: Then) -> anyhow::Result<Outcome> {
    record_with(&options(source)?, source, output, then)
}

/// Makes the spool of `output`, and says what an earlier recorder left there.
pub fn claim(output: &Path) -> anyhow::Result<(Claim, PathBuf)> {
    let path = spool_beside(output);
    let (spool, aside) = Claim::take(&path).map_err(|e| Error::Input(e.to_string()))?;
    tell_of_remains(&path, aside.as_deref(), output);
    Ok((spool, path))
}

pub(super) fn record_with(options: &Options, source: &Source, output: &Path, then: Then) -> anyhow::Result<Outcome> {
    let result = file::create(output)?;
    let (spool, spool_path) = claim(output)?;
    let segments = if options.ring.is_some() { ", and its segments" } else { "" };
    let kept = format!(
        "the recording is kept, with copies of stack memory in it: holdup explain {0} --keep {1} completes {1}; then remove {0}{segments}",
        spool_path.display(),
        output.display()
    );
    // Ctrl-C while recording ends the recording; afterwards it ends the conversion.
    let farewell = (then == Then::Done).then(|| Farewell::new(&format!("holdup: ended; {}", clean(&kept))));
    let (mut outcome, spool) = run_recorder(options, spool)?;
    let left = std::mem::take(&mut outcome.left);
    let trace = convert(&spool, left, output.parent(), source, then).with_context(|| kept.clone())?;
    let writing = Progress::of_step("writing the recording");
    file::write_to(&trace, result).with_context(|| kept.clone())?;
    drop(writing);
    spool.remove()?;
    drop(farewell);
    let size = std::fs::metadata(output).map_or(0, |m| m.len());
    report(&trace, &outcome, &format!(" → {} ({})", output.display(), text::status::bytes(size)));
    Ok(outcome)
}

/// Records `source` into files without names: nothing is left of it but the trace.
pub fn record_unkept(source: &Source, then: Then) -> anyhow::Result<(Outcome, Trace)> {
    let (outcome, trace) = record_quietly(source, then)?;
    report(&trace, &outcome, "");
    Ok((outcome, trace))
}

/// The same without a word of how it went.
pub fn record_quietly(source: &Source, then: Then) -> anyhow::Result<(Outcome, Trace)> {
    catch_until_signal(source)?.read(source, then)
}

/// The same, not read yet.
pub fn catch_until_signal(source: &Source) -> anyhow::Result<Caught> {
    let (outcome, spool) = run_recorder(&options(source)?, nameless_spool()?)?;
    Ok(Caught { outcome, spool })
}

/// A recording that is over, and not read yet.
pub struct Caught {
    /// How it went.
    pub outcome: Outcome,
    spool: Recorded,
}

impl Caught {
    /// What was recorded.
    pub fn read(self, source: &Source, then: Then) -> anyhow::Result<(Outcome, Trace)> {
        let Caught { mut outcome, spool } = self;
        let left = std::mem::take(&mut outcome.left);
        let trace = convert(&spool, left, Some(&std::env::temp_dir()), source, then)
            .context("the recording is lost: `holdup record -o FILE` keeps what it records")?;
        Ok((outcome, trace))
    }
}

/// Records without a word, not even meanwhile, until the time of `source` is over or it is told to stop.
pub fn catch(source: &Source, stop: &AtomicBool) -> anyhow::Result<Caught> {
    let (outcome, spool) = holdup_record::record(&options(source)?, nameless_spool()?, &mut |_: &Status| (), stop)?;
    Ok(Caught { outcome, spool })
}

fn nameless_spool() -> holdup_trace::Result<Claim> {
    Claim::nameless(&std::env::temp_dir()).map_err(|e| Error::Input(e.to_string()))
}

fn run_recorder(options: &Options, spool: Claim) -> anyhow::Result<(Outcome, Recorded)> {
    let has_command = matches!(options.target, Target::Command { .. });
    let mut line = StatusLine::new(has_command);
    let mut show = |status: &Status| line.update(status);
    let done = holdup_record::record(options, spool, &mut show, &AtomicBool::new(false));
    line.finish();
    if has_command {
        screen::begin_line();
    }
    Ok(done?)
}

/// Without what `holdup record` alone can do.
pub(super) fn options(source: &Source) -> holdup_trace::Result<Options> {
    let mut pids = match source.pid.as_slice() {
        [] => Vec::new(),
        wanted => holdup_record::processes(wanted)?,
    };
    if let Some(path) = &source.cgroup {
        pids.extend(holdup_record::processes_in_cgroup(path)?);
        pids.sort_unstable();
        pids.dedup();
    }
    let (target, about) = match (pids.is_empty(), source.cmd.is_empty()) {
        (false, true) => (Target::Pids(pids), Vec::new()),
        (true, true) => (Target::System, Vec::new()),
        (_, false) => (Target::Command { argv: source.cmd.iter().map(OsString::from).collect() }, pids),
    };
    Ok(Options {
        target,
        about,
        machine: source.all,
        duration: source.duration,
        freq: source.freq,
        budget: source.budget,
        min_wait: Nanos(u64::try_from(source.min_wait.as_nanos()).unwrap_or(u64::MAX)),
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

/// Says what an earlier recorder left that was killed.
fn tell_of_remains(spool: &Path, aside: Option<&Path>, output: &Path) {
    let what = "it holds copies of stack memory: remove it when it is of no use";
    if let Some(aside) = aside {
        let segments = match holdup_spool::ring_of(aside).map(|mark| holdup_spool::segments(aside, mark).len()) {
            Some(n) if n > 0 => format!(", with {n} segments of {}", spool.display()),
            _ => String::new(),
        };
        let (aside, output) = (aside.display(), output.display());
        say!(
            "holdup: an earlier recording into {output} was ended before it was complete, and is now {aside}{segments}. \
             holdup explain {aside} shows it, with --keep FILE as a .holdup file; {what}"
        );
    }
}

fn convert(
    spool: &Recorded,
    left: Left,
    folder: Option<&Path>,
    source: &Source,
    then: Then,
) -> holdup_trace::Result<Trace> {
    let parts = spool.parts().map_err(|e| Error::input(spool.path(), e))?;
    convert_parts(parts, left, spool.path(), folder, source.all, then)
}

/// Tables go through files in `folder`, so that memory stays bounded however long the recording was. `path` is its name in
/// messages; `left` is what names functions of processes that have ended; `all` says that the focus is the machine.
pub fn convert_parts(
    parts: Vec<File>,
    mut left: Left,
    path: &Path,
    folder: Option<&Path>,
    all: bool,
    then: Then,
) -> holdup_trace::Result<Trace> {
    if then == Then::Done {
        holdup_record::give_up_recording();
    }
    let folder = folder.filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = TraceBuilder::new(&Destination::Folder(folder.to_owned()))?;
    let unwinder = open::unwinder(&mut left, &mut builder);
    builder.set_unwinder(Box::new(unwinder));
    if !holdup_record::owner_sees_kernel_addresses() {
        builder.hide_kernel_addresses();
    }
    let progress = match parts.as_slice() {
        [file] => Progress::of_file("reading the recording", file),
        _ => Progress::of_step("reading the recording"),
    };
    holdup_spool::read_parts(parts, path, &mut builder)?;
    progress.next("naming its functions");
    let mut trace = {
        let _names = Raised::for_names();
        open::finish_with(builder, left)?
    };
    if then == Then::Done {
        holdup_record::give_up();
    }
    if all {
        trace.meta.focus_pids.clear();
    }
    Ok(trace)
}

fn report(trace: &Trace, outcome: &Outcome, result: &str) {
    let status = &outcome.status;
    let stacks = match status.lost_stacks {
        0 => String::new(),
        n => format!(" ({} of them stacks)", text::status::count(n)),
    };
    say!(
        "holdup: {:.2} s, {} events, {} lost{stacks}{result}",
        trace.meta.duration().seconds(),
        text::status::count(status.events),
        text::status::count(status.missing()),
    );
    for note in &outcome.notes {
        say!("holdup: note: {note}");
    }
}
