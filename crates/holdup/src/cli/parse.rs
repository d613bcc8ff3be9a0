//! From the words of the command line, and the defaults of the file of settings, to a command.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use super::{Cli, Command, config, hints};
use crate::text::screen::say;

/// Bad usage.
const USAGE: u8 = 2;

/// What to do; or, with everything said, how to end.
pub fn parse() -> Result<Cli, ExitCode> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let settings = config::read();
    let (command, bad) = match settings {
        Ok(settings) => {
            settings.choose_color();
            (settings.apply(Cli::command()), None)
        }
        Err(what) => (Cli::command(), Some(what)),
    };
    let matches = command.try_get_matches_from(&words);
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches)).map_err(|e| hints::refuse(&e, &words))?;
    // Help, completions and what this program starts itself go on without settings.
    match bad.filter(|_| cli.command.has_settings()) {
        Some(what) => {
            say!("holdup: {what}");
            Err(ExitCode::from(USAGE))
        }
        None => Ok(cli),
    }
}

impl Command {
    fn has_settings(&self) -> bool {
        !matches!(
            self,
            Command::Completions { .. }
                | Command::Man { .. }
                | Command::Schema { .. }
                | Command::Launch(_)
                | Command::KeepRing(_)
                | Command::DemoProgram
        )
    }
}
