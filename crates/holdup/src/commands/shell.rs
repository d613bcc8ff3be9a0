//! Shell completions and man pages.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use holdup_base::output::{self, Readers};
use holdup_trace::Error;

use crate::cli::{Cli, complete};
use crate::text::screen;

/// Prints the completion script for `shell`.
pub fn completions(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    screen::bytes().write_all(&complete::script(shell))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes one page for each command into `folder`.
pub fn man(folder: &Path) -> anyhow::Result<ExitCode> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    pages(&command, folder).map_err(|e| Error::input(folder, format!("cannot write man pages there: {e}")))?;
    Ok(ExitCode::SUCCESS)
}

/// The pages of a command and of those below it. The generator's own way to write them follows links.
fn pages(command: &clap::Command, folder: &Path) -> io::Result<()> {
    command.get_subcommands().filter(|c| !c.is_hide_set()).try_for_each(|c| pages(c, folder))?;
    let page = clap_mangen::Man::new(command.clone());
    let mut roff = Vec::new();
    page.render(&mut roff)?;
    output::write(&folder.join(page.get_filename()), Readers::Public, &roff)
}
