//! What to say to who writes holdup's commands as those of perf, or forgets the `--`.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, CommandFactory, Parser};
use holdup_base::text::clean;

use super::Cli;
use crate::text::screen::say;

/// The commands that start others.
const STARTERS: [&str; 2] = ["record", "explain"];

/// What stands for an option of perf.
enum Instead {
    /// Nothing: it is so anyway.
    Nothing,
    /// This option, with the same value.
    Option(&'static str),
}

/// An option of `perf record`: its names, whether it has a value, what stands for it, and why.
struct Foreign {
    names: &'static [&'static str],
    has_value: bool,
    instead: Instead,
    why: &'static str,
}

const FOREIGN: &[Foreign] = &[
    Foreign {
        names: &["-g"],
        has_value: false,
        instead: Instead::Nothing,
        why: "holdup always takes call stacks, of waits as of samples",
    },
    Foreign {
        names: &["--call-graph"],
        has_value: true,
        instead: Instead::Nothing,
        why: "holdup always takes call stacks, and unwinds them by debug information and frame pointers, whichever there is",
    },
    Foreign {
        names: &["-F"],
        has_value: true,
        instead: Instead::Option("--freq"),
        why: "samples per second and CPU are --freq; at most 999 if not given",
    },
    Foreign {
        names: &["-c", "--count"],
        has_value: true,
        instead: Instead::Nothing,
        why: "holdup samples by time (--freq HZ), and records every switch and wake-up",
    },
    Foreign {
        names: &["-e", "--event"],
        has_value: true,
        instead: Instead::Nothing,
        why: "there are no events to choose: holdup records every switch and wake-up, waits with their stacks, and CPU samples",
    },
    Foreign {
        names: &["-t", "--tid"],
        has_value: true,
        instead: Instead::Option("--pid"),
        why: "--pid takes the number of a thread, too, and means its process",
    },
    Foreign {
        names: &["-G"],
        has_value: true,
        instead: Instead::Option("--cgroup"),
        why: "a control group is --cgroup",
    },
    Foreign {
        names: &["-C", "--cpu"],
        has_value: true,
        instead: Instead::Nothing,
        why: "all CPUs are recorded; choose later, as in `holdup table TRACE switches --where 'cpu == 0'`",
    },
    Foreign {
        names: &["-m", "--mmap-pages"],
        has_value: true,
        instead: Instead::Nothing,
        why: "the buffer of each CPU is --buffer MB; 24 if not given",
    },
];

/// Says what is wrong with the command line, and what to write instead. The exit code is 2, or 0 for help.
pub fn refuse(error: &clap::Error, words: &[OsString]) -> ExitCode {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    match instead(error, &words) {
        Some(lines) => lines.iter().for_each(|line| say!("{line}")),
        None => print(error, &words),
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Prints help, or what is wrong with the arguments. Errors repeat them, and an argument may come from anywhere: they are
/// read again as they may be shown, which leaves no style in the text but those of the reader itself.
fn print(error: &clap::Error, words: &[String]) {
    // Help repeats no argument, and knows the defaults of the file of settings.
    if !error.use_stderr() {
        return drop(error.print());
    }
    match Cli::try_parse_from(words.iter().map(|word| clean(word).into_owned())) {
        // A reader that went away is no failure here.
        Err(shown) => drop(shown.print()),
        Ok(_) => say!("{}", error.render().to_string().trim_end()),
    }
}

/// Whether this can be run: a path of a program, or the name of one that the shell would find.
pub fn is_program(path: &Path) -> bool {
    let runs = |path: &Path| {
        let may_run = path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
        // There are file systems on which every file may.
        may_run && is_code(path)
    };
    if runs(path) {
        return true;
    }
    let is_name = path.components().count() == 1 && !path.exists();
    let folders = std::env::var_os("PATH").unwrap_or_default();
    is_name && std::env::split_paths(&folders).any(|folder| runs(&folder.join(path)))
}

fn is_code(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4).read_to_end(&mut head));
    read.is_ok() && (head.starts_with(b"#!") || head == b"\x7fELF")
}

fn instead(error: &clap::Error, words: &[String]) -> Option<Vec<String>> {
    let command = words.get(1).filter(|word| STARTERS.contains(&word.as_str()))?;
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return None };
    let end = words.iter().position(|word| word == "--");
    let own = &words[2..end.unwrap_or(words.len())];
    let at = own.iter().position(|word| word == unknown || (word.starts_with(unknown) && unknown.starts_with('-')))?;
    // With a `--` all before it is meant for holdup.
    let start = if end.is_some() { own.len() } else { command_in(command, own) };
    let (kept, mut lines) = translate(&own[..start]);
    if at < start && foreign(&own[at]).is_none() {
        return None;
    }
    if start < own.len() {
        lines.push("holdup: the command to record stands behind `--`".to_owned());
    }
    let rest = end.map_or(&own[start..], |end| &words[end + 1..]);
    lines.push(format!("holdup: did you mean: {}", line(command, &kept, rest)));
    Some(lines)
}

/// Where the command to record begins among the words, if it lacks its `--`; their number if there is none.
fn command_in(command: &str, own: &[String]) -> usize {
    let mut at = 0;
    while let Some(word) = own.get(at) {
        let is_option = word.starts_with('-') && word != "-";
        if !is_option && (command == "record" || is_program(Path::new(word))) {
            return at;
        }
        let of_perf = foreign(word).is_some_and(|(option, within)| option.has_value && within.is_none());
        at += if is_option && (of_perf || takes_value(command, word)) { 2 } else { 1 };
    }
    own.len()
}

fn takes_value(command: &str, word: &str) -> bool {
    let all = Cli::command();
    let mut args = all.find_subcommand(command).into_iter().flat_map(clap::Command::get_arguments);
    args.any(|arg| {
        let named = arg.get_long().is_some_and(|long| word == format!("--{long}"))
            || arg.get_short().is_some_and(|short| word == format!("-{short}"));
        named && matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
    })
}

/// The option of perf that a word is, and the value within that word.
fn foreign(word: &str) -> Option<(&'static Foreign, Option<&str>)> {
    FOREIGN.iter().find_map(|option| {
        option.names.iter().find_map(|name| match word.strip_prefix(name)? {
            "" => Some((option, None)),
            rest if name.starts_with("--") => Some((option, Some(rest.strip_prefix('=')?))),
            rest if option.has_value => Some((option, Some(rest))),
            _ => None,
        })
    })
}

/// Words of holdup for words of perf, and a line for each that is another's.
fn translate(words: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut kept, mut lines) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some((option, within)) = foreign(word) else {
            kept.push(word.clone());
            continue;
        };
        let value = within.map(str::to_owned).or_else(|| option.has_value.then(|| words.next().cloned()).flatten());
        let shown = match (within, &value) {
            (None, Some(value)) => format!("{word} {value}"),
            _ => word.clone(),
        };
        lines.push(format!("holdup: {shown} is an option of perf: {}", option.why));
        if let (Instead::Option(name), Some(value)) = (&option.instead, value) {
            kept.extend([(*name).to_owned(), value]);
        }
    }
    (kept, lines)
}

/// A command line to copy.
fn line(command: &str, own: &[String], rest: &[String]) -> String {
    let dashes = (!rest.is_empty()).then_some("--".to_owned());
    let words = own.iter().cloned().chain(dashes).chain(rest.iter().cloned());
    let quoted = words.map(|word| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
    });
    ["holdup".to_owned(), command.to_owned()].into_iter().chain(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &[&str]) -> Option<Vec<String>> {
        let words: Vec<String> = ["holdup"].iter().chain(words).map(|w| (*w).to_owned()).collect();
        let error = Cli::command().try_get_matches_from(&words).expect_err("bad words");
        assert_eq!(error.exit_code(), 2);
        instead(&error, &words)
    }

    fn last(words: &[&str]) -> String {
        said(words).unwrap_or_else(|| panic!("nothing is said of {words:?}")).pop().unwrap_or_default()
    }

    #[test]
    fn options_of_perf_are_answered() {
        for (words, line) in [
            (&["record", "-g", "--", "ls"][..], "holdup record -- ls"),
            (&["record", "-F", "99", "-g", "--", "ls", "-g"], "holdup record --freq 99 -- ls -g"),
            (&["record", "-F99", "-a"], "holdup record --freq 99 -a"),
            (&["record", "--call-graph", "dwarf", "--", "a b"], "holdup record -- 'a b'"),
            (&["record", "-o", "x", "--call-graph=lbr", "-p", "7"], "holdup record -o x -p 7"),
            (&["explain", "-e", "cycles", "-c", "1000", "--", "ls"], "holdup explain -- ls"),
            (&["record", "-t", "12"], "holdup record --pid 12"),
            (&["record", "-F"], "holdup record"),
        ] {
            assert_eq!(last(words), format!("holdup: did you mean: {line}"), "{words:?}");
        }
        assert_eq!(said(&["record", "--no-such-option", "--", "ls"]), None);
        assert_eq!(said(&["table", "x", "waits", "-g"]), None);
    }

    #[test]
    fn a_command_without_its_dashes_is_found() {
        for (words, line) in [
            (&["record", "ls"][..], "holdup record -- ls"),
            (&["record", "-o", "x", "ls", "-l", "a b"], "holdup record -o x -- ls -l 'a b'"),
            (&["record", "-F", "9", "python3", "-c", "x"], "holdup record --freq 9 -- python3 -c x"),
            (&["explain", "sh", "-c", "exit 1"], "holdup explain -- sh -c 'exit 1'"),
            (&["explain", "--top", "3", "sleep", "5"], "holdup explain --top 3 -- sleep 5"),
        ] {
            assert_eq!(last(words), format!("holdup: did you mean: {line}"), "{words:?}");
        }
        assert_eq!(said(&["explain", "x.holdup", "y.holdup"]), None);
        assert_eq!(said(&["explain", "x", "--keep", "sh", "-z"]), None);
    }
}
