//! Crate arrows point only downwards.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// What tests of any crate may use.
const TESTING: &str = "holdup-testing";

/// What tests of these crates may use besides: traces that are made, and readers of what they write.
const TESTS_MAY_USE: &[(&str, &[&str])] = &[
    ("holdup-server", &["holdup-synth"]),
    ("holdup-fleet", &["holdup-analysis", "holdup-synth", "holdup-trace"]),
    ("holdup-view", &["holdup-synth"]),
    ("holdup-report", &["holdup-synth"]),
    ("holdup-export", &["holdup-import", "holdup-synth"]),
    ("holdup-analysis", &["holdup-import", "holdup-synth"]),
];

/// Which crates of the workspace each may use. The binary may use all.
const MAY_USE: &[(&str, &[&str])] = &[
    ("holdup-server", &["holdup-analysis", "holdup-base", "holdup-trace", "holdup-view"]),
    ("holdup-view", &["holdup-analysis", "holdup-base", "holdup-disasm", "holdup-trace"]),
    // The browser's side of what the server does here.
    ("holdup-wasm", &["holdup-import", "holdup-trace", "holdup-view"]),
    ("holdup-report", &["holdup-analysis", "holdup-trace"]),
    ("holdup-export", &["holdup-analysis", "holdup-base", "holdup-trace"]),
    // What a data set holds, the export says; it is asked without a trace.
    ("holdup-fleet", &["holdup-base", "holdup-export"]),
    ("holdup-mcp", &["holdup-analysis", "holdup-base", "holdup-trace"]),
    ("holdup-analysis", &["holdup-base", "holdup-trace"]),
    ("holdup-synth", &["holdup-base", "holdup-trace"]),
    ("holdup-record", &["holdup-base", "holdup-runtime", "holdup-spool", "holdup-trace"]),
    ("holdup-runtime", &["holdup-symbols", "holdup-trace"]),
    ("holdup-spool", &["holdup-base", "holdup-trace"]),
    ("holdup-import", &["holdup-base", "holdup-trace"]),
    ("holdup-symbols", &["holdup-base", "holdup-disasm", "holdup-trace"]),
    ("holdup-trace", &["holdup-base"]),
    // These know no traces.
    ("holdup-lab", &["holdup-base", "holdup-plot", "holdup-sync"]),
    ("holdup-load", &["holdup-base", "holdup-plot"]),
    ("holdup-plot", &["holdup-base"]),
    ("holdup-base", &[]),
    ("holdup-disasm", &[]),
    ("holdup-sync", &[]),
    (TESTING, &[]),
    // For developers alone.
    ("holdup-fuzz", &["holdup-import", "holdup-spool", "holdup-symbols", TESTING, "holdup-trace"]),
    // The bench of the group-by kernel calls it; kinds and perf's options are told once.
    ("xtask", &["holdup-analysis", "holdup-base", "holdup-export", "holdup-synth", "holdup-trace"]),
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// Set for crates of this repository.
    path: Option<PathBuf>,
    /// `dev` for what tests alone use.
    kind: Option<String>,
}

pub fn check(root: &Path) -> Result<Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["metadata", "--format-version", "1", "--no-deps"];
    let output = Command::new(cargo).args(args).current_dir(root).output()?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    Ok(metadata.packages.iter().flat_map(complaints).collect())
}

fn complaints(package: &Package) -> Vec<String> {
    let name = &package.name;
    if name == "holdup" {
        return Vec::new();
    }
    let Some((_, may_use)) = MAY_USE.iter().find(|(of, _)| of == name) else {
        return vec![format!("crate {name} has no place in the map of xtask/src/tidy/arrows.rs: give it one")];
    };
    let by_tests = TESTS_MAY_USE.iter().find(|(of, _)| of == name).map_or(&[][..], |(_, uses)| uses);
    let of_tests =
        |d: &Dependency| d.kind.as_deref() == Some("dev") && (d.name == TESTING || by_tests.contains(&d.name.as_str()));
    let inner = package.dependencies.iter().filter(|d| d.path.is_some() && !of_tests(d));
    let wrong = inner.filter(|d| !may_use.contains(&d.name.as_str()));
    wrong.map(|d| format!("crate {name} must not depend on {}: see ARCHITECTURE.md", d.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, uses: &str) -> Package {
        let dependency = Dependency { name: uses.to_owned(), path: Some(PathBuf::new()), kind: None };
        Package { name: name.to_owned(), dependencies: vec![dependency] }
    }

    #[test]
    fn arrows_point_downwards() {
        assert!(complaints(&package("holdup", "holdup-record")).is_empty());
        assert!(complaints(&package("holdup-analysis", "holdup-trace")).is_empty());
        assert_eq!(complaints(&package("holdup-trace", "holdup-analysis")).len(), 1);
        assert_eq!(complaints(&package("holdup-analysis", "holdup-import")).len(), 1);
        assert_eq!(complaints(&package("holdup-news", "holdup-trace")).len(), 1);
        let mut tested = package("holdup-sync", TESTING);
        assert_eq!(complaints(&tested).len(), 1);
        tested.dependencies[0].kind = Some("dev".into());
        assert!(complaints(&tested).is_empty());
        let mut tested = package("holdup-analysis", "holdup-import");
        tested.dependencies[0].kind = Some("dev".into());
        assert!(complaints(&tested).is_empty());
    }
}
