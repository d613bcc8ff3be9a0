//! `holdup load` with hostile scripts, from outside: each ends with a sentence, and with a program that has ended.
//!
//! What the engine counts itself is tested in holdup-load. Here are the limits that are seen from outside the script's thread,
//! and signals.

#![cfg(feature = "script")]

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// So long that only a program that hangs takes longer.
const HANGS: Duration = Duration::from_secs(120);

fn started(args: &[&str]) -> Child {
    // Tests may run in the background of a shell, which has its jobs ignore the signal of Ctrl-C, and they inherit that.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,TERM", env!("CARGO_BIN_EXE_holdup")]);
    command.arg("load").args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("RUST_BACKTRACE").spawn().expect("the binary starts")
}

/// What it printed, once it has ended.
fn ended(mut child: Child) -> Output {
    let (sender, ended) = mpsc::channel();
    let id = child.id().to_string();
    std::thread::spawn(move || {
        if ended.recv_timeout(HANGS).is_err() {
            let _ = Command::new("kill").args(["-KILL", &id]).status();
        }
    });
    let mut output = Output { status: Default::default(), stdout: Vec::new(), stderr: Vec::new() };
    child.stdout.take().expect("piped").read_to_end(&mut output.stdout).expect("text");
    child.stderr.take().expect("piped").read_to_end(&mut output.stderr).expect("text");
    output.status = child.wait().expect("it ends");
    let _ = sender.send(());
    output
}

fn err(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

fn written(folder: &Path, text: &str) -> String {
    let path = folder.join("work.rn");
    fs::write(&path, text).expect("the script");
    path.display().to_string()
}

/// The one sentence with which `holdup load COMMAND` refuses this script.
fn refused(command: &str, text: &str, args: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let script = written(folder.path(), text);
    let args = [&[command, script.as_str()], args].concat();
    let o = ended(started(&args));
    let said = err(&o);
    assert_eq!(o.status.code(), Some(3), "{text:.80}: {:?} {said:.500}", o.status);
    assert_eq!(said.trim_end().lines().count(), 1, "{text:.80}: {said:.500}");
    assert!(said.starts_with("holdup: ") && !said.contains("overflowed its stack"), "{text:.80}: {said:.500}");
    said
}

#[test]
fn work_outside_of_the_engines_steps_has_its_time() {
    let little = ["--script-time", "200ms"];
    let said = |command, text: &str| refused(command, text, &little);
    let count = "(0..9000000000000).iter().count();";
    let schema = said("schema", &format!("pub fn schema(ctx) {{ {count} }}"));
    assert!(
        schema.contains("work.rn: `schema` took 200ms of CPU time") && schema.contains("--script-time"),
        "{schema}"
    );
    let nested = said("schema", "pub fn schema(ctx) { latte::vector(1, |k| { loop {} }); }");
    assert!(nested.contains("`schema` took 200ms"), "{nested}");
    let prepare = said("run", &format!("pub fn prepare(ctx) {{ {count} }} pub fn run(ctx) {{}}"));
    assert!(prepare.contains("`prepare` took 200ms"), "{prepare}");
    let load =
        said("load", &format!("pub fn prepare(ctx) {{ ctx.load_cycle_count = 9; }} pub fn load(ctx, i) {{ {count} }}"));
    assert!(load.contains("`load` took 200ms"), "{load}");
    let run = said("run", &format!("pub fn run(ctx) {{ {count} }}"));
    assert!(run.contains("`run` took 200ms"), "{run}");
}

#[test]
fn what_is_too_deep_ends_before_the_end_of_the_stack() {
    let said = |command, text: &str| refused(command, text, &[]);
    for text in [
        "fn f(n) { latte::vector(1, |k| f(n + 1)) } pub fn schema(ctx) { f(0); }",
        "async fn f(n) { f(n + 1).await } pub async fn schema(ctx) { f(0).await; }",
        "pub fn schema(ctx) { let v = []; v.push(v); format!(\"{:?}\", v); }",
    ] {
        let deep = said("schema", text);
        assert!(deep.contains("work.rn: `schema` went too deep") && deep.contains("of stack were full"), "{deep}");
    }
    let compiled = said("list", &format!("pub fn run(ctx) {{ let x = {}1; }}", "-".repeat(200_000)));
    assert!(compiled.contains("compiling it went too deep"), "{compiled}");
    let brackets = said("list", &format!("pub fn run(ctx) {{ let x = {}", "(".repeat(20_000)));
    assert!(brackets.contains("work.rn:1:") && brackets.contains("500 brackets are open here"), "{brackets}");
}

#[test]
fn values_inside_values_end_with_the_memory_they_take() {
    let said = refused("schema", "pub fn schema(ctx) { let v = []; loop { v = [v]; } }", &["--script-memory", "32M"]);
    assert!(said.contains("--script-memory") || said.contains("went too deep"), "{said}");
}

#[test]
fn an_engine_that_breaks_is_a_sentence() {
    let said = refused("list", &format!("pub fn run(ctx, i) {{ {} {{}} }}", "if i == 1 {} else ".repeat(20_000)), &[]);
    assert!(said.contains("the script engine broke over this script") || said.contains("too deep"), "{said}");
}

#[test]
fn files_beyond_the_folder_need_a_word() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("secret"), "a\nb").expect("a file");
    let inside = folder.path().join("in");
    fs::create_dir(&inside).expect("a folder");
    let script = written(&inside, "pub fn schema(ctx) {\n  println!(\"{}\", fs::read_lines(\"../secret\")?.len());\n}");
    let o = ended(started(&["schema", &script]));
    let said = err(&o);
    assert_eq!(o.status.code(), Some(3), "{said}");
    assert!(said.contains("work.rn:2:") && said.contains("../secret: ") && said.contains("--allow-fs"), "{said}");
    let o = ended(started(&["schema", &script, "--allow-fs"]));
    assert_eq!((o.status.code(), err(&o).as_str()), (Some(0), "2\nschema: done\n"));
}

/// A script that says so when it begins to loop, and whether a wait for the first line came.
fn looping(args: &[&str], text: &str, signal: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let script = written(folder.path(), text);
    let args = [&args[..1], &[script.as_str()], &args[1..]].concat();
    let mut child = started(&args);
    let mut stderr = child.stderr.take().expect("piped");
    let mut begun = [0; 6];
    stderr.read_exact(&mut begun).expect("it begins");
    assert_eq!(&begun, b"begun\n");
    child.stderr = Some(stderr);
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill");
    assert!(status.success());
    let asked = Instant::now();
    let o = ended(child);
    // A script that loops for an hour would; how soon it ends is not this test's business.
    assert!(asked.elapsed() < HANGS);
    o
}

#[test]
fn a_signal_ends_a_script_that_loops() {
    let forever = ["--script-time", "1h"];
    let endless = "println!(\"begun\"); (0..9000000000000).iter().count();";
    for (command, function) in [("run", "run"), ("run", "prepare"), ("load", "load"), ("schema", "schema")] {
        let extra = match function {
            "prepare" => "pub fn run(ctx) {}",
            "load" => "pub fn prepare(ctx) { ctx.load_cycle_count = 1; }",
            _ => "",
        };
        let text = format!("{extra} pub fn {function}(ctx) {{ {endless} }}");
        for signal in ["-INT", "-TERM"] {
            let args = [&[command], &forever[..]].concat();
            let o = looping(&args, &text, signal);
            // Ended by the signal itself, or in good order: with a report of what was measured, which is nothing.
            let in_order = match function {
                "schema" => o.status.code().is_none(),
                "prepare" => o.status.code() == Some(1) && err(&o).contains("interrupted before the first call"),
                _ => o.status.code() == Some(0),
            };
            assert!(in_order, "{function} {signal}: {:?} {}", o.status, err(&o));
        }
    }
}

#[test]
fn a_report_that_is_none_is_told_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.json");
    for (bytes, word) in [(&b"\x7fELF\xff\xfe"[..], "byte 4 is not UTF-8"), (b"{}", "missing field"), (b"", "EOF")] {
        fs::write(&path, bytes).expect("a file");
        let o = ended(started(&["show", &path.display().to_string()]));
        let said = err(&o);
        let words = ["r.json: this is not a report", word, "`holdup load run -o FILE`"];
        assert!(o.status.code() == Some(3) && words.iter().all(|word| said.contains(word)), "{said}");
    }
    // A pipe in a folder of reports is none, and does not hold up the list of the others.
    fs::remove_file(&path).expect("gone");
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo").success());
    let o = ended(started(&["list", &folder.path().display().to_string(), "--json"]));
    assert_eq!((o.status.code(), String::from_utf8_lossy(&o.stdout).trim()), (Some(0), "[]"));
}
