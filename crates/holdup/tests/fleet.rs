//! From recordings to a data set, and what is asked of it.

#![cfg(feature = "fleet")]
#![allow(missing_docs)]

use std::path::Path;
use std::process::{Command, Output};

use holdup_testing::{Need, has};

const BINARY: &str = env!("CARGO_BIN_EXE_holdup");

fn run(args: &[&str], folder: &Path) -> Output {
    Command::new(BINARY).args(args).current_dir(folder).output().expect("it starts")
}

#[track_caller]
fn ok(args: &[&str], folder: &Path) -> String {
    let o = run(args, folder);
    assert!(o.status.success(), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    String::from_utf8_lossy(&o.stdout).into_owned()
}

fn json(args: &[&str], folder: &Path) -> serde_json::Value {
    serde_json::from_str(&ok(args, folder)).expect("JSON")
}

#[test]
fn what_is_recorded_is_in_the_fleet() {
    if !has(Need::Recording) {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let at = dir.path();
    ok(&["record", "-o", "t.holdup", "--ship", "fleet", "--", "sh", "-c", "sleep 0.2; exit 0"], at);
    let first = json(&["fleet", "report", "fleet", "--json"], at);
    assert_eq!((&first["of"]["traces"], &first["of"]["hosts"]), (&1.into(), &1.into()));
    // Added by hand, it is the same trace.
    ok(&["export", "t.holdup", "--format", "parquet", "--dataset", "fleet", "--with-recording"], at);
    assert_eq!(json(&["fleet", "report", "fleet", "--json"], at), first);
    ok(&["fleet", "ship", "fleet", "other", "--move"], at);
    assert_eq!(json(&["fleet", "report", "fleet", "--json"], at)["of"]["traces"], 0);
    let there = json(&["fleet", "report", "other", "--json"], at);
    assert_eq!(there["tables"], first["tables"]);
    let text = ok(&["fleet", "report", "other"], at);
    assert!(text.contains("one trace of one host"), "{text}");
    let diff = ok(&["fleet", "diff", "other"], at);
    assert!(diff.contains("nothing to compare"), "{diff}");
}

#[test]
fn what_a_store_does_not_take_waits() {
    if !has(Need::Recording) {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let record = |args: &[&str]| {
        let mut command = Command::new(BINARY);
        command
            .args(args)
            .current_dir(dir.path())
            .env("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
            .env("AWS_ALLOW_HTTP", "true");
        command.env("AWS_ACCESS_KEY_ID", "x").env("AWS_SECRET_ACCESS_KEY", "x").env("AWS_REGION", "x");
        command.output().expect("it starts")
    };
    // Nothing listens there: the recorder does not wait for it, the trace does.
    let o = record(&["record", "-o", "t.holdup", "--ship", "s3://fleet/x", "--", "sh", "-c", "sleep 0.1; exit 0"]);
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    let queue = json(&["fleet", "report", "holdup-queue", "--json"], dir.path());
    assert_eq!(queue["of"]["traces"], 1);
    // Who carries it by hand has to wait for the one that was started, or does it.
    let o = record(&["fleet", "ship", "holdup-queue", "s3://fleet/x", "--move", "--patience", "0s"]);
    let told = String::from_utf8_lossy(&o.stderr).into_owned();
    assert!(told.contains("another process is carrying") || o.status.code() == Some(3), "{told}");
    let _ = Command::new("pkill").args(["-f", "fleet ship .*holdup-queue s3://fleet/x"]).status();
}

#[test]
fn mistakes_get_a_sentence() {
    let dir = tempfile::tempdir().expect("dir");
    for (args, code, word) in [
        (&["fleet", "report", "nothing"][..], 3, "No such file"),
        (&["fleet", "report", "."], 3, "is no data set"),
        (&["fleet", "report", ".", "--since", "yesterday"], 2, "2026-11-25 is expected"),
        (&["fleet", "report", "gs://x/y"], 3, "s3://BUCKET/PATH"),
        (&["export", "x", "--format", "json", "--dataset", "d"], 2, "of parquet"),
    ] {
        let o = run(args, dir.path());
        let told = String::from_utf8_lossy(&o.stderr).into_owned();
        assert_eq!(o.status.code(), Some(code), "{args:?}: {told}");
        assert!(told.contains(word), "{args:?}: {told}");
    }
}
