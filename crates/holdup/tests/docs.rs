//! The documents name no option and no command that is not there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::{Captures, Regex};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn documents() -> Vec<(String, String)> {
    let root = root();
    let in_docs = std::fs::read_dir(root.join("docs")).expect("docs").flatten().map(|e| e.path());
    let others = ["README.md", "SECURITY.md", "crates/holdup-sync/README.md"].map(|name| root.join(name));
    let paths = in_docs.chain(others).filter(|path| path.extension().is_some_and(|e| e == "md"));
    let read = |path: PathBuf| (path.display().to_string(), std::fs::read_to_string(&path).expect("text"));
    paths.map(read).collect()
}

/// The options and the commands below it that the help of a command names.
#[derive(Default)]
struct Help {
    options: BTreeSet<String>,
    commands: BTreeSet<String>,
}

#[derive(Default)]
struct Helps(BTreeMap<Vec<String>, Help>);

impl Helps {
    fn of(&mut self, command: &[String]) -> &Help {
        self.0.entry(command.to_vec()).or_insert_with(|| {
            let o = Command::new(env!("CARGO_BIN_EXE_holdup")).args(command).arg("--help").output().expect("it runs");
            let text = String::from_utf8_lossy(&o.stdout).into_owned();
            assert!(o.status.success() && !text.is_empty(), "{command:?}: {o:?}");
            let option = Regex::new(r"^ {2,6}(?:(-\w)(?:, | |$))?(--[\w-]+)?").expect("a pattern");
            let mut help = Help::default();
            let mut among_commands = false;
            for line in text.lines() {
                if !line.starts_with(' ') {
                    among_commands = line == "Commands:";
                } else if among_commands {
                    // A longer description goes on further right.
                    let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '));
                    help.commands.extend(name.and_then(|rest| rest.split_whitespace().next()).map(str::to_owned));
                } else if let Some(found) = option.captures(line) {
                    help.options.extend(found.iter().skip(1).flatten().map(|m| m.as_str().to_owned()));
                }
            }
            help
        })
    }

    /// All options of all commands.
    fn all(&mut self) -> BTreeSet<String> {
        let mut waiting: Vec<Vec<String>> = vec![Vec::new()];
        let mut all = BTreeSet::new();
        while let Some(command) = waiting.pop() {
            let help = self.of(&command);
            all.extend(help.options.iter().cloned());
            let below = help.commands.iter().filter(|name| *name != "help");
            waiting.extend(below.map(|name| [command.clone(), vec![name.clone()]].concat()));
        }
        all
    }
}

/// Calls of holdup in the code of a document: its words behind `holdup`, up to the command that is recorded.
fn calls(text: &str) -> Vec<Vec<String>> {
    let call = Regex::new(r"(?m)(?:^|`)(?:sudo )?(?:\S*/)?holdup ([a-z][^`\n]*)").expect("a pattern");
    let mut calls = Vec::new();
    for found in call.captures_iter(text) {
        let words = found[1].split_whitespace().map(|w| w.trim_matches(['\'', '"', ',', '.', ';', ':', '[', ']']));
        // A comment, a pipe or the command to record ends it.
        let own = words.take_while(|w| !["--", "#", "|", "&&", ">", "→"].contains(w) && !w.starts_with('#'));
        calls.push(own.map(str::to_owned).collect());
    }
    calls
}

fn is_option(word: &str) -> bool {
    word.starts_with('-') && word.chars().nth(1).is_some_and(|c| c == '-' || c.is_ascii_alphabetic())
}

#[test]
fn options_in_the_documents_are_there() {
    let mut helps = Helps::default();
    let mut seen = 0;
    let mut wrong = Vec::new();
    for (path, text) in documents() {
        for words in calls(&text) {
            let mut command: Vec<String> = Vec::new();
            for word in &words {
                if !helps.of(&command).commands.contains(word) {
                    break;
                }
                command.push(word.clone());
            }
            if command.is_empty() {
                // Prose: "holdup explains".
                continue;
            }
            for option in words.iter().filter(|word| is_option(word)) {
                let name = option.split('=').next().unwrap_or(option);
                seen += 1;
                let here = &helps.of(&command).options;
                // A value that begins with a minus, as in `--sort -wait`.
                let is_value = !name.starts_with("--") && name.len() > 2;
                if !here.contains(name) && !is_value {
                    wrong.push(format!("{path}: holdup {}: there is no {name}", words.join(" ")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 30, "{seen} options were looked at");
}

/// Options of other programs that the documents speak of.
const FOREIGN: [&str; 6] =
    ["--features", "--cfg", "--no-default-features", "--release", "--call-graph", "--perf-basic-prof"];

#[test]
fn options_in_prose_are_those_of_some_command() {
    let all = Helps::default().all();
    let span = Regex::new(r"`(--[a-z][\w-]*\w)").expect("a pattern");
    // Tables that compare have another program's options in their first column.
    let others = Regex::new(r"(?m)^\| there \| here \|\n(?:\|.*\n)+").expect("a pattern");
    let first_cell = Regex::new(r"(?m)^\| [^|]+\|").expect("a pattern");
    let mut wrong = Vec::new();
    for (path, text) in documents() {
        let text = others.replace_all(&text, |table: &Captures| first_cell.replace_all(&table[0], "|").into_owned());
        let named = span.captures_iter(&text).map(|found| found[1].to_owned());
        let unknown = named.filter(|name| !all.contains(name) && !FOREIGN.contains(&name.as_str()));
        wrong.extend(unknown.map(|name| format!("{path}: {name}")));
    }
    assert!(all.len() > 60, "{all:?}");
    assert!(wrong.is_empty(), "no command has these:\n{}", wrong.join("\n"));
}
