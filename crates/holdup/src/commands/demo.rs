//! `holdup demo`: the first true story in small, on this machine.

use std::process::ExitCode;

use holdup_analysis::Options;

use super::explain;
use super::record;
use crate::cli::{Demo, Source};
use crate::text::screen::{Style, say, show};
use crate::{open, text};

const BOLD: Style = Style::BOLD;

/// Records the built-in program, explains it, and says what to try next.
pub fn run(args: &Demo) -> anyhow::Result<ExitCode> {
    say!(
        "The demo: twelve compilers write through one lock. After 0.6 s another thread\n\
         takes it and scans a bitmap for 0.7 s. Recording this, then asking what held it up:\n"
    );
    let program = std::env::current_exe()?.display().to_string();
    let source = Source::command(vec![program, "demo-program".into()]);
    record::record(&source, &args.output, record::Then::Done)?;
    let trace = open::open(&args.output)?;
    let path = args.output.display().to_string();
    let top = if args.json { 3 } else { usize::MAX };
    let answer = explain::explain(&trace, &path, &Options { top, ..Options::default() })?;
    if args.json {
        text::print_json(&answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    explain::page(&answer, &trace, Some(&path), String::new()).print()?;
    let file = text::page::quoted(&path);
    let questions = [
        (format!("holdup view {file}"), "the same in the browser: the dip, the thread behind it"),
        (format!("holdup chain {file} --at 1.0"), "from one wait to its cause, hop by hop"),
        (format!("holdup disasm {file} find_free_block"), "the loop, with samples"),
        (format!("holdup table {file} switches"), "every switch: who readied whom"),
        ("holdup explain -- YOUR COMMAND".to_owned(), "your own program"),
    ];
    let columns = questions.iter().map(|(q, _)| q.chars().count()).max().unwrap_or(0);
    show!("\n{BOLD}Try next{BOLD:#}");
    questions.iter().for_each(|(question, answer)| show!("  {question:<columns$}  {answer}"));
    Ok(ExitCode::SUCCESS)
}
