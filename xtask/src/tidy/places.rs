//! What may happen in one place only: printing, where nothing acts on the terminal, and the making of files, where no
//! planted link is followed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use regex::Regex;

use super::has_extension;

/// Something that has a place.
struct Rule {
    /// What it looks like in code.
    what: &'static str,
    /// Where it belongs.
    place: &'static str,
    /// Where else it may stand, and why.
    but: &'static [(&'static str, &'static str)],
}

const RULES: [Rule; 2] = [
    Rule {
        what: r"\be?println!|\be?print!|\banstream::|\banstyle::|\bio::stdout\(|\bio::stderr\(|(?:^|[^:.\w])std(?:out|err)\(\)",
        place: "crates/holdup/src/text/screen.rs",
        but: &[
            ("crates/holdup-load/src/script/printing.rs", "a script's own lines, cleaned there"),
            ("crates/holdup-record/src/said.rs", "the BPF library's log, for those who ask for it"),
        ],
    },
    Rule {
        what: r"\bFile::create|\bfs::write\(|\bOpenOptions\b|\bfs::rename\(|\bcreate_dir|\bfs::copy\(",
        place: "crates/holdup-base/src/output.rs",
        but: &[("crates/holdup-symbols/src/jit.rs", "it reads, and follows no link")],
    },
];

pub fn check(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let rules = compiled()?;
    let mut complaints = Vec::new();
    for file in files.iter().filter(|f| has_extension(f, &["rs"])) {
        let name = file.to_string_lossy();
        if is_product(&name) {
            let text = String::from_utf8_lossy(&fs::read(root.join(file))?).into_owned();
            complaints.extend(complaints_of(&rules, &name, &text));
        }
    }
    Ok(complaints)
}

fn compiled() -> Result<Vec<(Regex, &'static Rule)>> {
    RULES.iter().map(|rule| Ok((Regex::new(rule.what)?, rule))).collect()
}

/// Crates that only developers run.
const TOOLS: [&str; 2] = ["holdup-fuzz", "holdup-testing"];

/// Whether it is part of what users run: sources of the crates, but for tests in files of their own.
pub fn is_product(file: &str) -> bool {
    let mut parts = file.split('/');
    let is_crate = parts.next() == Some("crates") && parts.next().is_some_and(|name| !TOOLS.contains(&name));
    let is_source = is_crate && parts.next() == Some("src");
    is_source && !file.ends_with("_tests.rs") && !file.ends_with("/tests.rs")
}

/// The lines before the tests, which stand at the end of a file.
pub fn up_to_tests(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"))
}

fn complaints_of(rules: &[(Regex, &'static Rule)], file: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for (i, line) in up_to_tests(text).enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for (regex, rule) in rules {
            let excused = file == rule.place || rule.but.iter().any(|(place, _)| file == *place);
            if let Some(found) = regex.find(line).filter(|_| !excused) {
                complaints.push(format!("{file}:{}: `{}` belongs into {}", i + 1, found.as_str(), rule.place));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(file: &str, text: &str) -> usize {
        complaints_of(&compiled().unwrap(), file, text).len()
    }

    #[test]
    fn a_planted_line_is_found() {
        for line in [
            "    println!(\"{name}\");",
            "    let _ = eprint!(\"x\");",
            "    anstream::eprintln!(\"x\");",
            "    let mut out = std::io::stdout().lock();",
            "    writeln!(stdout(), \"x\")?;",
            "    writeln!(io::stderr(), \"x\")?;",
            "    let file = fs::File::create(path)?;",
            "    std::fs::write(path, text)?;",
            "    OpenOptions::new().append(true).open(path)?;",
            "    fs::create_dir_all(folder)?;",
            "    std::fs::rename(a, b)?;",
        ] {
            assert!(complaints("crates/holdup/src/commands/table.rs", line) > 0, "{line}");
            assert!(complaints("crates/holdup-lab/src/plot.rs", line) > 0, "{line}");
        }
    }

    #[test]
    fn each_has_its_place() {
        assert_eq!(complaints("crates/holdup/src/text/screen.rs", "io::stdout().lock()"), 0);
        assert_eq!(complaints("crates/holdup-base/src/output.rs", "std::fs::create_dir(path)"), 0);
        assert_eq!(complaints("crates/holdup-base/src/output.rs", "println!()"), 1);
        assert_eq!(
            complaints(
                "crates/holdup/src/a.rs",
                "// as println!() does\nwriteln!(screen::stdout())?;\nfs::write_all()"
            ),
            0
        );
        assert_eq!(complaints("crates/holdup/src/a.rs", "#[cfg(test)]\nmod tests {\n    fs::write(a, b);\n}"), 0);
    }

    #[test]
    fn tests_and_tools_are_free() {
        for file in ["crates/holdup/tests/cli.rs", "xtask/src/main.rs", "crates/holdup-spool/src/tests.rs"] {
            assert!(!is_product(file), "{file}");
        }
        assert!(is_product("crates/holdup/src/main.rs") && is_product("crates/holdup-sync/src/lib.rs"));
    }
}
