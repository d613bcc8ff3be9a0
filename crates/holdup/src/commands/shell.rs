//! Shell completions and man pages.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use holdup_trace::Error;

use crate::cli::Cli;
use crate::text::screen;

/// Prints the completion script for `shell`.
pub fn completions(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    // The generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "holdup", &mut script);
    screen::bytes().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes one page for each command into `folder`.
pub fn man(folder: &Path) -> anyhow::Result<ExitCode> {
    let fail = |e: std::io::Error| Error::input(folder, format!("cannot write man pages there: {e}"));
    clap_mangen::generate_to(Cli::command(), folder).map_err(fail)?;
    Ok(ExitCode::SUCCESS)
}
