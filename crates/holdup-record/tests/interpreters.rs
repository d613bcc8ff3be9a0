//! Functions of Python, PHP and JavaScript in recordings of real programs.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use holdup_base::Claim;
use holdup_record::{Options, Target, record};
use holdup_testing::{Need, has};
use holdup_trace::{Destination, Image, RawStack, Trace, TraceBuilder, Unwinder, interpreted_address, is_interpreted};

/// One recording at a time: they catch the process's signals.
static ONE: Mutex<()> = Mutex::new(());

/// Knows nothing of callers: what is found beyond the leaf is the interpreter's, or what frames on the stack lead to.
struct LeafOnly;

impl Unwinder for LeafOnly {
    fn unwind(&mut self, _: &[Arc<Image>], raw: &RawStack) -> (Vec<u64>, bool) {
        let mut pointed = raw.interpreted.pointed.clone();
        pointed.sort_by_key(|frame| frame.pointer);
        let functions = pointed.iter().map(|frame| interpreted_address(frame.function));
        (std::iter::once(raw.ip).chain(functions).collect(), false)
    }
}

/// What `script` does, recorded, and what the recorder had to say; `None` where that cannot be.
fn recorded(script: &str, name: &str) -> Option<(Trace, Vec<String>)> {
    if !has(Need::Recording) || !has(Need::Program("python3")) {
        return None;
    }
    let dir = tempfile::tempdir().expect("dir");
    let file = dir.path().join(name);
    std::fs::write(&file, script).expect("script");
    Some(run(dir.path(), &[OsString::from("python3"), "-S".into(), file.into_os_string()]))
}

/// A command, recorded in a folder.
fn run(dir: &Path, argv: &[OsString]) -> (Trace, Vec<String>) {
    let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
    let spool = dir.join("spool");
    let options = Options { target: Target::Command { argv: argv.into() }, ..Options::default() };
    let claim = Claim::take(&spool).expect("spool").0;
    let (outcome, _) = record(&options, claim, &mut |_| {}, &AtomicBool::new(false)).expect("recording");
    (open(&spool), outcome.notes)
}

fn open(spool: &Path) -> Trace {
    let mut builder = TraceBuilder::new(&Destination::Memory).expect("builder");
    builder.set_unwinder(Box::new(LeafOnly));
    holdup_spool::read(spool, &mut builder).expect("spool");
    builder.finish(None).expect("trace")
}

/// The interpreted functions around each wait of at least 50 ms, the innermost first, each with its line.
fn long_waits(trace: &Trace) -> Vec<Vec<(String, u32)>> {
    long_waits_of(trace, |_| true)
}

/// The same of the threads of such names.
fn long_waits_of(trace: &Trace, is_wanted: impl Fn(&str) -> bool) -> Vec<Vec<(String, u32)>> {
    let waits = trace.waits.load().expect("waits");
    let name = |i: usize| trace.thread(waits.thread[i]).map_or("", |t| trace.text(t.name));
    let is_long = |&i: &usize| waits.t[i].nanos() - waits.start[i].nanos() > 50_000_000;
    let long = (0..waits.t.len()).filter(is_long).filter(|&i| is_wanted(name(i)));
    let of_stack = |i: usize| {
        let interpreted = trace
            .stacks
            .frames(waits.stack[i])
            .filter(|&f| trace.stacks.frame(f).is_some_and(|frame| is_interpreted(frame.address)));
        let named = |f| trace.names.locations(f).map(|l| (trace.text(l.function).to_owned(), l.line)).next();
        interpreted.filter_map(named).collect()
    };
    long.map(of_stack).filter(|frames: &Vec<_>| !frames.is_empty()).collect()
}

const NESTED: &str = "
import time, threading
class Depot:
    def fetch(self):
        time.sleep(0.1)
def order(depot):
    depot.fetch()
time.sleep(0.2)
t = threading.Thread(target=order, args=(Depot(),))
t.start()
t.join()
order(Depot())
";

#[test]
fn waits_are_in_functions_of_python() {
    let Some((trace, notes)) = recorded(NESTED, "nested.py") else { return };
    let waits = long_waits(&trace);
    // Before 3.11, which has tables of lines, those in which the functions begin.
    let tells_lines = Command::new("python3").args(["-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).status();
    let (fetch, order, main) = if tells_lines.expect("Python").success() { (5, 7, 12) } else { (4, 6, 1) };
    let is = |frame: &(String, u32), name: &str, line| frame.0.rsplit('.').next() == Some(name) && frame.1 == line;
    let of_main = |frames: &&Vec<(String, u32)>| matches!(&frames[..], [a, b, c] if is(a, "fetch", fetch) && is(b, "order", order) && is(c, "<module>", main));
    assert!(waits.iter().any(|frames| of_main(&frames)), "{waits:?} {notes:?}");
    let of_thread = |frames: &&Vec<(String, u32)>| matches!(&frames[..], [a, b, .., z] if is(a, "fetch", fetch) && is(b, "order", order) && z.0.ends_with("_bootstrap"));
    assert!(waits.iter().any(|frames| of_thread(&frames)), "{waits:?} {notes:?}");
}

const FORKED: &str = "
import os, time
def in_child():
    time.sleep(0.1)
time.sleep(0.1)
child = os.fork()
if child == 0:
    in_child()
    os._exit(0)
os.waitpid(child, 0)
time.sleep(0.1)
";

#[test]
fn what_was_forked_has_functions_at_once() {
    let Some((trace, notes)) = recorded(FORKED, "forked.py") else { return };
    let waits = long_waits(&trace);
    assert!(waits.iter().any(|frames| frames.first().is_some_and(|f| f.0 == "in_child")), "{waits:?} {notes:?}");
}

const SHORT: &str = "
import threading, time
def answer():
    end = time.perf_counter() + 0.005
    while time.perf_counter() < end: pass
    time.sleep(0.06)
time.sleep(0.2)
for _ in range(20):
    thread = threading.Thread(target=answer)
    thread.start()
    thread.join()
";

/// A server that has a thread for each request has none that is older than a request.
#[test]
fn threads_have_functions_from_their_first_milliseconds() {
    let Some((trace, notes)) = recorded(SHORT, "short.py") else { return };
    let waits = long_waits(&trace);
    let named = waits.iter().filter(|frames| frames.first().is_some_and(|f| f.0 == "answer")).count();
    assert!(named >= 15, "{named} of 20: {waits:?} {notes:?}");
}

const YARD: &str = "
class Depot
  def fetch
    sleep 0.1
  end
end
def order(depot)
  2.times { depot.fetch }
end
sleep 0.2
Thread.new { order(Depot.new) }.join
order(Depot.new)
";

#[test]
fn waits_are_in_functions_of_ruby() {
    if !has(Need::Recording) || !has(Need::Program("ruby")) {
        return;
    }
    let version = Command::new("ruby").args(["-e", "print RUBY_VERSION"]).output().expect("Ruby").stdout;
    if !has(Need::Other { name: "a Ruby whose frames are known", is_here: version.starts_with(b"3.1.") }) {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let file = dir.path().join("yard.rb");
    std::fs::write(&file, YARD).expect("script");
    let (trace, notes) = run(dir.path(), &[OsString::from("ruby"), "--disable-gems".into(), file.into_os_string()]);
    let waits = long_waits(&trace);
    let ends = |frames: &[(String, u32)], inner: &[(&str, u32)]| {
        let told = frames.iter().map(|(name, line)| (&name[..], *line));
        told.filter(|(name, _)| !name.contains("times")).take(inner.len()).eq(inner.iter().copied())
    };
    let of_main = [("fetch", 3), ("block in order", 8), ("order", 7), ("<main>", 0)];
    assert!(waits.iter().any(|frames| ends(frames, &of_main)), "{waits:?} {notes:?}");
    let of_thread = [("fetch", 3), ("block in order", 8), ("order", 7), ("block in <main>", 11)];
    assert!(waits.iter().any(|frames| ends(frames, &of_thread)), "{waits:?} {notes:?}");
}

const SHOP: &str = "<?php
class Depot {
  function fetch() { usleep(100000); }
}
function order($depots) {
  return array_map(function ($depot) { return $depot->fetch(); }, $depots);
}
usleep(200000);
order([new Depot]);
(new Depot)->fetch();
";

#[test]
fn waits_are_in_functions_of_php() {
    if !has(Need::Recording) || !has(Need::Program("php")) {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let file = dir.path().join("shop.php");
    std::fs::write(&file, SHOP).expect("script");
    // Without its configuration: what that loads may run threads, and compile functions.
    let (trace, notes) = run(dir.path(), &[OsString::from("php"), "-n".into(), file.into_os_string()]);
    let waits = long_waits(&trace);
    let named = |frames: &[(String, u32)]| frames.iter().map(|(f, line)| format!("{f}:{line}")).collect::<Vec<_>>();
    let waits: Vec<_> = waits.iter().map(|frames| named(frames)).collect();
    let of_order = ["usleep:0", "Depot::fetch:3", "{closure}:6", "array_map:0", "order:5", "{main}:1"];
    assert!(waits.iter().any(|frames| frames == &of_order), "{waits:?} {notes:?}");
    assert!(waits.iter().any(|frames| frames == &["usleep:0", "Depot::fetch:3", "{main}:1"]), "{waits:?} {notes:?}");
}

const HOSTILE: &str = "
import time
def plain(): time.sleep(0.1)
def named(name):
    code = plain.__code__.replace(co_name=name)
    if hasattr(code, 'co_qualname'): code = code.replace(co_qualname=name)
    return type(plain)(code, globals())
time.sleep(0.1)
kept = [named('\\x1b]0;x\\x07' + 'n' * 1000000), named('\\U0001f40d' * 500), named('\\ud800 a\\nb')]
for function in kept: function()
def deep(n): deep(n - 1) if n else time.sleep(0.1)
deep(400)
time.sleep(0.1)
";

#[test]
fn names_are_bounded_and_deep_recursion_is_cut() {
    let Some((trace, notes)) = recorded(HOSTILE, "hostile.py") else { return };
    let waits = long_waits(&trace);
    let innermost: Vec<&str> = waits.iter().filter_map(|frames| Some(frames.first()?.0.as_str())).collect();
    assert!(
        innermost.iter().any(|n| n.starts_with("\u{1b}]0;x\u{7}nnn") && n.ends_with("n…")),
        "{innermost:?} {notes:?}"
    );
    assert!(innermost.iter().any(|n| n.starts_with('🐍')) && innermost.contains(&"\u{fffd} a\nb"), "{innermost:?}");
    assert!(innermost.iter().all(|n| n.chars().count() <= 201));
    let deepest = waits.iter().filter(|frames| frames.first().is_some_and(|f| f.0 == "deep")).map(Vec::len).max();
    assert!(deepest.is_some_and(|n| (100..=128).contains(&n)), "{deepest:?}");
}

#[test]
fn a_planted_interpreter_is_walked_no_further_than_a_real_one() {
    if !has(Need::Recording) || !has(Need::Program("cc")) {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let (program, source) = (dir.path().join("python3.8"), concat!(env!("CARGO_MANIFEST_DIR"), "/tests/planted.c"));
    let built = Command::new("cc").args(["-O1", "-rdynamic", "-pthread", "-o"]).arg(&program).arg(source).status();
    assert!(built.expect("cc").success());
    let (trace, notes) = run(dir.path(), &[program.into_os_string()]);
    // Other interpreters of this machine have longer functions.
    let waits = long_waits_of(&trace, |name| name == "python3.8");
    // A circle of frames ends at the limit; a name without an end is not believed.
    assert!(waits.iter().all(|frames| frames.len() <= 128), "{notes:?}");
    assert!(waits.iter().flatten().all(|(name, line)| name.chars().count() <= 201 && *line <= 7), "{waits:?}");
    assert_eq!(trace.losses.rows(), 0, "{:?}", trace.losses());
    let all = trace.waits.load().expect("waits");
    let naps = (0..all.t.len()).filter(|&i| {
        let is_mine = trace.thread(all.thread[i]).is_some_and(|t| trace.text(t.name) == "python3.8");
        is_mine && all.t[i].nanos() - all.start[i].nanos() > 50_000_000
    });
    assert!(naps.count() >= 10, "nothing of it is lost");
}

const JAVASCRIPT: &str = "
class Depot {
  fetch(ms) { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms); }
}
function order(depot) { depot.fetch(100); }
const each = [() => order(new Depot())];
function audit(depot) {
  depot.fetch(100);
}
// Functions are read while their process lives.
setTimeout(() => { for (const f of each) f(); audit(new Depot()); setTimeout(() => {}, 500); }, 300);
";

#[test]
fn functions_of_javascript_are_found_by_their_frames() {
    if !has(Need::Recording) || !has(Need::Program("node")) {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    let file = dir.path().join("app.js");
    std::fs::write(&file, JAVASCRIPT).expect("script");
    let (trace, notes) = run(dir.path(), &[OsString::from("node"), file.clone().into_os_string()]);
    let waits = long_waits(&trace);
    let through = |names: &[(&str, u32)]| {
        let is = |wait: &Vec<(String, u32)>| wait.iter().zip(names).all(|(a, b)| (a.0.as_str(), a.1) == *b);
        waits.iter().any(|wait| wait.len() > names.len() && is(wait))
    };
    // Two functions that are interpreted, and called from the same address, are told apart.
    // V8 calls what has no name by what it was given to.
    assert!(through(&[("fetch", 3), ("order", 5), ("each", 6)]), "{waits:?} {notes:?}");
    assert!(through(&[("fetch", 3), ("audit", 7)]), "{waits:?} {notes:?}");
    let is_there = |i| trace.text(trace.names.location(i).file) == file.to_string_lossy();
    assert!((0..trace.names.count()).any(is_there), "its file");
}
