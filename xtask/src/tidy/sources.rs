//! Rules on the text of source files: where `unsafe` may stand, how long files get, what must not be left behind.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use regex::Regex;

use super::has_extension;

/// Longest source file, in lines.
const BUDGET: usize = 400;
/// A line that starts so excuses a longer file.
const EXCUSE: &str = "// Long because";
/// The only crates with `unsafe`.
const UNSAFE_IN: &[&str] = &["crates/holdup-record/", "crates/holdup-sync/", "crates/holdup-lab/"];
/// How many lines above `unsafe` its reason may stand.
const REASON_WITHIN: usize = 8;
/// What must not be left behind; split so that this file does not contain it.
const LEFTOVERS: &[&str] = &[concat!("to", "do!("), concat!("un", "implemented!("), concat!("FIX", "ME")];

pub fn check(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let rules = Rules::new()?;
    let mut complaints = Vec::new();
    for file in files.iter().filter(|f| has_extension(f, &["rs", "c", "h", "cpp", "ts", "sh"])) {
        let text = String::from_utf8_lossy(&fs::read(root.join(file))?).into_owned();
        complaints.extend(rules.check(&file.to_string_lossy(), &text));
    }
    Ok(complaints)
}

struct Rules {
    word_unsafe: Regex,
    string_or_comment: Regex,
}

impl Rules {
    fn new() -> Result<Self> {
        Ok(Rules { word_unsafe: Regex::new(r"\bunsafe\b")?, string_or_comment: Regex::new(r#""(\\.|[^"\\])*"|//.*"#)? })
    }

    fn check(&self, file: &str, text: &str) -> Vec<String> {
        let lines: Vec<&str> = text.lines().collect();
        let mut complaints = Vec::new();
        if lines.len() > BUDGET && !is_excused(&lines) {
            let n = lines.len();
            complaints.push(format!("{file}: {n} lines, budget {BUDGET}: split it, or say `{EXCUSE} …`"));
        }
        for (i, line) in lines.iter().enumerate() {
            let at = format!("{file}:{}", i + 1);
            if let Some(left) = LEFTOVERS.iter().find(|l| line.contains(**l)) {
                complaints.push(format!("{at}: `{left}` is left behind"));
            }
            let code = self.string_or_comment.replace_all(line, "");
            if !file.ends_with(".rs") || !self.word_unsafe.is_match(&code) {
                continue;
            }
            if !UNSAFE_IN.iter().any(|c| file.starts_with(c)) {
                complaints.push(format!("{at}: unsafe outside of {}", UNSAFE_IN.join(", ")));
            } else if !has_reason(&lines, i) {
                complaints.push(format!("{at}: unsafe without a `SAFETY:` comment above it"));
            }
        }
        complaints
    }
}

fn is_excused(lines: &[&str]) -> bool {
    lines.iter().any(|l| l.trim_start().starts_with(EXCUSE))
}

fn has_reason(lines: &[&str], at: usize) -> bool {
    lines[at.saturating_sub(REASON_WITHIN)..=at].iter().any(|l| l.contains("SAFETY:") || l.contains("# Safety"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(file: &str, text: &str) -> usize {
        Rules::new().unwrap().check(file, text).len()
    }

    #[test]
    fn unsafe_has_its_place_and_its_reason() {
        let block = "let x = unsafe { *p };";
        assert_eq!(complaints("crates/holdup-trace/src/a.rs", block), 1);
        assert_eq!(complaints("crates/holdup-record/src/a.rs", block), 1);
        assert_eq!(complaints("crates/holdup-record/src/a.rs", &format!("// SAFETY: p is valid.\n{block}")), 0);
        assert_eq!(complaints("crates/holdup-trace/src/a.rs", "// unsafe\nlet s = \"unsafe\"; // unsafe_code"), 0);
        assert_eq!(complaints("crates/holdup-trace/src/a.rs", "#![forbid(unsafe_code)]"), 0);
    }

    #[test]
    fn long_files_say_why() {
        let long = "\n".repeat(BUDGET + 1);
        assert_eq!(complaints("a.rs", &long), 1);
        assert_eq!(complaints("a.rs", &format!("{EXCUSE} it is a table.\n{long}")), 0);
    }

    #[test]
    fn nothing_is_left_behind() {
        assert_eq!(complaints("a.rs", &format!("{})", LEFTOVERS[0])), 1);
        assert_eq!(complaints("a.c", &format!("/* {} later */", LEFTOVERS[2])), 1);
    }
}
