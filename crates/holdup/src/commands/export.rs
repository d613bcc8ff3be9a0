//! `holdup export`: a trace, and what was found in it, in the formats of other tools.

pub mod dataset;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use holdup_analysis::Options;
use holdup_base::Output;
use holdup_base::output::{Folder, Readers};
use holdup_export::{Choice, Format, Source, firefox, folded, json, ndjson, parquet, perfetto, speedscope};
use holdup_trace::Error;
use holdup_view::Machine;

use super::Usage;
use crate::cli::Export;
use crate::open;
use crate::text::progress::Progress;
use crate::text::screen::{self, say};

/// Bytes that are collected before they are written.
const BUFFER: usize = 1 << 18;

/// Runs the command.
pub fn run(args: &Export) -> anyhow::Result<ExitCode> {
    let has_stacks = matches!(args.format, Format::Folded | Format::Speedscope);
    if !has_stacks && (args.per_thread || !args.stacks.is_empty()) {
        let what = format!("--stacks and --per-thread are for folded and speedscope, not for {}", args.format);
        return Err(Usage(what).into());
    }
    if args.dataset.is_some() && args.format != Format::Parquet {
        return Err(Usage(format!("a data set is of parquet, not of {}", args.format)).into());
    }
    if let Some(dataset) = &args.dataset {
        return dataset::add(args, dataset);
    }
    let output = args.output.as_deref().ok_or_else(|| Usage("--output is missing".to_owned()))?;
    let choice = Choice { kinds: args.stacks.clone(), per_thread: args.per_thread };
    match args.format {
        Format::Parquet => to_folder(args, output, |source, folder| parquet::write(source.trace, folder))?,
        Format::Firefox => to_file(args, output, |source, out| {
            let left_out = firefox::write(source, &mut screen::json(out))?;
            note(left_out);
            Ok(())
        })?,
        Format::Json => to_file(args, output, |source, out| json::write(source, &mut screen::json(out)))?,
        Format::Ndjson => to_file(args, output, |source, out| ndjson::write(source.trace, &mut screen::json(out)))?,
        Format::Speedscope => {
            to_file(args, output, |source, out| speedscope::write(source, &choice, &mut screen::json(out)))?;
        }
        Format::Perfetto => to_file(args, output, perfetto::write)?,
        Format::Folded => to_file(args, output, |source, out| folded::write(source, &choice, out))?,
    }
    say!("holdup: {} → {}", args.format, output.display());
    Ok(ExitCode::SUCCESS)
}

fn note(firefox::LeftOut { waits, spans }: firefox::LeftOut) {
    for (count, what) in [(waits, "waits"), (spans, "spans")].into_iter().filter(|(count, _)| *count > 0) {
        say!("note: the {count} shortest {what} have no marker: --window A..B leaves fewer out");
    }
}

/// Whether the result can be put there is known before the trace is read.
fn to_file(
    args: &Export,
    path: &Path,
    write: impl FnOnce(&Source, &mut dyn Write) -> holdup_export::Result<()>,
) -> anyhow::Result<()> {
    let output = Output::create(path, Readers::Owner).map_err(|e| Error::Input(e.to_string()))?;
    let mut out = BufWriter::with_capacity(BUFFER, output);
    export(&Part::of(args), path, |source| {
        write(source, &mut out)?;
        Ok(out.flush()?)
    })?;
    let output = out.into_inner().map_err(|e| error(path, e.into_error().into()))?;
    Ok(output.commit().map_err(|e| Error::Input(e.to_string()))?)
}

fn to_folder(
    args: &Export,
    path: &Path,
    write: impl FnOnce(&Source, &mut dyn parquet::Folder) -> holdup_export::Result<()>,
) -> anyhow::Result<()> {
    let mut folder = Files(Folder::create(path).map_err(|e| Error::Input(e.to_string()))?);
    export(&Part::of(args), path, |source| write(source, &mut folder))?;
    Ok(folder.0.commit().map_err(|e| Error::Input(e.to_string()))?)
}

struct Files(Folder);

impl parquet::Folder for Files {
    fn file(&mut self, name: &str) -> io::Result<Box<dyn Write>> {
        Ok(Box::new(BufWriter::<File>::with_capacity(BUFFER, self.0.file(name)?)))
    }
}

/// What of a trace is exported.
struct Part<'a> {
    trace: &'a Path,
    /// From and to, in seconds.
    window: Option<(f64, f64)>,
    focus: Option<&'a str>,
    redact: bool,
}

impl<'a> Part<'a> {
    fn of(args: &'a Export) -> Self {
        Part { trace: &args.trace, window: args.window, focus: args.focus.as_deref(), redact: args.redact }
    }
}

fn export<R>(part: &Part, to: &Path, write: impl FnOnce(&Source) -> holdup_export::Result<R>) -> anyhow::Result<R> {
    let trace = open::part(part.trace, part.window, part.redact)?;
    let name = match part.trace.file_name() {
        Some(name) if !part.redact => name.to_string_lossy().into_owned(),
        _ => "trace".to_owned(),
    };
    let options = Options { focus: part.focus.map(str::to_owned), ..Options::default() };
    let _progress = Progress::of_step("exporting");
    write(&Source { trace: &trace, name: &name, options: &options, disassembler: &Machine }).map_err(|e| error(to, e))
}

fn error(to: &Path, error: holdup_export::Error) -> anyhow::Error {
    match error {
        holdup_export::Error::Trace(e) => e.into(),
        holdup_export::Error::Write(e) if e.kind() == io::ErrorKind::BrokenPipe => e.into(),
        holdup_export::Error::Write(e) => anyhow!("{} cannot be written: {e}", to.display()),
    }
}
