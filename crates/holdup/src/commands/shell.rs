//! Shell completions and man pages.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use holdup_trace::Error;

use crate::cli::{Cli, complete};

/// Prints the completion script for `shell`.
pub fn completions(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    std::io::stdout().write_all(&complete::script(shell))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes one page for each command into `folder`.
pub fn man(folder: &Path) -> anyhow::Result<ExitCode> {
    let fail = |e: std::io::Error| Error::input(folder, format!("cannot write man pages there: {e}"));
    clap_mangen::generate_to(Cli::command(), folder).map_err(fail)?;
    Ok(ExitCode::SUCCESS)
}
