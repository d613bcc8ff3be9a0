//! `holdup chain`: from a wait to its cause.

use std::process::ExitCode;

use holdup_analysis::chain::{Options, Start, chain};
use holdup_analysis::spans;

use crate::cli::Chain;
use crate::{open, text};
use holdup_view::Machine;

/// Runs the command.
pub fn run(args: &Chain) -> anyhow::Result<ExitCode> {
    let trace = open::open(&args.trace)?;
    if let Some(id) = args.span {
        let found = spans::one(&trace, &args.trace.display().to_string(), id)?;
        if args.json {
            text::print_json(&found)?;
        } else {
            text::spans::print_one(&found)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let start = match (args.wait, args.at) {
        (Some(id), _) => Start::Wait(id),
        (None, at) => Start::At { seconds: at.unwrap_or_default().as_secs_f64(), thread: args.thread.clone() },
    };
    let options = Options { start, focus: args.focus.clone(), follow: args.follow, top: args.top };
    let found = chain(&trace, &args.trace.display().to_string(), &options, &Machine)?;
    if args.json {
        text::print_json(&found)?;
    } else {
        text::chain::print(&found, args.top)?;
    }
    Ok(ExitCode::SUCCESS)
}
