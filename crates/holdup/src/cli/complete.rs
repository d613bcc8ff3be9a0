//! The command line as shells complete it: with the names of tables, columns, experiments, checks, documents and
//! processes. The parser itself leaves these open, because its own sentences about unknown names say more.

use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use holdup_analysis::explore::{PRESETS, TableKind};

use super::Cli;
use crate::documents::DOCUMENTS;

/// Stands in a script where a shell asks for processes.
const PROCESSES: &str = "HOLDUP_PROCESSES";

/// What bash asks for processes. It expands each word of a list once more, and a process may be called `$(…)`: so only
/// names of harmless characters are offered.
const BASH_PROCESSES: &str = "\
_holdup_processes() {
    ( cd /proc && printf '%s\\n' [0-9]* )
    cat /proc/[0-9]*/comm 2>/dev/null | LC_ALL=C grep -xE '[A-Za-z0-9_.+@:-]+'
}
";

/// The script for `shell`.
pub fn script(shell: Shell) -> Vec<u8> {
    // The generator panics where it cannot write.
    let mut script = Vec::new();
    let offers = offers();
    let mut command = offers.iter().fold(Cli::command(), |all, (path, arg, names)| offer(all, path, arg, names));
    clap_complete::generate(shell, &mut command, "holdup", &mut script);
    let script = String::from_utf8_lossy(&script);
    let script = match shell {
        Shell::Bash => {
            format!("{BASH_PROCESSES}\n{}", script.replace(&format!("\"{PROCESSES}\""), "\"$(_holdup_processes)\""))
        }
        Shell::Zsh => script.replace(&format!("({PROCESSES})"), "_pids"),
        Shell::Fish => {
            script.replace(&format!("{PROCESSES}\\t''"), "(__fish_complete_pids)") + &fish_positions(&offers)
        }
        _ => script.into_owned(),
    };
    script.into_bytes()
}

/// A command, one of its arguments, and what is offered for it.
type Offer = (&'static [&'static str], &'static str, Vec<&'static str>);

fn offers() -> Vec<Offer> {
    let tables = TableKind::ALL.into_iter().map(TableKind::name);
    let questions: Vec<&str> = tables.chain(PRESETS.iter().map(|preset| preset.name)).collect();
    let mut columns: Vec<&str> = TableKind::ALL.into_iter().flat_map(TableKind::columns).map(|c| c.name).collect();
    columns.sort_unstable();
    columns.dedup();
    let experiments = holdup_lab::experiments::NAMES.to_vec();
    let documents: Vec<&str> = DOCUMENTS.iter().map(|document| document.name).collect();
    let mut offers: Vec<Offer> =
        ["by", "sum", "columns", "sort"].map(|arg| (&["table"][..], arg, columns.clone())).to_vec();
    offers.extend([
        (&["table"][..], "table", questions),
        (&["table"], "show", ["count", "share", "sum:", "mean:", "max:", "p99:", "share:"].to_vec()),
        (&["lab", "run"], "experiments", experiments),
        (&["check"], "only", holdup_lab::check::names()),
        (&["schema"], "document", documents),
        (&["record"], "pid", vec![PROCESSES]),
        (&["explain"], "pid", vec![PROCESSES]),
    ]);
    offers
}

/// The lines for arguments that have no name of their own, which the generator for fish leaves out.
fn fish_positions(offers: &[Offer]) -> String {
    let all = Cli::command();
    let find = |path: &[&str]| path.iter().try_fold(&all, |command, name| command.find_subcommand(name)).cloned();
    let is_position = |(path, arg, _): &&Offer| {
        find(path).is_some_and(|c| c.get_positionals().any(|position| position.get_id() == arg))
    };
    let line = |(path, _, names): &Offer| {
        let below: Vec<String> =
            path[1..].iter().map(|name| format!("; and __fish_seen_subcommand_from {name}")).collect();
        let (command, below, names) = (path[0], below.concat(), names.join(" "));
        format!("complete -c holdup -n \"__fish_holdup_using_subcommand {command}{below}\" -a \"{names}\"\n")
    };
    offers.iter().filter(is_position).map(line).collect()
}

/// Offers `names` for an argument of the command at `path`.
fn offer(command: Command, path: &[&str], arg: &str, names: &[&str]) -> Command {
    match path {
        [] => {
            let parser = PossibleValuesParser::new(names.iter().map(|name| (*name).to_owned()));
            command.mut_arg(arg, |arg| arg.value_parser(parser))
        }
        [first, rest @ ..] => command.mut_subcommand(*first, |command| offer(command, rest, arg, names)),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn names_are_offered_in_every_shell_and_the_marker_in_none() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell)).expect("text");
            assert!(!script.is_empty());
            if matches!(shell, Shell::Bash | Shell::Zsh | Shell::Fish) {
                assert!(!script.contains(PROCESSES), "{shell}");
                for name in ["who-waits-longest", "hot-functions", "send-delay", "pressure", "lab-compare"] {
                    assert!(script.contains(name), "{shell} {name}");
                }
            }
        }
    }
}
