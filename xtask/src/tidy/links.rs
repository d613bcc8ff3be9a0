//! Links of the documentation lead somewhere.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use regex::Regex;

use super::has_extension;

pub fn check(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let link = Regex::new(r"\]\(([^)\s]+)\)")?;
    let mut complaints = Vec::new();
    for file in files.iter().filter(|f| has_extension(f, &["md"])) {
        let text = fs::read_to_string(root.join(file))?;
        let prose = without_code(&text);
        for target in link.captures_iter(&prose).map(|c| c[1].to_owned()) {
            if !target.contains("://") && !target.starts_with("mailto:") && !leads_somewhere(root, file, &target) {
                complaints.push(format!("{}: the link to {target} leads nowhere", file.display()));
            }
        }
    }
    Ok(complaints)
}

fn leads_somewhere(root: &Path, from: &Path, target: &str) -> bool {
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let file = match path {
        "" => root.join(from),
        _ => root.join(from).parent().unwrap_or(root).join(path),
    };
    if heading.is_empty() {
        return file.exists();
    }
    let Ok(text) = fs::read_to_string(file) else { return false };
    let is_heading = |line: &str| line.starts_with('#') && anchor(line.trim_start_matches('#')) == heading;
    without_code(&text).lines().any(is_heading)
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The text without fenced code.
fn without_code(text: &str) -> String {
    let fences = text.split("```");
    fences.step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors() {
        assert_eq!(anchor(" How to add a scenario"), "how-to-add-a-scenario");
        assert_eq!(anchor(" Idle by design?"), "idle-by-design");
    }

    #[test]
    fn code_has_no_links() {
        assert_eq!(without_code("a ```x[0](y)``` b"), "a  b");
    }
}
