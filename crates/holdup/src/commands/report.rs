//! `holdup report`: a trace and the page that shows it in one file.

use std::io::Write;
use std::process::ExitCode;

use anyhow::anyhow;
use holdup_analysis::Options;
use holdup_base::Output;
use holdup_base::output::Readers;
use holdup_report::{Page, Shown, Source, document};
use holdup_server::PAGE;
use holdup_trace::Error;

use super::{Usage, explain};
use crate::cli::Report;
use crate::open;
use crate::text::progress::Progress;
use crate::text::screen::say;
use crate::text::status;

/// A file that is attached to a bug report may be as long as this, in bytes.
const LIMIT: usize = 5_000_000;
/// Room for what is between the parts.
const RESERVE: usize = 4_000;

/// Runs the command.
pub fn run(args: &Report) -> anyhow::Result<ExitCode> {
    if args.trace.is_none() && (args.window.is_some() || args.redact) {
        return Err(Usage("--window and --redact need a trace: name one".into()).into());
    }
    let mut output = Output::create(&args.output, Readers::Umask).map_err(|e| Error::Input(e.to_string()))?;
    let page = Page { html: PAGE.html, script: PAGE.script, style: PAGE.style };
    let shown = shown(args, LIMIT.saturating_sub(page.size().map_err(Error::Bug)? + RESERVE))?;
    let html = document(&page, &shown).map_err(Error::Bug)?;
    output.write_all(html.as_bytes()).map_err(|e| anyhow!("{}: {e}", args.output.display()))?;
    output.commit().map_err(|e| Error::Input(e.to_string()))?;
    let parts = match shown.as_slice() {
        [] => "a page on which a trace is dropped".to_owned(),
        [one] if one.part.is_null() => "the whole trace".to_owned(),
        parts => parts.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join(", "),
    };
    say!("holdup: {parts} → {} ({})", args.output.display(), status::bytes(html.len() as u64));
    Ok(ExitCode::SUCCESS)
}

fn shown(args: &Report, room: usize) -> anyhow::Result<Vec<Shown>> {
    let Some(path) = &args.trace else { return Ok(Vec::new()) };
    let mut trace = open::open(path)?;
    if args.redact {
        holdup_trace::redact(&mut trace)?;
    }
    let name = match path.file_name() {
        Some(name) if !args.redact => name.to_string_lossy().into_owned(),
        _ => "trace".to_owned(),
    };
    let progress = Progress::of_step("explaining");
    let explanation = explain::explain(&trace, &name, &Options { window: args.window, ..Options::default() })?;
    progress.next("packing");
    Ok(Source { trace: &trace, name: &name, explanation: &explanation, window: args.window }.fit(room)?)
}
