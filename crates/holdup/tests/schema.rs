//! `holdup schema`: every document that a command prints is one of its schema's, and has no field that is not in it.

mod convoy;
mod recording;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use holdup_testing::{Need, has};
use serde_json::{Value, json};

use recording::can_record;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../holdup-import/tests/fixtures");

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdup"));
    let o = command.args(args).stdin(Stdio::null()).env("XDG_CONFIG_HOME", "/nowhere").output().expect("starts");
    assert!(!String::from_utf8_lossy(&o.stderr).contains("panicked"), "{args:?}: {o:?}");
    o
}

fn printed(args: &[&str]) -> Value {
    let o = run(args);
    serde_json::from_slice(&o.stdout)
        .unwrap_or_else(|e| panic!("{args:?}: {e}: {}", String::from_utf8_lossy(&o.stderr)))
}

fn schema(document: &str) -> Value {
    printed(&["schema", document])
}

/// The schema without room for further fields, so that one that it does not describe is found.
fn strict(mut schema: Value) -> Value {
    fn close(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.values_mut().for_each(close);
                if fields.contains_key("properties") && fields.get("type").is_some_and(|t| t == "object") {
                    fields.entry("additionalProperties").or_insert(json!(false));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(close),
            _ => {}
        }
    }
    close(&mut schema);
    schema
}

/// The documents that were checked.
#[derive(Default)]
struct Checked(BTreeSet<&'static str>);

impl Checked {
    fn check(&mut self, document: &'static str, args: &[&str]) -> Value {
        let answer = printed(args);
        let schema = schema(document);
        for schema in [schema.clone(), strict(schema)] {
            let validator = jsonschema::draft202012::new(&schema).expect("a schema");
            let errors: Vec<String> =
                validator.iter_errors(&answer).map(|e| format!("{} at {}", e, e.instance_path())).collect();
            assert!(errors.is_empty(), "{document} {args:?}:\n{}", errors.join("\n"));
        }
        self.0.insert(document);
        answer
    }
}

fn documents() -> Vec<String> {
    let o = run(&["schema"]);
    let list = String::from_utf8(o.stdout).expect("text");
    list.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn every_schema_is_one_and_says_what_it_is_of() {
    let names = documents();
    assert!(names.len() >= 15 && names.iter().any(|name| name == "explain"), "{names:?}");
    for name in &names {
        let schema = schema(name);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        jsonschema::draft202012::meta::validate(&schema).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(schema["description"].as_str().is_some_and(|d| d.contains("holdup ")), "{name}");
        // What nothing is known of would be valid, whatever it is.
        let validator = jsonschema::draft202012::new(&schema).expect("a schema");
        for wrong in [json!({}), json!({"schema": "other/1"}), json!(7), json!([{}])] {
            assert!(!validator.is_valid(&wrong), "{name} takes {wrong}");
        }
    }
    assert_eq!(schema("explain"), schema("holdup.explain/1"));
    let o = run(&["schema", "explian"]);
    assert_eq!(o.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&o.stderr).contains("did you mean explain?"));
}

/// A finding's fields are part of the schema, with what they mean.
#[test]
fn fields_are_described() {
    let schema = schema("explain");
    let finding = &schema["$defs"]["Finding"];
    assert_eq!(finding["properties"]["blame_cpu_s"]["description"], "CPU seconds charged to it.");
    assert!(finding["required"].as_array().is_some_and(|r| r.contains(&json!("title"))), "{finding}");
    assert_eq!(schema["properties"]["schema"]["const"], "holdup.explain/1");
}

/// What a word can be stands in the schema, each with its meaning.
#[test]
fn words_are_listed() {
    let words = |document: &str, name: &str| -> Vec<String> {
        let schema = schema(document);
        let of = schema["$defs"][name].clone();
        let listed = of["oneOf"].as_array().into_iter().flatten().map(|one| &one["const"]);
        let listed = listed.chain(of["enum"].as_array().into_iter().flatten());
        listed.map(|word| word.as_str().expect("a word").to_owned()).collect()
    };
    assert_eq!(words("explain", "Confidence"), ["high", "medium", "low"]);
    assert_eq!(words("explain", "LockKind"), ["futex", "kernel-mutex", "rwsem", "spinlock", "unknown"]);
    let kinds = words("explain", "FindingKind");
    assert!(["lock-held", "convoy", "idle-by-design"].iter().all(|kind| kinds.iter().any(|k| k == kind)), "{kinds:?}");
    assert_eq!(words("diff", "Role"), ["cause", "unclear", "symptom"]);
    assert_eq!(words("diff", "Subject").len(), 5);
    assert_eq!(words("scale", "Law"), ["sigma", "kappa", "capacity"]);
    assert_eq!(words("scale", "Verdict"), ["scales", "contention", "coherence", "capacity", "unexplained"]);
    assert_eq!(words("scale", "Axis"), ["threads", "cpus"]);
    assert_eq!(words("chain", "Edge"), ["start", "waker", "owner", "before", "creator"]);
    assert!(words("chain", "EndKind").len() == 13 && words("chain", "WaitKind").len() == 14);
    assert_eq!(words("load", "CutKind"), ["asked", "error", "only-errors", "running"]);
    assert_eq!(words("load-compare", "Quantity").len(), 7);
}

fn of_traces(checked: &mut Checked, traces: &[String]) {
    for trace in traces {
        checked.check("info", &["info", trace, "--json"]);
        checked.check("explain", &["explain", trace, "--json"]);
        checked.check("threads", &["threads", trace, "--json"]);
        checked.check("export", &["export", trace, "--format", "json", "-o", "/dev/stdout"]);
        for table in ["waits", "cpu", "switches", "wakes", "locks", "spans", "who-waits-longest"] {
            checked.check("table", &["table", trace, table, "--json"]);
        }
        checked.check("diff", &["diff", trace, "--vs", trace, "--json"]);
        // Not every trace has a wait, or samples of a function.
        for (document, args) in [
            ("chain", &["chain", trace, "--wait", "0", "--json"][..]),
            ("chain", &["chain", trace, "--at", "20ms", "--json"]),
            ("disasm", &["disasm", trace, ".*", "--json"]),
        ] {
            if run(args).status.code() == Some(0) {
                checked.check(document, args);
            }
        }
    }
}

fn of_scripts(checked: &mut Checked, folder: &Path) {
    if !has(Need::Other { name: "scripts in this build", is_here: cfg!(feature = "script") }) {
        return;
    }
    let [script, report] = ["work.rn", "r.json"].map(|name| folder.join(name).display().to_string());
    std::fs::write(&script, "pub async fn run(ctx, i) {}").expect("write");
    checked.check("load", &["load", "run", &script, "-d", "50ms", "-w", "0s", "-o", &report, "--json"]);
    checked.check("load", &["load", "run", &script, "-d", "50ms", "-w", "0s", "-r", "100", "--json"]);
    checked.check("load-list", &["load", "list", &folder.display().to_string(), "--json"]);
    checked.check("load-workload", &["load", "list", &script, "--json"]);
    checked.check("load-compare", &["load", "compare", &report, &report, "--json"]);
}

#[cfg(feature = "fleet")]
fn of_fleets(checked: &mut Checked, traces: &[String], folder: &Path) {
    let fleet = folder.join("fleet").display().to_string();
    for trace in traces {
        let o = run(&["export", trace, "--format", "parquet", "--dataset", &fleet]);
        assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    }
    for (document, question) in [("fleet-report", "report"), ("fleet-diff", "diff"), ("fleet-example", "example")] {
        let answer = checked.check(document, &["fleet", question, &fleet, "--json"]);
        assert_eq!(answer["of"]["traces"], traces.len(), "{answer}");
    }
}

#[test]
fn every_document_is_one_of_its_schema() {
    let dir = tempfile::tempdir().expect("dir");
    let mut checked = Checked::default();
    let mut traces: Vec<String> = ["task", "dwarf"].map(|name| format!("{FIXTURES}/{name}.perf.data")).to_vec();
    let convoy = dir.path().join("convoy.holdup");
    holdup_trace::file::write(&convoy::convoy(true), &convoy).expect("write");
    let path = convoy.display().to_string();
    let answer = checked.check("explain", &["explain", &path, "--json"]);
    assert!(answer["findings"].as_array().is_some_and(|f| !f.is_empty()), "{answer}");
    let chain = checked.check("chain", &["chain", &path, "--at", "30ms", "--follow", "--json"]);
    assert!(!chain["handoffs"].is_null(), "{chain}");
    checked.check("disasm", &["disasm", &path, "wait_for_flag", "--json"]);
    let spans = checked.check("spans", &["explain", &path, "--spans", "request", "--json"]);
    assert_eq!(spans["slow"]["count"], 1, "{spans}");
    checked.check("span", &["chain", &path, "--span", "3", "--json"]);
    let short = ["--rounds", "1", "--length", "50ms", "--try", "hold=0.5", "--json"];
    let locked = dir.path().join("locked.holdup");
    holdup_trace::file::write(&convoy::locked(), &locked).expect("write");
    let locked = locked.display().to_string();
    let reproduce = [&["lab", "reproduce", &locked][..], &short].concat();
    let again = checked.check("lab-reproduce", &reproduce);
    assert_eq!(again["changes"].as_array().map(Vec::len), Some(1), "{again}");
    traces.push(path);
    if let Some(_one) = can_record() {
        let path = dir.path().join("t.holdup").display().to_string();
        assert_eq!(run(&["record", "-o", &path, "--", "sh", "-c", "sleep 0.1"]).status.code(), Some(0));
        traces.push(path);
    }
    of_traces(&mut checked, &traces);
    checked.check("tables", &["info", "--schema", "--json"]);
    checked.check("threads-live", &["threads", &std::process::id().to_string(), "--json"]);
    checked.check("check", &["check", "--json"]);
    let lab = dir.path().join("lab.json").display().to_string();
    checked.check("lab", &["lab", "run", "counters", "--quick", "-o", &lab, "--json"]);
    checked.check("lab-list", &["lab", "list", "--json"]);
    checked.check("lab-compare", &["lab", "compare", &lab, &lab, "--json"]);
    checked.check("scale", &["scale", "--threads", "1,2,3,4", "--runs", "1", "--json", "--", "true", "{n}"]);
    of_scripts(&mut checked, dir.path());
    #[cfg(feature = "fleet")]
    of_fleets(&mut checked, &traces, dir.path());
    let unchecked: Vec<String> = documents().into_iter().filter(|name| !checked.0.contains(name.as_str())).collect();
    println!("not checked here: {unchecked:?}");
    let is_left_out = |name: &String| name.starts_with("load") && !cfg!(feature = "script");
    assert!(unchecked.iter().all(is_left_out), "{unchecked:?}");
}
