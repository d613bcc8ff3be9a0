//! What `make demo` has built, `make build` uses: crates of others that are in both have the same features in both.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

/// Packages by name and version, with each set of features that one is built with.
type Built = BTreeMap<String, BTreeSet<String>>;

pub fn check(root: &Path) -> Result<Vec<String>> {
    let (demo, build) = (built(root, &["--no-default-features"])?, built(root, &[])?);
    Ok(complaints(&demo, &build))
}

fn built(root: &Path, options: &[&str]) -> Result<Built> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = ["tree", "--package", "holdup", "--edges", "normal,build", "--prefix", "none", "--no-dedupe"];
    let output =
        Command::new(cargo).args(tree).args(["--format", "{p}|{f}"]).args(options).current_dir(root).output()?;
    ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(packages(&String::from_utf8_lossy(&output.stdout)))
}

fn packages(tree: &str) -> Built {
    let mut built = Built::new();
    for line in tree.lines() {
        let Some((package, features)) = line.split_once('|') else { continue };
        let mut words = package.split_whitespace();
        let (name, version) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        // Crates of this repository differ by what they are: with `load` and without.
        if !words.any(|word| word.starts_with("(/")) {
            let features = features.trim_end_matches(" (*)").trim();
            built.entry(format!("{name} {version}")).or_default().insert(features.to_owned());
        }
    }
    built
}

fn complaints(demo: &Built, build: &Built) -> Vec<String> {
    let shared = demo.iter().filter_map(|(package, features)| Some((package, features, build.get(package)?)));
    let twice = shared.filter(|(_, demo, build)| !demo.is_subset(build));
    twice
        .map(|(package, demo, build)| {
            format!(
                "{package} is built twice, by `make demo` with the features {demo:?} and by `make build` with {build:?}: ask \
                 for the same in crates/holdup/Cargo.toml"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_features_are_seen_and_own_crates_left_out() {
        let demo =
            packages("serde v1.0.1|default\nsyn v2.0.1 (proc-macro)|full (*)\nholdup v0.1.0 (/here)|\nonly v1.0.0|a\n");
        let same = packages("serde v1.0.1|default\nserde v1.0.1|std\nsyn v2.0.1|full\nholdup v0.1.0 (/here)|script\n");
        assert_eq!(complaints(&demo, &same), [""; 0]);
        let other = packages("serde v1.0.1|default,rc\nsyn v2.0.1|full\n");
        let found = complaints(&demo, &other);
        assert!(found.len() == 1 && found[0].starts_with("serde v1.0.1 is built twice"), "{found:?}");
    }
}
