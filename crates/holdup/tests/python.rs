//! The examples of `docs/python.md`, run as they stand there, and the picture that its script draws.

mod convoy;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use holdup_testing::{Need, has};

const PAGE: &str = include_str!("../../../docs/python.md");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn python(args: &[&str], folder: &Path) -> Output {
    Command::new("python3").args(args).current_dir(folder).stdin(Stdio::null()).output().expect("Python starts")
}

/// Whether Python has these modules.
#[track_caller]
fn knows(modules: &str) -> bool {
    let o = Command::new("python3").args(["-c", &format!("import {modules}")]).output();
    has(Need::Other { name: &format!("Python with {modules}"), is_here: o.is_ok_and(|o| o.status.success()) })
}

fn holdup(args: &[&str], folder: &Path) -> Vec<u8> {
    let o = Command::new(env!("CARGO_BIN_EXE_holdup")).args(args).current_dir(folder).output().expect("starts");
    assert!(o.status.success(), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    o.stdout
}

/// What the page says there is.
fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("dir");
    holdup_trace::file::write(&convoy::convoy(true), &folder.path().join("build.holdup")).expect("write");
    holdup(&["export", "build.holdup", "--format", "parquet", "-o", "build"], folder.path());
    folder
}

fn blocks() -> Vec<&'static str> {
    let behind = PAGE.split("```python\n").skip(1);
    behind.map(|rest| rest.split("```").next().unwrap_or_default()).collect()
}

#[test]
fn the_examples_run_as_they_stand() {
    let blocks = blocks();
    assert!(blocks.len() >= 7);
    let folder = prepared();
    for module in ["pyarrow", "polars", "duckdb"] {
        let own: Vec<&&str> = blocks
            .iter()
            .filter(|block| {
                block.contains(&format!("{module} "))
                    || block.contains(&format!("{module}."))
                    || block.contains(&format!("{module}\n"))
            })
            .collect();
        assert!(!own.is_empty(), "{module}");
        if !knows("pyarrow.parquet, polars, duckdb") {
            return;
        }
        for block in own {
            let o = python(&["-c", block], folder.path());
            assert!(o.status.success(), "{block}\n{}", String::from_utf8_lossy(&o.stderr));
        }
    }
}

#[test]
fn the_picture_of_the_standstill_is_drawn() {
    if !knows("duckdb, matplotlib") {
        return;
    }
    let folder = prepared();
    let answer = holdup(&["explain", "build.holdup", "--json"], folder.path());
    std::fs::write(folder.path().join("build/explain.json"), &answer).expect("write");
    let script = root().join("docs/python/standstill.py");
    let o = python(&[&script.display().to_string(), "build", "standstill.png"], folder.path());
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    let picture = std::fs::read(folder.path().join("standstill.png")).expect("a picture");
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 10_000, "{}", picture.len());

    // CPU time by its query is what explain says.
    let sum = "import sys; sys.path.insert(0, sys.argv[1]); import standstill\n\
               seconds, cpus, _ = standstill.use_of_cpus('build', 50)\n\
               print(sum(cpus) * (seconds[1] - seconds[0]))";
    let o = python(&["-c", sum, &root().join("docs/python").display().to_string()], folder.path());
    let found: f64 = String::from_utf8_lossy(&o.stdout).trim().parse().expect("a number");
    let answer: serde_json::Value = serde_json::from_slice(&answer).expect("JSON");
    let cpu = &answer["cpu_seconds"];
    let meant: f64 = ["busy", "spin", "other"].iter().filter_map(|part| cpu[part].as_f64()).sum();
    assert!((found - meant).abs() < 0.01 * meant, "{found} {meant}");
}
