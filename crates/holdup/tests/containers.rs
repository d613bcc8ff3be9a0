//! Recording inside a namespace of processes, as a container is: its numbers are those that the recording tells.

mod outside;
mod recording;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use holdup_testing::{Need, has, skip};
use holdup_trace::{Table, file};
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
    let cpu = json(&run(&["table", &out, "cpu", "--by", "function", "--where", "thread == bitmap-scan", "--json"]));
    assert!(cpu.to_string().contains("find_free_block"), "{cpu}");
}

#[test]
fn a_process_is_attached_by_its_number_in_the_container() {
    let Some(_one) = can_record() else { return };
    if !has(Need::Mounts) || !has(Need::Program("unshare")) {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("t.holdup");
    let script = "(while :; do sleep 0.01; done) & pid=$!; \"$0\" record -o \"$1\" -p $pid --duration 1s; code=$?; \
                  kill $pid; echo $pid; exit $code";
    let o = contained(&CONTAINER, script, &path);
    assert_eq!(code(&o), 0, "{}", err(&o));
    let pid: u64 = String::from_utf8_lossy(&o.stdout).trim().parse().expect("a number");
    let rows = threads(&path.display().to_string(), &[]);
    assert!(rows.iter().any(|row| number(row, "tid") == pid && row["name"] == "sh"), "{pid}: {rows:?}");
    // The others are its children.
    let is_child = |row: &Value| row["process"] == "sleep" || row["process"] == "sh";
    assert!(rows.iter().all(|row| is_child(row) && number(row, "tid") & OUTSIDE == 0), "{pid}: {rows:?}");
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
    assert_eq!(fs::read_dir(dir.path()).expect("dir").count(), 0);
}

/// A control group with a twentieth of a CPU, of either version, and how processes are put into it.
fn limited() -> Option<Group> {
    let name = format!("holdup-quota-{}", std::process::id());
    let make = |root: &str, files: [(&str, &str); 2]| {
        let group = Group(Path::new(root).join(&name));
        let is_made = fs::create_dir(&group.0).is_ok();
        let written = |(file, text): (&str, &str)| fs::write(group.0.join(file), text).is_ok();
        (is_made && files.into_iter().filter(|(file, _)| !file.is_empty()).all(written)).then_some(group)
    };
    let old = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "5000")];
    make("/sys/fs/cgroup/cpu", old).or_else(|| make("/sys/fs/cgroup", [("cpu.max", "5000 100000"), ("", "")]))
}

/// A control group that is removed in the end.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn the_quota_of_a_control_group_and_its_throttling_are_in_the_recording() {
    let Some(_one) = can_record() else { return };
    let Some(group) = limited() else {
        return skip(Need::ControlGroups, "none can be made that limits CPU time");
    };
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("t.holdup");
    let script = "echo $$ > \"$0/cgroup.procs\" && while grep -q '^nr_throttled 0$' \"$0/cpu.stat\"; do \
                  i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; done";
    let mut record = outside::holdup();
    record.args(["record", "-o"]).arg(&path).args(["--", "sh", "-c", script]).arg(&group.0);
    let o = record.output().expect("runs");
    assert_eq!(code(&o), 0, "{}", err(&o));
    let trace = file::read(&path).expect("trace");
    let name = group.0.file_name().and_then(|name| name.to_str()).expect("a name");
    let quotas = trace.quotas.load().expect("quotas");
    let of_it: Vec<_> = quotas.rows().filter(|row| trace.text(row.group).ends_with(name)).collect();
    let last = of_it.last().expect("its quota is told");
    assert_eq!((last.quota_us, last.period_us), (5_000, 100_000));
    assert!(last.throttled > 0 && last.throttled <= last.periods && last.throttled_us > 0, "{last:?}");
    let placements = trace.placements.load().expect("placements");
    assert!(placements.rows().any(|row| trace.text(row.group).ends_with(name)), "whose thread is in it");
}
