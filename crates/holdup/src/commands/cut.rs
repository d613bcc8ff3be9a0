//! `holdup cut`: a window of a trace as a trace of its own.

use std::process::ExitCode;

use holdup_trace::{Timestamp, compact, cut, file};

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
    let mut trace = open::open(&args.trace)?;
    if let Some((from, to)) = args.window {
        trace = cut::window(&trace, Timestamp::from_seconds(from), Timestamp::from_seconds(to))?;
        compact(&mut trace, |_| true)?;
    }
    if args.redact {
        holdup_trace::redact(&mut trace)?;
    }
    file::write_to(&trace, output)?;
    let (length, threads) = (trace.meta.duration().seconds(), trace.threads.tid.len().saturating_sub(1));
    say!("holdup: {length:.3} s, {threads} threads → {}", args.output.display());
    Ok(ExitCode::SUCCESS)
}
