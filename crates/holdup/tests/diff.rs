//! `holdup diff` on committed perf.data files: no privilege needed.

use std::path::PathBuf;
use std::process::{Command, Output};

fn fixture(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../holdup-import/tests/fixtures");
    folder.join(name).display().to_string()
}

fn holdup(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_holdup")).arg("diff").args(args).output().expect("holdup runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_trace_does_not_differ_from_itself() {
    let trace = fixture("task.perf.data");
    let output = holdup(&[&trace, "--vs", &trace, "--json", "--fail-on", "1%"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(answer["schema"], "holdup.diff/1");
    assert_eq!(answer["slower"], 1.0);
    assert_eq!(answer["changes"].as_array().map(Vec::len), Some(0));
    assert_eq!(answer["before"]["runs"], 1);
}

#[test]
fn half_the_work_in_the_same_time_is_a_regression() {
    let trace = fixture("task.perf.data");
    let output = holdup(&[&trace, "--vs", &trace, "--per", "100:50", "--fail-on", "5%"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("CPU time: 25.5 ms → 51.0 ms, 2.0 times"), "{}", text(&output.stdout));
}

#[test]
fn sets_of_runs_have_a_significance() {
    let trace = fixture("task.perf.data");
    let output =
        holdup(&[&trace, &trace, &trace, &trace, "--vs", &trace, &trace, &trace, &trace, "--json", "--per", "2:1"]);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let first = &answer["changes"][0];
    assert!((first["significance"].as_f64().unwrap() - 2.0 / 70.0).abs() < 1e-9, "{first}");
}

#[test]
fn bad_input_gets_a_sentence() {
    let trace = fixture("task.perf.data");
    let missing = holdup(&[&trace, "--vs", "no/such/file"]);
    assert_eq!(missing.status.code(), Some(3));
    assert!(text(&missing.stderr).contains("no/such/file"), "{}", text(&missing.stderr));
    for bad in [["--per", "1:0"], ["--fail-on", "much"]] {
        assert_eq!(holdup(&[&trace, "--vs", &trace, bad[0], bad[1]]).status.code(), Some(2));
    }
    assert_eq!(holdup(&[&trace]).status.code(), Some(2));
}

#[test]
fn a_flame_graph_shows_both_sides() {
    let (trace, folder) = (fixture("task.perf.data"), tempfile::tempdir().unwrap());
    let svg = folder.path().join("diff.svg");
    let output = holdup(&[&trace, "--vs", &trace, "--per", "2:1", "--flame", &svg.display().to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let drawn = std::fs::read_to_string(svg).unwrap();
    assert!(drawn.starts_with("<?xml") && drawn.contains("100.00%"), "{}", &drawn[..200]);
}
