//! `holdup cut`: a window of a trace as a trace of its own.

use std::process::ExitCode;

use holdup_trace::file;

use super::Usage;
use crate::cli::Cut;
use crate::open;
use crate::text::screen::say;

/// Runs the command.
pub fn run(args: &Cut) -> anyhow::Result<ExitCode> {
    if args.window.is_none() && !args.redact {
        return Err(Usage("nothing to cut: give --window A..B, --redact, or both".into()).into());
    }
    let output = file::create(&args.output)?;
    let trace = open::part(&args.trace, args.window, args.redact)?;
    file::write_to(&trace, output)?;
    let (length, threads) = (trace.meta.duration().seconds(), trace.threads.tid.len().saturating_sub(1));
    say!("holdup: {length:.3} s, {threads} threads → {}", args.output.display());
    Ok(ExitCode::SUCCESS)
}
