//! `holdup top`: what holds this machine up now, over and over.
//!
//! One short recording follows the other, each explained as any is. Between two nothing is recorded: what is shown is a sample of
//! what goes on, and each page says of how long a stretch it speaks.

use std::process::ExitCode;

use holdup_analysis::Options;

use super::record::{self, Then};
use super::{Usage, explain};
use crate::cli::{Source, Top};
use crate::text;
use crate::text::screen;

/// Runs the command, until Ctrl-C or for `--once`.
pub fn run(args: &Top) -> anyhow::Result<ExitCode> {
    let live = !args.once;
    if live && args.json {
        return Err(Usage("--json prints one document: give --once, too".into()).into());
    }
    if live && !screen::is_terminal() {
        return Err(Usage("top is for a terminal: give --once for one page".into()).into());
    }
    let source = Source {
        all: args.pid.is_empty(),
        pid: args.pid.clone(),
        duration: Some(args.over),
        ..Source::command(Vec::new())
    };
    loop {
        let then = if live { Then::Again } else { Then::Done };
        let (outcome, trace) = record::record_quietly(&source, then)?;
        let top = if args.json { args.top } else { usize::MAX };
        let answer = explain::explain(&trace, "now", &Options { top, ..Options::default() })?;
        if args.json {
            text::print_json(&answer)?;
        } else {
            if live {
                screen::clear();
            }
            explain::page(&answer, &trace, None, String::new()).print()?;
        }
        if !live || outcome.interrupted {
            return Ok(ExitCode::SUCCESS);
        }
    }
}
