//! `chain`, `disasm` and `threads` from outside, on traces that are built here: no privilege is needed.

mod convoy;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use convoy::convoy;
use holdup_testing::shared_traces;
use holdup_trace::{Destination, TraceBuilder, file};
use serde_json::Value;

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdup"));
    command.args(args).stdin(Stdio::null()).env("COLUMNS", "100").output().expect("the binary starts")
}

fn out(o: &Output) -> String {
    String::from_utf8_lossy(&o.stdout).into_owned()
}

/// What is printed where all is well; it fits the terminal.
fn prints(args: &[&str]) -> String {
    let o = run(args);
    assert_eq!(o.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    let text = out(&o);
    assert!(!text.trim().is_empty(), "{args:?}");
    text
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&prints(&[args, &["--json"]].concat())).expect("one document")
}

/// One sentence that holds `part`, nothing on standard output.
fn refuses(args: &[&str], code: i32, part: &str) {
    let o = run(args);
    let text = String::from_utf8_lossy(&o.stderr).into_owned();
    assert_eq!(o.status.code(), Some(code), "{args:?}: {text}");
    assert!(o.stdout.is_empty() && text.contains(part), "{args:?}: {text}");
    assert!(code == 2 || text.trim_end().lines().count() == 1, "{text}");
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("dir");
        file::write(&convoy(true), &dir.path().join("full")).expect("write");
        file::write(&convoy(false), &dir.path().join("nostacks")).expect("write");
        let empty = TraceBuilder::new(&Destination::Memory).expect("builder").finish(None).expect("trace");
        file::write(&empty, &dir.path().join("empty")).expect("write");
        Files(dir)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

#[test]
fn a_chain_names_the_holder() {
    let files = Files::new();
    let full = files.path("full");
    let found = json(&["chain", &full, "--at", "30ms", "--follow"]);
    assert_eq!(found["schema"], "holdup.chain/1");
    let hops = found["hops"].as_array().expect("hops");
    assert_eq!(
        (hops.len(), &hops[0]["who"]["thread"], &hops[1]["who"]["thread"]),
        (2, &"waiter".into(), &"holder".into())
    );
    assert_eq!(hops[1]["did"]["function"], "app::wait_for_flag");
    assert_eq!((&found["end"]["kind"], &found["end"]["main_hop"]), (&"running".into(), &1.into()));
    let list = found["handoffs"]["list"].as_array().expect("hand-offs");
    assert!((list[0]["waited_s"].as_f64().expect("a number") - 0.05).abs() < 1e-9, "{list:?}");
    let page = prints(&["chain", &full, "--at", "0.03", "--follow"]);
    assert!(page.contains("`holder` (11) of `app` readied it; ran 50.0 ms in `app::wait_for_flag`"), "{page}");
    assert!(page.contains("holder (11)") && page.contains("at the time asked for"), "{page}");
    assert_eq!(
        json(&["chain", &full, "--wait", "0"])["hops"],
        json(&["chain", &full, "--wait", "0", "--top", "1"])["hops"]
    );
    assert!(page.lines().all(|l| l.chars().count() <= 100), "{page}");
}

#[test]
fn questions_without_an_answer_are_one_sentence() {
    let files = Files::new();
    let full = files.path("full");
    refuses(&["chain", &full, "--at", "9"], 3, "0.100 s long");
    refuses(&["chain", &full, "--at", "5ms"], 3, "the first wait begins at 0.010000 s");
    refuses(&["chain", &full, "--at", "30ms", "--thread", "nobody"], 3, "nobody");
    refuses(&["chain", &full, "--at", "30ms", "--thread", "holder"], 3, "it never waits");
    refuses(&["chain", &full, "--wait", "7"], 3, "the waits are 0 to 0");
    refuses(&["chain", &full, "--at", "30ms", "--focus", "nothing"], 3, "nothing");
    refuses(&["disasm", &full, "wait_for_flak"], 3, "`app::wait_for_flag`");
    refuses(&["threads", "4294967295"], 3, "no process has the number 4294967295");
    for bad in [&["chain", &full][..], &["chain", &full, "--at", "soon"], &["chain", &full, "--wait", "0", "--at", "1"]]
    {
        refuses(bad, 2, "error: ");
    }
    refuses(&["chain", &full, "--wait", "0", "--top", "0"], 2, "above 0");
}

#[test]
fn a_spin_loop_is_named_with_its_source() {
    let files = Files::new();
    let full = files.path("full");
    let found = json(&["disasm", &full, "wait_for_flag"]);
    assert_eq!((&found["schema"], &found["samples"]), (&"holdup.disasm/1".into(), &40.into()));
    let rows = found["instructions"].as_array().expect("instructions");
    assert_eq!((rows.len(), &rows[0]["text"], &rows[1]["samples"]), (5, &"pause".into(), &40.into()));
    assert!(rows[4]["source_text"].as_str().is_some_and(|t| t.starts_with("//! `chain`, `disasm`")), "{}", rows[4]);
    let page = prints(&["disasm", &full, "wait_for_flag"]);
    assert!(page.contains("spins: `pause` in a loop of 4 instructions"), "{page}");
    assert!(page.contains("belong to the `pause` before it") && page.contains("inspect.rs:1"), "{page}");
    assert!(page.contains('┌') && page.contains('└'), "{page}");
    assert!(page.lines().all(|l| l.chars().count() <= 100), "{page}");
}

#[test]
fn threads_of_a_trace_and_of_a_process() {
    let files = Files::new();
    let full = files.path("full");
    let found = json(&["threads", &full, "--sort", "waited"]);
    assert_eq!((&found["threads"][0]["name"], &found["unnamed"]), (&"waiter".into(), &1.into()), "{found}");
    let page = prints(&["threads", &full]);
    assert!(page.contains("[unnamed]") && page.contains("pthread_setname_np"), "{page}");
    assert!(prints(&["threads", &full, "--top", "1"]).contains("3 more"));
    let me = std::process::id().to_string();
    // Of a test's own thread the name depends on how many tests run at a time.
    let (leave, stay) = std::sync::mpsc::channel::<()>();
    let (tell, told) = std::sync::mpsc::channel();
    let other = std::thread::Builder::new().name("named-by-a-test".into()).spawn(move || {
        tell.send(()).expect("told");
        stay.recv()
    });
    told.recv().expect("it runs, under its name");
    let live = json(&["threads", &me]);
    let threads = live["threads"].as_array().expect("threads");
    assert_eq!(live["pid"].to_string(), me);
    assert!(threads.iter().any(|t| t["name"] == "named-by-a-test"), "{live}");
    assert!(prints(&["threads", &me]).contains(&format!("holdup record -p {me}")));
    drop(leave);
    assert!(other.expect("it starts").join().expect("it ends").is_err());
}

#[test]
fn poor_traces_give_a_table_or_a_sentence() {
    let files = Files::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../holdup-import/tests/fixtures");
    let mut paths = vec![files.path("nostacks"), files.path("empty")];
    for folder in [Some(fixtures), shared_traces()].into_iter().flatten() {
        let entries = folder.read_dir().expect("a folder").flatten().map(|e| e.path().display().to_string());
        paths.extend(entries.filter(|p| p.ends_with(".perf.data")));
    }
    assert!(paths.len() > 4);
    for path in &paths {
        for args in [
            &["chain", path, "--at", "30ms", "--follow"][..],
            &["chain", path, "--wait", "0"],
            &["disasm", path, "main"],
            &["threads", path],
        ] {
            let o = run(args);
            let (text, error) = (out(&o), String::from_utf8_lossy(&o.stderr).into_owned());
            match o.status.code() {
                Some(0) => assert!(!text.trim().is_empty(), "{args:?}"),
                Some(3) => assert!(text.is_empty() && error.trim().lines().count() == 1, "{args:?}: {error}"),
                code => panic!("{args:?}: {code:?} {error}"),
            }
        }
    }
}
