//! `holdup demo`: the first true story in small, on this machine.

use std::process::ExitCode;

use anstyle::Style;
use holdup_analysis::Options;

use super::explain;
use super::record::{self, Keep};
use crate::cli::{Demo, Source};
use crate::open;

const BOLD: Style = Style::new().bold();

/// Records the built-in program, explains it, and says what to try next.
pub fn run(args: &Demo) -> anyhow::Result<ExitCode> {
    anstream::eprintln!(
        "A dozen compilers write through one lock. After 0.6 s another thread takes it and scans a bitmap for 0.7 s.\n\
         Recording this program for two seconds, then asking what held the cores up:\n"
    );
    let program = std::env::current_exe()?.display().to_string();
    let source = Source::command(vec![program, "demo-program".into()]);
    record::record(&source, None, Keep::File(&args.output))?;
    let trace = open::open(&args.output)?;
    let path = args.output.display().to_string();
    let answer = explain::explain(&trace, &path, &Options { top: 3, ..Options::default() })?;
    explain::print(&answer, &trace, args.json)?;
    if !args.json {
        anstream::println!(
            "{BOLD}Try next{BOLD:#}\n  \
             holdup explain {path} --window 0.5..1.5        only the standstill\n  \
             holdup table {path} switches --top 20          every switch: who readied whom, after how long\n  \
             holdup chain {path} --at 1.0 --follow          from one wait to its cause, and the lock's hand-overs\n  \
             holdup disasm {path} find_free_block           the loop, with samples and source lines\n  \
             holdup threads {path}                          what each thread ran and waited for\n  \
             holdup explain -- YOUR COMMAND                        your own program"
        );
    }
    Ok(ExitCode::SUCCESS)
}
