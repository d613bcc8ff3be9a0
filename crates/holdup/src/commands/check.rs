//! `holdup check`: what is hazardous about this machine.

use std::process::ExitCode;

use holdup_lab::check::{self, Grade};

use crate::cli::Check;
use crate::text;

/// Runs the command. The exit code is 1 if an answer is bad.
pub fn run(args: &Check) -> anyhow::Result<ExitCode> {
    let report = check::run(&args.only)?;
    if args.json {
        text::print_json(&report)?;
    } else {
        text::check::print(&report)?;
    }
    let bad = report.checks.iter().any(|c| c.verdict == Grade::Bad);
    Ok(if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
