//! Defaults of options from a file: `$XDG_CONFIG_HOME/holdup.toml`, else `~/.config/holdup.toml`. The command line wins.
//!
//! ```toml
//! freq = 499              # for every command that has the option
//! color = "never"
//! [explain]               # for one command
//! top = 3
//! idle = ["epoll_wait"]
//! ```

use std::path::{Path, PathBuf};

use clap::{Arg, Command};
use holdup_base::near;
use holdup_base::trusted::{self, Settings as Found};
use toml::de::{DeTable, DeValue};

use crate::text::screen::{ColorChoice, say};

/// An option that may have a default in the file, its name within the program, and the commands that have it.
const OPTIONS: &[(&str, &str, &[&str])] = &[
    ("freq", "freq", &["record", "explain"]),
    ("buffer", "buffer", &["record", "explain"]),
    ("budget", "budget", &["record", "explain"]),
    ("min-wait", "min_wait", &["record", "explain"]),
    ("top", "top", &["explain", "chain", "diff", "table", "threads"]),
    ("idle", "idle", &["explain"]),
    ("work", "work", &["explain"]),
    ("sort", "sort", &["threads"]),
    ("format", "format", &["table"]),
];
/// What no option sets.
const COLOR: &str = "color";

/// What the file says.
#[derive(Debug, Default, PartialEq)]
pub struct Settings {
    color: Option<ColorChoice>,
    defaults: Vec<Given>,
}

/// The default of an option of one command.
#[derive(Debug, PartialEq)]
struct Given {
    command: &'static str,
    id: &'static str,
    values: Vec<String>,
}

/// The settings of this user; a sentence if there is something in them that cannot be.
pub fn read() -> Result<Settings, String> {
    let Some(path) = path() else { return Ok(Settings::default()) };
    match trusted::settings(&path) {
        Found::Absent => Ok(Settings::default()),
        Found::Refused(why) => {
            say!("holdup: note: {} is not read: {why}", path.display());
            Ok(Settings::default())
        }
        Found::Text(text) => parse(&text, &path),
    }
}

fn path() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("holdup.toml"))
}

impl Settings {
    /// The command line with these defaults. A section's own come last, so that they count.
    pub fn apply(&self, mut command: Command) -> Command {
        for Given { command: name, id, values } in &self.defaults {
            let values = values.clone();
            command = command.mut_subcommand(*name, |c| c.mut_arg(*id, |arg| arg.default_values(values)));
        }
        command
    }

    /// Colours as the file has them, where the environment says nothing.
    pub fn choose_color(&self) {
        let said = ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"].iter().any(|name| std::env::var_os(name).is_some());
        if let (Some(color), false) = (self.color, said) {
            color.write_global();
        }
    }
}

fn parse(text: &str, path: &Path) -> Result<Settings, String> {
    let at = |offset: usize, what: String| {
        let line = text.bytes().take(offset).filter(|&b| b == b'\n').count() + 1;
        format!("{}, line {line}: {what}", path.display())
    };
    let table = DeTable::parse(text).map_err(|e| {
        // Without the text itself: nobody is shown a file that they named by a link.
        at(e.span().map_or(0, |s| s.start), e.message().lines().next().unwrap_or("is not TOML").to_owned())
    })?;
    let mut settings = Settings::default();
    let mut sections = Vec::new();
    for (key, value) in table.get_ref() {
        match value.get_ref() {
            DeValue::Table(section) => sections.push((key, section)),
            found => settings.set(None, key.get_ref(), found).map_err(|what| at(key.span().start, what))?,
        }
    }
    for (name, section) in sections {
        let command = section_of(name.get_ref()).map_err(|what| at(name.span().start, what))?;
        for (key, value) in section {
            let set = settings.set(Some(command), key.get_ref(), value.get_ref());
            set.map_err(|what| at(key.span().start, what))?;
        }
    }
    Ok(settings)
}

/// The command that a section is about.
fn section_of(name: &str) -> Result<&'static str, String> {
    let mut commands: Vec<&str> = OPTIONS.iter().flat_map(|(_, _, commands)| commands.iter().copied()).collect();
    commands.sort_unstable();
    commands.dedup();
    let found = commands.iter().find(|command| **command == name);
    found.copied().ok_or_else(|| unknown("section", name, &commands))
}

fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let hint = near::hint(name, known.iter().copied());
    format!("there is no {what} {name:?}{hint}; there are {}", known.join(", "))
}

impl Settings {
    fn set(&mut self, section: Option<&'static str>, key: &str, value: &DeValue) -> Result<(), String> {
        let values = values(key, value)?;
        if key == COLOR && section.is_none() {
            self.color = Some(match values[0].as_str() {
                "auto" => ColorChoice::Auto,
                "always" => ColorChoice::Always,
                "never" => ColorChoice::Never,
                other => return Err(format!("color is {other:?}, and can be \"auto\", \"always\" or \"never\"")),
            });
            return Ok(());
        }
        let has = |commands: &[&str]| section.is_none_or(|section| commands.contains(&section));
        let Some((_, id, commands)) = OPTIONS.iter().find(|(name, _, commands)| *name == key && has(commands)) else {
            let names = OPTIONS.iter().filter(|(_, _, commands)| has(commands)).map(|(name, _, _)| *name);
            let names: Vec<&str> = names.chain(section.is_none().then_some(COLOR)).collect();
            return Err(unknown("setting", key, &names));
        };
        for command in commands.iter().filter(|command| section.is_none_or(|s| s == **command)) {
            check(command, id, key, &values)?;
            self.defaults.push(Given { command, id, values: values.clone() });
        }
        Ok(())
    }
}

/// A value as it would be written on the command line.
fn values(key: &str, value: &DeValue) -> Result<Vec<String>, String> {
    match value {
        DeValue::String(text) => Ok(vec![text.to_string()]),
        DeValue::Integer(number) if number.radix() == 10 => Ok(vec![number.as_str().replace('_', "")]),
        DeValue::Float(number) => Ok(vec![number.as_str().replace('_', "")]),
        DeValue::Array(list) => {
            let lists = ["idle", "work"];
            let text = |value: &toml::Spanned<DeValue>| match value.get_ref() {
                DeValue::String(text) if lists.contains(&key) => Ok(text.to_string()),
                _ => Err(format!("{key} cannot be such a list; lists are {}, of texts", lists.join(" and "))),
            };
            list.iter().map(text).collect()
        }
        _ => Err(format!("{key} has to be a number or a text in quotes")),
    }
}

/// Whether the command would take the value, asked of its own option.
fn check(command: &str, id: &str, key: &str, values: &[String]) -> Result<(), String> {
    let words = values.iter().map(|value| format!("--{key}={value}"));
    let words = std::iter::once("holdup".to_owned()).chain(words);
    match Command::new("holdup").arg(option(command, id)).try_get_matches_from(words) {
        Ok(_) => Ok(()),
        Err(error) => {
            let text = error.to_string();
            let what = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            Err(format!("{key}: {what}"))
        }
    }
}

fn option(command: &str, id: &str) -> Arg {
    let all = <super::Cli as clap::CommandFactory>::command();
    let found = all.find_subcommand(command).and_then(|c| c.get_arguments().find(|arg| arg.get_id() == id));
    found.cloned().expect("every option of the list is one of its commands")
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};

    use super::*;
    use crate::cli::{Cli, Command as Chosen};

    fn settings(text: &str) -> Result<Settings, String> {
        parse(text, Path::new("/home/u/.config/holdup.toml"))
    }

    fn chosen(text: &str, words: &[&str]) -> Chosen {
        let command = settings(text).expect("good settings").apply(Cli::command());
        let matches = command.try_get_matches_from([&["holdup"], words].concat()).expect("good words");
        Cli::from_arg_matches(&matches).expect("good words").command
    }

    #[test]
    fn every_option_of_the_list_is_one() {
        for (key, id, commands) in OPTIONS {
            for command in *commands {
                let arg = option(command, id);
                assert_eq!(arg.get_long(), Some(*key), "{command}");
                let long: Vec<String> = arg.get_default_values().iter().map(|v| v.to_string_lossy().into()).collect();
                assert_eq!(check(command, id, key, &long), Ok(()), "{command} {key}");
            }
        }
    }

    #[test]
    fn the_command_line_wins_then_the_section() {
        let text = "freq = 99\ntop = 5\nidle = ['a', 'b']\nmin-wait = '1ms'\n[explain]\ntop = 3\n";
        let Chosen::Explain(args) = chosen(text, &["explain", "x"]) else { panic!("explain") };
        assert_eq!((args.top, args.source.freq, args.source.min_wait.as_micros()), (3, Some(99), 1000));
        assert_eq!(args.idle, ["a", "b"]);
        let Chosen::Explain(args) = chosen(text, &["explain", "x", "--top", "9", "--idle", "c"]) else { panic!() };
        assert_eq!((args.top, args.idle), (9, vec!["c".to_owned()]));
        let Chosen::Threads(args) = chosen(text, &["threads", "x"]) else { panic!("threads") };
        assert_eq!(args.top, 5);
        let Chosen::Table(args) = chosen("format = 'csv'", &["table", "x", "waits", "--json"]) else { panic!("table") };
        assert!(args.json);
        // Defaults stand beside anything that may be given.
        chosen(text, &["record", "-a", "--ring", "3s"]);
    }

    #[test]
    fn what_cannot_be_is_a_sentence_with_its_line() {
        for (text, line, what) in [
            ("\nfrq = 1", 2, "there is no setting \"frq\" (did you mean freq?)"),
            ("freq = 99\n[explian]\ntop = 1", 2, "did you mean explain?"),
            ("[explain]\n\nsort = 'ran'", 3, "there is no setting \"sort\""),
            ("freq = 'often'", 1, "invalid value 'often'"),
            ("freq = 99999", 1, "99999"),
            ("min-wait = '3 weeks'", 1, "3 weeks"),
            ("color = 'blue'", 1, "\"never\""),
            ("color = true", 1, "number or a text"),
            ("top = [1]", 1, "lists are idle and work"),
            ("freq = 1\nfreq = 2", 2, ""),
            ("freq = \n", 1, ""),
            ("[explain]\ncolor = 'never'", 2, "there is no setting \"color\""),
        ] {
            let error = settings(text).expect_err(text);
            assert!(error.starts_with(&format!("/home/u/.config/holdup.toml, line {line}: ")), "{text}: {error}");
            assert!(error.contains(what) && error.lines().count() == 1, "{text}: {error}");
        }
        assert_eq!(settings("# nothing\n"), Ok(Settings::default()));
    }
}
