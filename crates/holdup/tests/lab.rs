//! `holdup lab` and `holdup check` as a user runs them.

use std::process::{Command, Output};

use serde_json::Value;

fn holdup(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_holdup")).args(args).output().expect("the binary runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("one JSON document on standard output")
}

fn refusal(args: &[&str]) -> String {
    let output = holdup(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn the_list_names_every_experiment() {
    let names = json(&holdup(&["lab", "list", "--json"]));
    let names: Vec<&str> =
        names["experiments"].as_array().expect("a list").iter().filter_map(|e| e["name"].as_str()).collect();
    for name in [
        "pause",
        "send-delay",
        "pulse-all",
        "timemutex",
        "arc",
        "counters",
        "atomics",
        "false-sharing",
        "locks",
        "handoff",
        "preempt",
        "memory",
    ] {
        assert!(names.contains(&name), "{name}");
    }
}

#[test]
fn a_result_has_its_parts_and_compares_with_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counters.json");
    let path = file.to_str().expect("a plain path");
    let plots = folder.path().to_str().expect("a plain path");
    let run = [
        "lab",
        "run",
        "counters",
        "--quick",
        "--threads",
        "1",
        "--set",
        "rounds=20",
        "--json",
        "-o",
        path,
        "--plots",
        plots,
    ];
    let report = json(&holdup(&run));
    assert_eq!(report["schema"], "holdup.lab/1");
    assert_eq!(report["experiments"][0]["params"]["threads"], "1");
    let series = report["experiments"][0]["series"].as_array().expect("series");
    match series.iter().find(|s| s["name"] == "per CPU, rseq").map(|rung| &rung["points"][0]) {
        Some(point) => {
            let [low, median, high] = ["low", "median", "high"].map(|name| point[name].as_f64().expect("a number"));
            assert!(0.0 < median && low <= median && median <= high, "{point}");
        }
        // Others took the CPU in each of its rounds.
        None => {
            assert!(report["experiments"][0]["notes"].to_string().contains("per CPU, rseq at 1 has no clean round"));
        }
    }
    assert!(folder.path().join("counters.svg").exists() && folder.path().join("counters.png").exists());
    let same = json(&holdup(&["lab", "compare", path, path, "--json"]));
    assert_eq!(same["agree"].as_u64(), Some(series.len() as u64));
}

#[test]
fn nonsense_is_refused_in_a_sentence() {
    assert!(refusal(&["lab", "run", "cuonters"]).contains("did you mean `counters`?"));
    assert!(refusal(&["lab", "run", "counters", "--threads", "0"]).contains("from 1 to 1024"));
    assert!(refusal(&["lab", "run", "counters", "--threads", "1000000"]).contains("from 1 to 1024"));
    assert!(refusal(&["lab", "run", "counters", "--cpus", "4000"]).contains("cpus=4000"));
    assert!(refusal(&["lab", "run", "pause", "--set", "cores"]).contains("KNOB=VALUE"));
    assert!(refusal(&["check", "--only", "puase"]).contains("did you mean `pause`?"));
}

#[test]
fn checks_answer_as_promised() {
    let output = holdup(&["check", "--only", "pause,rseq", "--json"]);
    let report = json(&output);
    assert_eq!(report["schema"], "holdup.check/1");
    let checks = report["checks"].as_array().expect("a list");
    assert_eq!(checks.iter().map(|c| c["name"].as_str().unwrap_or("")).collect::<Vec<_>>(), ["pause", "rseq"]);
    assert!(checks[0]["value"].as_f64().is_some_and(|ns| ns > 0.0));
    let bad = checks.iter().any(|c| c["verdict"] == "bad");
    assert_eq!(output.status.code(), Some(i32::from(bad)));
}

#[test]
fn a_trace_without_a_lock_is_refused_in_a_sentence() {
    let perf = concat!(env!("CARGO_MANIFEST_DIR"), "/../holdup-import/tests/fixtures/task.perf.data");
    let output = holdup(&["lab", "reproduce", perf]);
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("none of its findings is about a lock"), "{said}");
    let refused = refusal(&["lab", "reproduce", perf, "--try", "lock=tast"]);
    assert!(refused.contains("did you mean `tas`?"), "{refused}");
}
