//! Words do not steer the program: what kind a thing is of is an enum, and its text stands where it is printed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use regex::Regex;

use super::has_extension;
use super::places::{is_product, up_to_tests};

/// Names of what has a few known values.
const NAMES: &str = "(?:kind|role|law|family|verdict|confidence|state|status)";
/// What turns such a value into text.
const TEXT: &str = r"(?:\.(?:name|as_str|to_string|as_ref)\(\))?";

pub fn check(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let rules = Rules::new()?;
    let mut complaints = Vec::new();
    for file in files.iter().filter(|f| has_extension(f, &["rs"])) {
        let name = file.to_string_lossy();
        if is_product(&name) || name.starts_with("xtask/src/") {
            let text = String::from_utf8_lossy(&fs::read(root.join(file))?).into_owned();
            complaints.extend(rules.check(&name, &text));
        }
    }
    Ok(complaints)
}

struct Rules {
    /// A kind that is a text.
    declared: Regex,
    /// A kind that is compared with one.
    compared: Regex,
    /// The beginning of a `match` over a kind.
    matched: Regex,
}

impl Rules {
    fn new() -> Result<Self> {
        let value = format!(r"\.{NAMES}\b{TEXT}");
        let compared = format!(r#"{value} *[!=]= *"|"[^"]*" *[!=]= *[\w.]*{value}|matches!\([^"]*{value}, *""#);
        Ok(Rules {
            declared: Regex::new(&format!(r"\b{NAMES}: (?:Option<)?&'static str\b"))?,
            compared: Regex::new(&compared)?,
            matched: Regex::new(&format!(r"\bmatch [^{{]*{value} \{{$"))?,
        })
    }

    fn check(&self, file: &str, text: &str) -> Vec<String> {
        let lines: Vec<&str> = up_to_tests(text).collect();
        let mut complaints = Vec::new();
        for (i, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            let at = format!("{file}:{}", i + 1);
            if self.declared.is_match(line) {
                complaints.push(format!("{at}: a kind that is a text: make it an enum (holdup_base::named!)"));
            }
            if self.compared.is_match(line) || (self.matched.is_match(line) && has_text_arm(&lines[i..])) {
                complaints.push(format!("{at}: a kind is compared as text: compare it with a variant of its enum"));
            }
        }
        complaints
    }
}

/// Whether an arm of the `match` that begins in the first line is a text.
fn has_text_arm(lines: &[&str]) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let Some((first, rest)) = lines.split_first() else { return false };
    let body = rest.iter().take_while(|line| line.trim().is_empty() || indent(line) > indent(first));
    let mut arms = body.filter(|line| indent(line) == indent(first) + 4);
    arms.any(|arm| arm.trim_start().starts_with('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> usize {
        Rules::new().unwrap().check("crates/holdup/src/a.rs", text).len()
    }

    #[test]
    fn a_planted_text_is_found() {
        for text in [
            "    pub kind: &'static str,",
            "    role: Option<&'static str>,",
            "fn cause(law: &'static str, place: &Place) {",
            "    if f.kind == \"convoy\" {",
            "    let is_idle = |f: &Finding| f.kind != \"idle-by-design\";",
            "    if \"cause\" == change.role {",
            "    if finding.kind.name() == \"convoy\" {",
            "    if matches!(key.family, \"disk\" | \"sleep\") {",
            "    if matches!(self.verdict.as_str(), \"scales\") {",
            "    match f.kind {\n        \"disk\" => 1,\n        _ => 0,\n    }",
            "    let verb = match f.kind.name() {\n        // Why.\n        _ if slow => 2,\n\n        \"disk\" => 1,\n        _ => 0,\n    };",
        ] {
            assert_eq!(complaints(text), 1, "{text}");
        }
    }

    #[test]
    fn enums_and_what_is_printed_pass() {
        for text in [
            "    pub kind: FindingKind,\n    pub name: &'static str,",
            "    if f.kind == FindingKind::Convoy {",
            "    // As f.kind == \"convoy\" was.",
            "    let word = match f.kind {\n        Kind::Disk => \"disk\",\n        _ => \"other\",\n    };",
            "    match f.kind {\n        Kind::Disk => match name {\n            \"sda\" => 1,\n            _ => 2,\n        },\n        _ => 0,\n    }",
            "    writeln!(out, \"{}: {}\", f.kind, \"x\")?;",
            "#[cfg(test)]\nmod tests {\n    assert!(f.kind.name() == \"convoy\");\n}",
        ] {
            assert_eq!(complaints(text), 0, "{text}");
        }
    }
}
