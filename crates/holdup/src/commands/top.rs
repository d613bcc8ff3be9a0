//! `holdup top`: what holds this machine up now, over and over.
//!
//! One short recording follows the other, each explained as any is, while the next one goes on: what is shown speaks of nearly all
//! of the time, and each page says of how long a stretch.

mod live;

use std::process::ExitCode;

use holdup_analysis::Options;

use super::record::{self, Then};
use super::{Usage, explain};
use crate::cli::{Source, Top};
use crate::text;
use crate::text::screen;

/// Runs the command, until it is told to end or for `--once`.
pub fn run(args: &Top) -> anyhow::Result<ExitCode> {
    if !args.once && args.json {
        return Err(Usage("--json prints one document: give --once, too".into()).into());
    }
    if !args.once && !screen::is_terminal() {
        return Err(Usage("top is for a terminal: give --once for one page".into()).into());
    }
    let source = Source::stretch(&args.pid, args.over);
    if args.once { once(args, &source) } else { live::run(&source) }
}

fn once(args: &Top, source: &Source) -> anyhow::Result<ExitCode> {
    let (_, trace) = record::record_quietly(source, Then::Done)?;
    let top = if args.json { args.top } else { usize::MAX };
    let answer = explain::explain(&trace, "now", &Options { top, ..Options::default() })?;
    if args.json {
        text::print_json(&answer)?;
    } else {
        explain::page(&answer, &trace, None, String::new()).print()?;
    }
    Ok(ExitCode::SUCCESS)
}
