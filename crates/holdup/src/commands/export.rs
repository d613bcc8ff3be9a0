//! `holdup export`: a trace, and what was found in it, in the formats of other tools.

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use anyhow::anyhow;
use holdup_analysis::Options;
use holdup_base::Output;
use holdup_base::output::Readers;
use holdup_export::{Choice, Source};
use holdup_trace::{Error, Timestamp, Trace, compact, cut};
use holdup_view::Machine;

use crate::cli::Export;
use crate::open;
use crate::text::progress::Progress;
use crate::text::screen::say;

/// Runs the command.
pub fn run(args: &Export) -> anyhow::Result<ExitCode> {
    let output = Output::create(&args.output, Readers::Owner).map_err(|e| Error::Input(e.to_string()))?;
    let trace = trace(args)?;
    let name = match args.trace.file_name() {
        Some(name) if !args.redact => name.to_string_lossy().into_owned(),
        _ => "trace".to_owned(),
    };
    let options = Options { focus: args.focus.clone(), ..Options::default() };
    let source = Source { trace: &trace, name: &name, options: &options, disassembler: &Machine };
    let choice = Choice { kinds: args.stacks.clone(), per_thread: args.per_thread };
    let progress = Progress::of_step("exporting");
    let mut out = BufWriter::with_capacity(1 << 20, output);
    holdup_export::write(&source, args.format, &choice, &mut out).map_err(|e| error(args, e))?;
    out.flush().map_err(|e| error(args, e.into()))?;
    let output = out.into_inner().map_err(|e| error(args, e.into_error().into()))?;
    output.commit().map_err(|e| Error::Input(e.to_string()))?;
    drop(progress);
    say!("holdup: {} → {}", args.format, args.output.display());
    Ok(ExitCode::SUCCESS)
}

/// The trace, or the window of it that is asked for.
fn trace(args: &Export) -> anyhow::Result<Trace> {
    let mut trace = open::open(&args.trace)?;
    if let Some((from, to)) = args.window {
        trace = cut::window(&trace, Timestamp::from_seconds(from), Timestamp::from_seconds(to))?;
        compact(&mut trace, |_| true)?;
    }
    if args.redact {
        holdup_trace::redact(&mut trace)?;
    }
    Ok(trace)
}

fn error(args: &Export, error: holdup_export::Error) -> anyhow::Error {
    match error {
        holdup_export::Error::Trace(e) => e.into(),
        holdup_export::Error::Write(e) if e.kind() == std::io::ErrorKind::BrokenPipe => e.into(),
        holdup_export::Error::Write(e) => anyhow!("{} cannot be written: {e}", args.output.display()),
    }
}
