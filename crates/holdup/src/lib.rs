//! `holdup`: printing, progress, exit codes, wiring. No algorithm lives here.
//!
//! Three programs share this: `holdup`; `holdup-load`, which `holdup load` and `holdup lab` become; `holdup-fleet`, which `holdup fleet`
//! becomes. So what may run as root holds neither a script engine nor drivers for servers nor a database, and stays small.

#![forbid(unsafe_code)]

mod cli;
mod commands;
mod demo;
mod documents;
mod open;
mod text;
mod version;

use std::process::ExitCode;

use cli::Command;
use text::screen::say;

/// Bad usage that clap cannot see.
const USAGE: u8 = 2;
/// A mistake of ours, as `sysexits.h` numbers it.
const BUG: u8 = 70;

/// The program `holdup`: every command; those that make load are done by the program beside it.
pub fn workbench() -> ExitCode {
    start(run)
}

/// The program `holdup-load`: the commands that make load.
pub fn generator() -> ExitCode {
    start(|command| match command {
        Command::Lab { command } => commands::lab::run(&command),
        Command::Load { command } => commands::load::run(&command),
        Command::ToPng => commands::beside::draw_png(),
        _ => Err(commands::Usage::of_the_workbench("holdup-load").into()),
    })
}

/// The program `holdup-fleet`: the commands that ask data sets of many traces.
#[cfg(feature = "fleet")]
pub fn fleet() -> ExitCode {
    start(|command| match command {
        Command::Fleet { command } => commands::fleet::run(&command),
        _ => Err(commands::Usage::of_the_workbench("holdup-fleet").into()),
    })
}

fn start(run: impl FnOnce(Command) -> anyhow::Result<ExitCode>) -> ExitCode {
    // Capabilities that the file was given are laid down before any argument is looked at.
    let lowered = holdup_record::lower();
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    if !cli.command.records() {
        holdup_record::give_up();
    }
    open::look_for_names_in(cli.symbols);
    match lowered.map_err(Into::into).and_then(|()| run(cli.command)) {
        Ok(code) => code,
        Err(error) => {
            if is_broken_pipe(&error) {
                return ExitCode::SUCCESS;
            }
            say!("holdup: {error:#}");
            ExitCode::from(exit_code(&error))
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(args) => commands::demo::run(&args),
        Command::Record(args) => commands::flight::run(&args),
        Command::Info(args) => commands::info::run(&args),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Check(args) => commands::check::run(&args),
        // It reads traces, which the other program can't.
        Command::Lab { command: cli::Lab::Reproduce(args) } => commands::reproduce::run(&args),
        Command::Lab { .. } | Command::Load { .. } | Command::ToPng => commands::beside::become_generator(),
        Command::Fleet { .. } => commands::beside::become_fleet(),
        Command::Scale(args) => commands::scale::run(&args),
        Command::KeepRing(args) => commands::flight::keep(&args),
        Command::Launch(args) => commands::scale::launch(&args),
        Command::Diff(args) => commands::diff::run(&args),
        Command::Chain(args) => commands::chain::run(&args),
        Command::Disasm(args) => commands::disasm::run(&args),
        Command::Threads(args) => commands::threads::run(&args),
        Command::Table(args) => commands::table::run(&args),
        Command::Top(args) => commands::top::run(&args),
        Command::Agent(args) => commands::agent::run(&args),
        Command::AnswerMetrics => commands::agent::answer(),
        Command::Report(args) => commands::report::run(&args),
        Command::Cut(args) => commands::cut::run(&args),
        Command::Export(args) => commands::export::run(&args),
        Command::Mcp(args) => commands::mcp::run(&args),
        Command::View(args) => commands::view::run(&args),
        Command::Schema { document } => commands::schema::run(document.as_deref()),
        Command::Completions { shell } => commands::shell::completions(shell),
        Command::Man { folder } => commands::shell::man(&folder),
        Command::DemoProgram => {
            demo::program::run();
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}

fn exit_code(error: &anyhow::Error) -> u8 {
    if let Some(error) = error.downcast_ref::<holdup_lab::Error>() {
        return if matches!(error, holdup_lab::Error::Usage(_)) { USAGE } else { 4 };
    }
    if let Some(holdup_load::sweep::Error::Usage(_)) = error.downcast_ref() {
        return USAGE;
    }
    match error.downcast_ref() {
        Some(holdup_load::harness::RunError::System(_)) => return 4,
        Some(holdup_load::harness::RunError::Interrupted) => return 1,
        _ => {}
    }
    match error.downcast_ref::<holdup_trace::Error>() {
        Some(holdup_trace::Error::Input(_)) => 3,
        Some(holdup_trace::Error::Unsupported(_)) => 4,
        Some(holdup_trace::Error::Bug(_)) => BUG,
        None if error.downcast_ref::<commands::Usage>().is_some() => USAGE,
        None => 3,
    }
}

#[cfg(test)]
mod tests {
    use holdup_trace::Error;

    use super::exit_code;

    #[test]
    fn a_mistake_of_ours_is_no_bad_input() {
        let errors: [fn(String) -> Error; 3] = [Error::Input, Error::Unsupported, Error::Bug];
        assert_eq!(errors.map(|error| exit_code(&error("it".into()).into())), [3, 4, 70]);
    }
}
