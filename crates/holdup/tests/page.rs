//! The page of `holdup view` and of `holdup report` in a browser.
//!
//! The tests themselves are JavaScript (`ui/test`): they need node, Chromium and the packages that `cargo xtask ui` installs.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdup_testing::{Need, has, shared_trace};

/// The demo, recorded once: a recording made here would tell of whatever else the machine does meanwhile.
const DEMO: &str = "../../ui/test/data/demo.holdup";
/// The same, as perf recorded it.
const FOREIGN: &str = "../../ui/test/data/demo.perf.data.gz";

fn ui() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui")
}

/// One browser at a time. `None` where there is none.
#[track_caller]
fn browser() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    let packages = ui().join("node_modules/playwright-core").is_dir();
    let name = "packages of the page (`cargo xtask ui` installs them)";
    let here =
        has(Need::Program("node")) && has(Need::Program("chromium")) && has(Need::Other { name, is_here: packages });
    here.then(|| ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs a file of tests, and shows what it says if it fails.
fn node(test: &str, envs: &[(&str, &str)]) {
    let mut command = Command::new("node");
    command.args(["--test", "--test-reporter=tap", test]).current_dir(ui().join("test")).envs(envs.iter().copied());
    let output = command.output().expect("node runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let count = |what: &str| said.lines().find_map(|l| l.strip_prefix(what)).and_then(|n| n.parse().ok()).unwrap_or(0);
    assert!(count("# pass ") > 0 && count("# skipped ") == 0, "not all tests ran:\n{said}");
}

fn holdup() -> Command {
    Command::new(env!("CARGO_BIN_EXE_holdup"))
}

/// `holdup view`, until it goes out of scope.
struct View {
    child: Child,
    url: String,
}

impl View {
    fn of(traces: &[&str]) -> View {
        let mut command = holdup();
        command.args(["view", "--no-open"]).args(traces).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("holdup starts");
        let mut said = BufReader::new(child.stderr.take().expect("piped")).lines();
        let url = said.find_map(|line| Some(line.ok()?.strip_prefix("holdup: the view is at ")?.to_owned()));
        // What it says later is nobody's, and a full pipe would stop it.
        std::thread::spawn(move || said.for_each(drop));
        View { child, url: url.expect("it prints its address") }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a report of `trace`; without one a page on which a trace is dropped.
fn report(folder: &Path, name: &str, trace: Option<&str>) -> String {
    let path = folder.join(name).display().to_string();
    let output = holdup().arg("report").args(trace).args(["-o", &path]).output().expect("holdup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    path
}

#[test]
fn with_answers_that_are_made_up() {
    let Some(_one) = browser() else { return };
    node("page.mjs", &[]);
}

/// The dip, the culprit, the chain to the holder and the hot instruction: by mouse alone, and by keyboard alone.
#[test]
fn the_first_story_in_the_view() {
    let Some(_one) = browser() else { return };
    let view = View::of(&[DEMO]);
    node("view.mjs", &[("HOLDUP_URL", &view.url)]);
}

/// The demo with spans: 120 of a millisecond, one of 710 ms with one of 680 within, all on threads that wait for the lock; and one whose name is markup.
fn with_spans(folder: &Path) -> String {
    let mut table = String::from("name,start_s,end_s,thread,argument\n");
    for i in 0..120 {
        let start = 0.002 + 0.015 * f64::from(i / 12);
        let _ = writeln!(table, "compile,{start:.6},{:.6},compiler-{:02},fast.c", start + 0.001, i % 12);
    }
    table += "compile,0.17,0.88,compiler-05,slow.c\nemit,0.19,0.87,compiler-05,slow.o\n";
    table += "<img src=x onerror=window.hit=1>,0.9,1.0,compiler-07,<script>window.hit=1</script>\n";
    let (spans, kept) =
        (folder.join("spans.csv").display().to_string(), folder.join("spans.holdup").display().to_string());
    std::fs::write(&spans, table).expect("a table");
    let output = holdup().args(["explain", DEMO, "--spans", &spans, "--keep", &kept]).output().expect("holdup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    kept
}

/// A slow span is seen, chosen and read: its place among all of its name, and the lock's holder that it waited for.
#[test]
fn a_slow_span_in_the_view() {
    let Some(_one) = browser() else { return };
    let folder = tempfile::tempdir().expect("folder");
    let (view, none) = (View::of(&[&with_spans(folder.path())]), View::of(&[DEMO]));
    node("spans.mjs", &[("HOLDUP_URL", &view.url), ("HOLDUP_NONE", &none.url)]);
}

/// The same in files that need no server.
#[test]
fn a_slow_span_in_a_report_from_disk() {
    let Some(_one) = browser() else { return };
    let folder = tempfile::tempdir().expect("folder");
    let spans = report(folder.path(), "spans.html", Some(&with_spans(folder.path())));
    let (url, none) = (format!("file://{spans}"), report(folder.path(), "none.html", Some(DEMO)));
    node("spans.mjs", &[("HOLDUP_URL", &url), ("HOLDUP_NONE", &format!("file://{none}"))]);
}

#[test]
fn the_first_story_in_a_report_from_disk() {
    let Some(_one) = browser() else { return };
    let folder = tempfile::tempdir().expect("folder");
    let (told, drop) = (report(folder.path(), "demo.html", Some(DEMO)), report(folder.path(), "drop.html", None));
    node("report.mjs", &[("HOLDUP_REPORT", &told), ("HOLDUP_DROP", &drop), ("HOLDUP_TRACE", &absolute(DEMO))]);
}

/// Who recorded switches and wake-ups with perf learns the same, but for locks and instructions.
#[test]
fn the_first_story_on_a_foreign_trace() {
    let Some(_one) = browser() else { return };
    let folder = tempfile::tempdir().expect("folder");
    foreign_story(folder.path(), FOREIGN, "high");
}

/// The demo as Perfetto has it: no code, and the lock is known by its function alone.
#[test]
fn the_first_story_on_a_trace_of_perfetto() {
    let Some(_one) = browser() else { return };
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("demo.pftrace").display().to_string();
    let output = holdup().args(["export", DEMO, "--format", "perfetto", "-o", &path]).output().expect("holdup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    foreign_story(folder.path(), &path, "high");
}

/// What others recorded on Windows and on a phone.
#[test]
fn the_first_story_on_real_traces_of_windows_and_android() {
    let Some(_one) = browser() else { return };
    // What each says first, and whether it has wake-ups.
    let traces = [
        ("win7-8cpu-slow-ppt.etl", "CPU time went into work, .* of POWERPNT.EXE", ""),
        ("android12-4cpu-switch-stacks.pftrace", "waited for input from outside|stood still", "yes"),
    ];
    for (name, says, chain) in traces {
        let Some(trace) = shared_trace(name).map(|path| path.display().to_string()) else { return };
        let folder = tempfile::tempdir().expect("folder");
        let (told, view) = (report(folder.path(), "told.html", Some(&trace)), View::of(&[&trace]));
        let said = [
            ("HOLDUP_URL", view.url.as_str()),
            ("HOLDUP_REPORT", &told),
            ("HOLDUP_SAYS", says),
            ("HOLDUP_CHAIN", chain),
        ];
        node("abroad.mjs", &said);
    }
}

/// The demo, in which names begin with what would be markup, a script or an escape of a terminal.
fn hostile(folder: &Path) -> String {
    const EVIL: &str = "<img src=x onerror=\"window.hit=1\"><script>window.hit=1</script>\"'&{{7*7}}\u{1b}[31m\u{202e}";
    let mut trace = holdup_trace::file::read(Path::new(DEMO)).expect("the demo");
    for i in 1..trace.threads.tid.len() {
        let [name, process] =
            [trace.threads.name[i], trace.threads.process[i]].map(|id| format!("{EVIL}{}", trace.text(id)));
        trace.threads.name[i] = trace.strings.intern(&name);
        trace.threads.process[i] = trace.strings.intern(&process);
    }
    let path = folder.join("<img src=x onerror=window.hit=1>.holdup");
    holdup_trace::file::write(&trace, &path).expect("written");
    path.display().to_string()
}

#[test]
fn hostile_names_in_the_view_and_in_a_report() {
    let Some(_one) = browser() else { return };
    let folder = tempfile::tempdir().expect("folder");
    let trace = hostile(folder.path());
    let (told, view) = (report(folder.path(), "told.html", Some(&trace)), View::of(&[&trace]));
    node("hostile.mjs", &[("HOLDUP_URL", &view.url), ("HOLDUP_REPORT", &told)]);
}

fn foreign_story(folder: &Path, trace: &str, confidence: &str) {
    let told = report(folder, "told.html", Some(trace));
    let view = View::of(&[trace]);
    let said = [("HOLDUP_URL", view.url.as_str()), ("HOLDUP_REPORT", &told), ("HOLDUP_CONFIDENCE", confidence)];
    node("foreign.mjs", &said);
}

fn absolute(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(path)
        .canonicalize()
        .expect("it is in the repository")
        .display()
        .to_string()
}
