//! Recording inside a namespace of processes, as a container is: its numbers are those that the recording tells.

mod outside;
mod recording;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use holdup_testing::{Need, has};
use outside::{code, err, json, run};
use recording::can_record;
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_holdup");
/// Above all numbers that the kernel gives: what is outside the namespace.
const OUTSIDE: u64 = 1 << 22;

/// Runs a script in namespaces of its own, in which it is process 1; `$0` is holdup, `$1` the result.
fn contained(options: &[&str], script: &str, out: &Path) -> Output {
    let mut command = Command::new("unshare");
    command.args(options).args(["sh", "-c", script, BINARY]).arg(out);
    command.stdin(Stdio::null()).env("XDG_CONFIG_HOME", "/nowhere").output().expect("unshare runs")
}

const CONTAINER: [&str; 5] = ["--mount", "--uts", "--pid", "--fork", "--mount-proc"];

fn threads(out: &str, more: &[&str]) -> Vec<Value> {
    let told = json(&run(&[&["threads", out, "--json", "--top", "10000"], more].concat()));
    told["threads"].as_array().expect("threads").clone()
}

fn number(row: &Value, what: &str) -> u64 {
    row[what].as_u64().expect("a number")
}

#[test]
fn a_recording_inside_a_container_has_its_numbers_and_names() {
    let Some(_one) = can_record() else { return };
    if !has(Need::Mounts) || !has(Need::Program("unshare")) {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("t.holdup");
    let out = path.display().to_string();
    let o = contained(&CONTAINER, "\"$0\" record -o \"$1\" -- \"$0\" demo-program", &path);
    assert_eq!(code(&o), 0, "{}", err(&o));
    assert!(err(&o).contains("inside a container"), "{}", err(&o));

    let rows = threads(&out, &[]);
    let of = |name: &str| rows.iter().filter(|row| row["name"] == name).collect::<Vec<_>>();
    let scan = of("bitmap-scan");
    assert_eq!((scan.len(), of("compiler-00").len()), (1, 1), "{rows:?}");
    // The namespace is new: its numbers are small, whatever the machine's are.
    let pid = number(scan[0], "pid");
    assert!(rows.iter().all(|row| number(row, "pid") == pid && number(row, "tid") < 100), "{rows:?}");
    assert!(scan[0]["ran_s"].as_f64() > Some(0.0), "{:?}", scan[0]);

    let outside = |row: &&Value| number(row, "tid") & OUTSIDE != 0;
    let all = threads(&out, &["--all"]);
    let foreign: Vec<&Value> = all.iter().filter(outside).collect();
    assert!(!foreign.is_empty() && foreign.iter().all(|row| row["name"] != ""), "{foreign:?}");
    assert!(all.iter().all(|row| row["name"] != "bitmap-scan" || !outside(&row)), "{all:?}");

    // Code is found by the namespace's numbers, too.
    let why = json(&run(&["explain", &out, "--json"]));
    let functions = why["findings"].to_string();
    assert!(functions.contains("find_free_block"), "{functions}");
}

#[test]
fn a_process_is_attached_by_its_number_in_the_container() {
    let Some(_one) = can_record() else { return };
    if !has(Need::Mounts) || !has(Need::Program("unshare")) {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("t.holdup");
    let script = "\"$0\" demo-program & pid=$!; \"$0\" record -o \"$1\" -p $pid || exit; echo $pid";
    let o = contained(&CONTAINER, script, &path);
    assert_eq!(code(&o), 0, "{}", err(&o));
    let pid: u64 = String::from_utf8_lossy(&o.stdout).trim().parse().expect("a number");
    let rows = threads(&path.display().to_string(), &[]);
    assert!(rows.iter().any(|row| row["name"] == "bitmap-scan"), "{rows:?}");
    assert!(rows.iter().all(|row| number(row, "pid") == pid), "{pid}: {rows:?}");
}

#[test]
fn without_a_proc_of_its_own_a_container_is_no_place_to_record() {
    let Some(_one) = can_record() else { return };
    if !has(Need::Mounts) || !has(Need::Program("unshare")) {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("t.holdup");
    let o = contained(&["--pid", "--fork"], "\"$0\" record -o \"$1\" -- true", &path);
    assert_eq!(code(&o), 4, "{}", err(&o));
    assert!(err(&o).contains("/proc is not that of this namespace"), "{}", err(&o));
    assert_eq!(std::fs::read_dir(dir.path()).expect("dir").count(), 0);
}
