//! `holdup scale` as a user runs it. Recording needs root.

mod recording;

use std::process::{Command, Output};

use recording::can_record;
use serde_json::Value;

fn scale(args: &[&str], script: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdup"));
    command.arg("scale").args(args).args(["--", "sh", "-c", script]).output().expect("the binary runs")
}

fn json(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).expect("one JSON document on standard output")
}

fn refusal(args: &[&str], script: &str, code: i32) -> String {
    let output = scale(args, script);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(code), "{args:?} {script}: {error}");
    assert!(output.stdout.is_empty(), "{args:?}");
    error
}

/// A command that tells a rate by the law: λ = 1000, σ = 0.05, κ = 0.002.
const LAW: &str = "awk 'BEGIN { n = {n}; print \"rate:\", 1000*n / (1 + 0.05*(n-1) + 0.002*n*(n-1)) }'";

#[test]
fn a_law_is_found_behind_a_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let plot = folder.path().join("scaling.svg");
    let plot = plot.to_str().expect("a plain path");
    let args = ["--threads", "1,2,4,8,16,32", "--runs", "2", "--rate", "rate: (.*)", "--json", "--plot", plot];
    let answer = json(&scale(&[&args[..], &["--beyond-cpus"]].concat(), LAW));
    assert_eq!(answer["schema"], "holdup.scale/1");
    let near = |value: &Value, expected: f64| (value.as_f64().expect("a number") / expected - 1.0).abs() < 0.01;
    let usl = &answer["usl"];
    assert!(near(&usl["lambda"], 1000.0) && near(&usl["sigma"], 0.05) && near(&usl["kappa"], 0.002), "{usl}");
    assert_eq!(usl["peak_n"], 22);
    assert!(usl["r2"].as_f64().expect("a number") > 0.999);
    let points = answer["points"].as_array().expect("points");
    assert_eq!(points.iter().map(|p| p["n"].as_u64().expect("a count")).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32]);
    assert!(points.iter().all(|p| p["runs"] == 2 && near(&p["throughput"], p["low"].as_f64().expect("a number"))));
    assert!(answer["traces"].as_array().is_some_and(Vec::is_empty) && answer["interrupted"] == false);
    assert!(std::fs::read_to_string(plot).expect("the plot").contains("USL"));
}

#[test]
fn too_few_counts_have_no_law_and_say_so() {
    let args = ["--threads", "1,2", "--runs", "1", "--rate", "rate: (.*)"];
    let answer = json(&scale(&[&args[..], &["--json"]].concat(), LAW));
    assert!(answer["usl"].is_null() && answer["points"][1]["karp_flatt"].is_number());
    let text = scale(&args, LAW);
    let text = String::from_utf8(text.stdout).expect("text");
    assert!(text.contains("four counts") && text.contains("Karp–Flatt") && text.contains("to do:"), "{text}");
}

#[test]
fn variables_and_elapsed_time_do_as_well() {
    let answer = json(&scale(&["--env", "COUNT", "--threads", "1,2", "--runs", "1", "--json"], "test $COUNT -gt 0"));
    assert!(answer["points"][0]["throughput"].as_f64().expect("a number") > 0.0);
    let answer = json(&scale(&["--cpus", "1", "--runs", "1", "--json", "--work", "(.*)"], "nproc"));
    assert_eq!((answer["axis"].as_str(), answer["points"][0]["runs"].as_u64()), (Some("cpus"), Some(1)));
}

#[test]
fn what_cannot_be_measured_is_a_sentence() {
    assert!(refusal(&["--threads", "1,2"], "exit 0", 2).contains("{n}"));
    assert!(refusal(&["--threads", "0"], "exit {n}", 2).contains("above 0"));
    assert!(refusal(&["--cpus", "100000"], "exit 0", 2).contains("CPUs"));
    assert!(refusal(&["--work", "("], "exit {n}", 2).contains("--work"));
    assert!(refusal(&["--threads", "3"], "exit {n}", 3).contains("exit code 3"));
    assert!(refusal(&["--threads", "1", "--timeout", "50ms"], "sleep 100 # {n}", 3).contains("longer than 0.05 s"));
    assert!(refusal(&["--threads", "1", "--work", "ops (.*)"], "echo {n}", 3).contains("ops (.*)"));
    assert!(refusal(&["--threads", "1", "--plot", "/no/such/folder/p.svg"], "exit 0 # {n}", 3).contains("/no/such"));
}

/// A part that one process does before the others begin. Not timed: what is measured is who ran beside whom.
const SERIAL: &str = "awk 'BEGIN { for (i = 0; i < 6000000; i++) x += i }'
    count() { i=0; while [ $i -lt $((200000/{n})) ]; do i=$((i+1)); done; }
    k=0; while [ $k -lt {n} ]; do count & k=$((k+1)); done; wait";

#[test]
fn a_serial_part_is_found_in_the_traces() {
    let Some(_one) = can_record() else { return };
    let answer = json(&scale(&["--threads", "1,2", "--runs", "1", "--trace", "--json"], SERIAL));
    let attribution = &answer["attribution"];
    let causes = attribution["causes"].as_array().expect("causes");
    let serial =
        causes.iter().find(|c| c["what"] == "serial").unwrap_or_else(|| panic!("no serial part: {attribution:#}"));
    assert!(serial["process"].as_str().is_some_and(|p| p.contains("awk")), "{attribution:#}");
    assert!(serial["law"] == "sigma" && serial["share"].as_f64().is_some_and(|s| s > 0.1), "{attribution:#}");
    assert_eq!(serial["s_per_unit"][0], 0.0, "one thread leaves no place empty");
}
