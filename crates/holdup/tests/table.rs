//! `holdup table` from outside, on a small perf.data.

use std::process::{Command, Output};

use holdup_testing::shared_traces;
use serde_json::Value;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../holdup-import/tests/fixtures/task.perf.data");

fn table_of(trace: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdup"));
    let o = command.args(["table", trace]).args(args).env("COLUMNS", "100").output().expect("the binary starts");
    assert!(!err(&o).contains("panicked"), "{}", err(&o));
    o
}

fn table(args: &[&str]) -> String {
    let o = table_of(FIXTURE, args);
    assert_eq!(o.status.code(), Some(0), "{args:?}: {}", err(&o));
    String::from_utf8(o.stdout).expect("UTF-8")
}

fn err(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&table(&[args, &["--json"]].concat())).expect("one document")
}

#[test]
fn groups_add_up_to_the_rows() {
    let rows = json(&["switches", "--columns", "process,cpu,on-cpu"]);
    assert_eq!(rows["schema"], "holdup.table/1");
    assert_eq!(rows["columns"][2]["unit"], "ns");
    let all = rows["rows"].as_array().expect("rows");
    let total: u64 = all.iter().filter_map(|r| r[2].as_u64()).sum();
    let groups = json(&["switches", "--by", "process,cpu", "--sum", "on-cpu"]);
    let by_group = groups["rows"].as_array().expect("rows");
    let sum = |i: usize| by_group.iter().filter_map(|r| r[i].as_u64()).sum::<u64>();
    assert!(!by_group.is_empty() && total > 0);
    assert_eq!((sum(2), sum(3)), (total, all.len() as u64));
    assert_eq!(groups["total_rows"].as_u64(), Some(by_group.len() as u64));
    assert_eq!(rows["total_rows"], groups["matched_rows"]);
    assert!(by_group.is_sorted_by(|a, b| a[2].as_u64() >= b[2].as_u64()));
}

#[test]
fn every_table_and_question_says_something_that_fits() {
    let help = Command::new(env!("CARGO_BIN_EXE_holdup")).args(["table", "-h"]).output().expect("help");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let questions = help.split("Questions:").nth(1).expect("a list").lines().filter_map(|l| l.strip_prefix("  "));
    let names: Vec<&str> = questions.filter_map(|l| l.split_whitespace().next()).collect();
    assert!(names.contains(&"who-waits-longest") && help.contains("Example"), "{names:?}");
    for name in ["waits", "switches", "wakes", "cpu", "locks", "spans"].iter().chain(&names) {
        let text = table(&[name]);
        assert!(!text.trim().is_empty(), "{name}");
        assert!(text.lines().count() == 1 || text.lines().all(|l| l.chars().count() <= 100), "{name}: {text}");
    }
}

#[test]
fn formats_and_files() {
    let dir = tempfile::tempdir().expect("dir");
    let csv = table(&["switches", "--columns", "t,New Thread Id", "--format", "csv"]);
    assert_eq!(csv.lines().next(), Some("t (ns),tid"));
    assert!(csv.lines().skip(1).all(|l| l.split(',').all(|c| c.parse::<u64>().is_ok())), "{csv}");
    let file = dir.path().join("t.arrow");
    table(&["switches", "--format", "arrow", "-o", file.to_str().expect("UTF-8")]);
    let bytes = std::fs::read(&file).expect("written");
    assert!(bytes.starts_with(b"ARROW1") && bytes.ends_with(b"ARROW1"));
    let o = table_of(FIXTURE, &["switches", "-o", "/no/such/folder/t"]);
    assert!(o.status.code() == Some(3) && err(&o).contains("/no/such/folder/t"), "{}", err(&o));
}

#[test]
fn bad_questions_are_2_and_one_sentence() {
    for (args, named) in [
        (&["weits"][..], "waits"),
        (&["waits", "--by", "proces"], "did you mean process?"),
        (&["waits", "--where", "wait >"], "at character 7"),
        (&["waits", "--show", "count"], "--by"),
        (&["waits", "--by", "kind", "--sort", "t"], "cannot sort"),
    ] {
        let o = table_of(FIXTURE, args);
        assert_eq!(o.status.code(), Some(2), "{args:?}");
        assert!(o.stdout.is_empty() && err(&o).contains(named), "{args:?}: {}", err(&o));
        assert_eq!(err(&o).trim_end().lines().count(), 1, "{}", err(&o));
    }
    let o = table_of(FIXTURE, &["waits", "--focus", "no-such-process"]);
    assert!(o.status.code() == Some(3) && err(&o).contains("no-such-process"), "{}", err(&o));
}

#[test]
fn foreign_traces_are_never_an_empty_screen() {
    let Some(folder) = shared_traces() else { return };
    let paths = std::fs::read_dir(folder).expect("a folder").flatten().map(|f| f.path().display().to_string());
    let paths: Vec<_> = paths.filter(|p| p.ends_with(".perf.data")).collect();
    assert!(!paths.is_empty());
    for path in paths {
        for name in ["waits", "switches", "wakes", "cpu", "locks", "hot-functions"] {
            let o = table_of(&path, &[name]);
            assert_eq!(o.status.code(), Some(0), "{path} {name}: {}", err(&o));
            assert!(!o.stdout.is_empty(), "{path} {name}");
        }
    }
}
