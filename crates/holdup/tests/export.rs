//! `holdup export`: one file or one folder for its owner alone, each format read back.

mod convoy;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdup"));
    command.args(args).env("XDG_CONFIG_HOME", "/nowhere").output().expect("starts")
}

fn done(args: &[&str]) {
    let o = run(args);
    assert_eq!(o.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    assert!(o.stdout.is_empty(), "{args:?}");
}

fn refused(args: &[&str], code: i32, why: &str) {
    let o = run(args);
    let said = String::from_utf8_lossy(&o.stderr);
    assert!(o.status.code() == Some(code) && said.contains(why), "{args:?}: {:?} {said}", o.status);
}

struct Here {
    folder: tempfile::TempDir,
    trace: String,
}

impl Here {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("dir");
        let trace = folder.path().join("t.holdup");
        holdup_trace::file::write(&convoy::convoy(true), &trace).expect("write");
        let trace = trace.display().to_string();
        Here { folder, trace }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn json(&self, format: &str) -> Value {
        let path = self.path(format);
        done(&["export", &self.trace, "--format", format, "-o", &path]);
        assert_eq!(mode(Path::new(&path)), 0o600);
        serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn each_format_is_what_it_says() {
    let here = Here::new();
    assert_eq!(here.json("json")["schema"], "holdup.export/1");
    assert_eq!(here.json("speedscope")["$schema"], "https://www.speedscope.app/file-format-schema.json");
    assert_eq!(here.json("firefox")["meta"]["preprocessedProfileVersion"], 58);

    let folded = here.path("folded");
    done(&["export", &here.trace, "--format", "folded", "--stacks", "off-cpu", "--per-thread", "-o", &folded]);
    let folded = std::fs::read_to_string(folded).expect("text");
    assert!(folded.lines().any(|l| l.ends_with(";app;waiter (12);(no stack) 50000")), "{folded}");

    let tables = here.path("tables");
    done(&["export", &here.trace, "--format", "parquet", "-o", &tables]);
    assert_eq!(mode(Path::new(&tables)), 0o700);
    let switches = Path::new(&tables).join("switch.parquet");
    assert_eq!(mode(&switches), 0o600);
    assert!(std::fs::read(switches).expect("a table").starts_with(b"PAR1"));
    // Nobody's files are taken away.
    refused(&["export", &here.trace, "--format", "parquet", "-o", &tables], 3, "there is something");
}

#[test]
fn a_window_is_all_that_is_exported() {
    let here = Here::new();
    let path = here.path("window.json");
    done(&["export", &here.trace, "--format", "json", "--window", "0.02..0.04", "-o", &path]);
    let found: Value = serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON");
    assert_eq!(found["meta"]["duration_ns"], 20_000_000);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let here = Here::new();
    let out = here.path("out");
    refused(&["export", &here.trace, "--format", "excel", "-o", &out], 2, "possible values");
    refused(&["export", &here.trace, "--format", "folded", "--stacks", "heap", "-o", &out], 2, "off-cpu");
    refused(&["export", &here.trace, "--format", "json", "--per-thread", "-o", &out], 2, "not for json");
    refused(&["export", &here.trace, "--format", "folded", "--focus", "nobody", "-o", &out], 3, "nobody");
    refused(&["export", &here.trace, "--format", "folded", "-o", &here.path("no/out")], 3, "there is no folder");
    refused(&["export", &here.path("none"), "--format", "folded", "-o", &out], 3, "cannot be opened");
    assert!(!Path::new(&out).exists());
    // A folder that was begun is gone, too.
    refused(&["export", &here.path("none"), "--format", "parquet", "-o", &out], 3, "cannot be opened");
    let left: Vec<_> =
        std::fs::read_dir(here.folder.path()).expect("dir").map(|e| e.expect("an entry").file_name()).collect();
    assert_eq!(left, ["t.holdup"]);
}

/// Names stand before what uses them, every row is there, and nothing but lines of JSON.
#[test]
fn lines_of_json_hold_all_rows() {
    let here = Here::new();
    let path = here.path("ndjson");
    done(&["export", &here.trace, "--format", "ndjson", "-o", &path]);
    let text = std::fs::read_to_string(&path).expect("text");
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).expect("JSON in each line")).collect();
    assert_eq!((lines[0]["table"].as_str(), lines[0]["schema"].as_str()), (Some("meta"), Some("holdup.ndjson/1")));
    let of = |table: &str| lines.iter().filter(|l| l["table"] == table).collect::<Vec<_>>();
    for (table, rows) in lines[0]["meta"]["rows"].as_object().expect("counts") {
        assert_eq!(of(table).len() as u64, rows.as_u64().expect("a number"), "{table}");
    }
    let threads = of("thread");
    assert!(threads.iter().enumerate().all(|(i, thread)| thread["id"] == i), "{threads:?}");
    let place = |table: &str| lines.iter().position(|l| l["table"] == table).expect("a row");
    assert!(place("thread") < place("switch") && place("stack") < place("switch"));
    let switches = of("switch");
    assert!(switches.windows(2).all(|pair| pair[0]["t"].as_u64() <= pair[1]["t"].as_u64()));
    assert!(switches.iter().any(|s| s["lock"].is_null()) && switches.iter().all(|s| s["cpu"].is_u64()));
}
