//! Hostile scripts: each ends with a sentence of its own, and soon.
//!
//! These are the limits that the engine itself counts. Those that are seen from outside end the program, and are tested there
//! (`crates/holdup/tests/hostile_scripts.rs`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::harness::describe;
use crate::session::Patience;

struct Hostile {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn written(text: &str) -> Hostile {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("work.rn");
    std::fs::write(&path, text).unwrap();
    Hostile { _folder: folder, path }
}

fn source(hostile: &Hostile, limits: Limits) -> Source {
    Source { limits, ..Source::new(&hostile.path) }
}

/// Few steps, and so much time that no clock ends it.
const STEPS: Limits = Limits { time: Duration::from_millis(2), memory: 256 << 20, any_file: false };
/// Little memory, and time without end.
const MEMORY: Limits = Limits { time: Duration::from_secs(3600), memory: 24 << 20, any_file: false };

/// Calls `run` on this thread.
fn called(text: &str, limits: Limits) -> ScriptError {
    let hostile = written(text);
    let session = Rc::new(Session::new(None, Patience::default()));
    within(limits.memory, || {
        let script = compile(&source(&hostile, limits), &session).unwrap();
        let mut caller = script.caller("run").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        *runtime.block_on(caller.call(0)).unwrap_err()
    })
}

fn line(error: &ScriptError) -> Option<usize> {
    error.place.as_ref().map(|place| place.line)
}

#[test]
fn a_loop_ends_at_its_line_wherever_it_is() {
    for (text, at) in [
        ("pub fn run(ctx) {\n  loop {}\n}", 2),
        ("pub async fn run(ctx) {\n  while true {}\n}", 2),
        ("fn spin() {\n  loop {}\n}\npub fn run(ctx) {\n  spin()\n}", 2),
        ("async fn spin() { loop {} }\npub async fn run(ctx) {\n  spin().await\n}", 3),
        ("pub async fn run(ctx) {\n  loop { async {}.await }\n}", 2),
    ] {
        let error = called(text, STEPS);
        assert!(error.is_limit && error.message.contains("took 200,000 steps"), "{text}: {error}");
        assert!(error.message.contains("--script-time") && line(&error) == Some(at), "{text}: {error}");
    }
}

#[test]
fn steps_count_anew_after_each_wait() {
    // Longer than all the steps it may take at once, but it waits between.
    let text = "pub async fn run(ctx) { for k in 0..30 { for j in 0..2000 {} ctx.execute(\"x\").await; } }";
    let hostile = written(text);
    let session = Rc::new(Session::new(Some(Rc::new(Slow)), Patience::default()));
    let script = compile(&source(&hostile, STEPS), &session).unwrap();
    let mut caller = script.caller("run").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(caller.call(0)).unwrap();
}

/// A server whose answers take a turn of the runtime.
struct Slow;

impl crate::driver::Driver for Slow {
    fn prepare<'a>(&'a self, _: &'a str, _: &'a str) -> crate::driver::Pending<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn execute<'a>(
        &'a self,
        _: &'a str,
        _: &'a crate::driver::Args,
        _: crate::driver::Want,
    ) -> crate::driver::Pending<'a, crate::driver::Reply> {
        Box::pin(async {
            tokio::task::yield_now().await;
            Ok(crate::driver::Reply::default())
        })
    }

    fn execute_prepared<'a>(
        &'a self,
        key: &'a str,
        args: &'a crate::driver::Args,
        want: crate::driver::Want,
    ) -> crate::driver::Pending<'a, crate::driver::Reply> {
        self.execute(key, args, want)
    }
}

#[test]
fn endless_growth_ends_at_its_line() {
    for text in [
        "pub fn run(ctx) {\n  let s = \"0123456789abcdef\"; loop { s = s + s; }\n}",
        "pub fn run(ctx) {\n  let v = []; loop { v.push(1); }\n}",
        "pub fn run(ctx) {\n  let v = [1]; loop { v.extend(v.clone()); }\n}",
        "pub fn run(ctx) {\n  ctx.data.v = []; loop { ctx.data.v.push(latte::text(1, 1000)); }\n}",
        "fn f(n) {\n  f(n + 1) + 1 }\npub fn run(ctx) { f(0); }",
        "pub fn run(ctx) {\n  latte::text(1, 1000000000000);\n}",
        "pub fn run(ctx) {\n  latte::blob(1, 1000000000000);\n}",
        "pub fn run(ctx) {\n  latte::vector(1000000000000, |k| k);\n}",
        "pub fn run(ctx) {\n  latte::blob(1, 9223372036854775807);\n}",
        "pub fn run(ctx) {\n  format!(\"{:>1000000000000}\", 1);\n}",
    ] {
        let error = called(text, MEMORY);
        assert!(error.is_limit && error.message.contains("more than 24 MiB"), "{text}: {error}");
        assert!(error.message.contains("--script-memory") && line(&error) == Some(2), "{text}: {error}");
    }
}

#[test]
fn sources_that_nest_too_deep_are_refused_before_they_are_compiled() {
    let hostile = written(&format!("pub fn run(ctx) {{\n  let x = {}", "(".repeat(20_000)));
    let error = describe(&source(&hostile, Limits::default())).unwrap_err().to_string();
    assert!(error.contains("work.rn:2:510: more than 500 brackets are open here"), "{error}");
}

#[test]
fn a_source_is_a_text_of_bounded_length() {
    let hostile = written("");
    let refused = |path: &Path| describe(&Source::new(path)).unwrap_err().to_string();
    std::fs::File::create(&hostile.path).unwrap().set_len(5 << 30).unwrap();
    assert!(
        refused(&hostile.path).contains("work.rn: it has 5 GiB, and 1 MiB is the most"),
        "{}",
        refused(&hostile.path)
    );
    assert!(
        refused(Path::new("/dev/zero")).contains("/dev/zero: it is not a plain file"),
        "{}",
        refused(Path::new("/dev/zero"))
    );
    std::fs::write(&hostile.path, b"pub fn \xff").unwrap();
    assert!(refused(&hostile.path).contains("byte 7 is not UTF-8"), "{}", refused(&hostile.path));
}

#[test]
fn parts_of_a_script_come_from_its_folder() {
    let hostile = written("mod part;\npub fn run(ctx) {}");
    let folder = hostile.path.parent().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("part.rn"), "pub fn f() {}").unwrap();
    let link = |name: &str| std::os::unix::fs::symlink(outside.path().join("part.rn"), folder.join(name)).unwrap();
    let compiled = |any_file| {
        describe(&source(&hostile, Limits { any_file, ..Limits::default() })).map_err(|error| error.to_string())
    };
    link("part.rn");
    let why = compiled(false).unwrap_err();
    assert!(why.contains("work.rn:1:1: part.rn: is not in the script's folder") && why.contains("--allow-fs"), "{why}");
    compiled(true).unwrap();
    std::fs::write(&hostile.path, "pub fn run(ctx) {}").unwrap();
    link("lib.rn");
    let why = compiled(false).unwrap_err();
    assert!(why.contains("lib.rn: is not in the script's folder") && why.contains("--allow-fs"), "{why}");
    compiled(true).unwrap();
}

#[test]
fn a_file_beyond_the_folder_is_an_error_that_says_how_to_read_it() {
    let text = "pub fn run(ctx) {\n  fs::read_to_string(\"/etc/passwd\")?;\n}";
    let error = called(text, Limits::default());
    let words = ["/etc/passwd: is not in the script's folder", "--allow-fs"];
    assert!(words.iter().all(|word| error.message.contains(word)) && line(&error) == Some(2), "{error}");
    for read in [
        "read_lines",
        "read_words",
        "read_resource_lines",
        "read_resource_words",
        "read_resource_to_string",
        "open_binary",
    ] {
        let error = called(&text.replace("read_to_string", read), Limits::default());
        assert!(words.iter().all(|word| error.message.contains(word)), "{read}: {error}");
    }
    let lines = text.replace("read_to_string(\"/etc/passwd\")", "read_split_lines_iter(\"/etc/passwd\", [\";\"])");
    let error = called(&lines, Limits::default());
    assert!(words.iter().all(|word| error.message.contains(word)), "{error}");
}

#[test]
fn an_error_says_no_more_than_people_read() {
    let error = called("pub fn run(ctx) { panic!(\"{}\", latte::text(1, 1000000)) }", Limits::default());
    assert!(error.message.len() < 2100 && error.message.ends_with("more bytes)"), "{}", error.message.len());
}
