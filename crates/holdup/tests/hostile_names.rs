//! Names from outside do nothing but appear: not on a terminal, not in a pipe, a spreadsheet or a picture.
//!
//! Everything in a trace that somebody else may choose is hostile here, and every command that shows text shows it.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use holdup_base::text::clean;
use holdup_trace::{
    BlockedEvent, ChainId, Cpu, Destination, Image, Location, LockId, LockKey, LockKind, LostEvent, MapEvent,
    NameEvent, Nanos, SampleEvent, SourceLine, SwitchEvent, SwitchState, Symbolizer, Trace, TraceBuilder, WakeContext,
    WakeEvent, file,
};

/// Sets a title, clears the screen, writes over the line, turns the direction, ends strings and tags. None of this
/// program's own styles has a red background.
const EVIL: &str =
    "e\x1b]0;t\x07\x1b[2J\x1b[41m\r\u{9b}2J\u{85}\0\u{202e}\u{2066}\u{200b}\u{feff}\u{ffff};<b>&\"'\n]]>v";
const FORMULA: &str = "=cmd|' /C calc'!A0";
/// `1: pause; mov (%rdi),%eax; test %eax,%eax; je 1b; ret`
const SPIN: [u8; 9] = [0xf3, 0x90, 0x8b, 0x07, 0x85, 0xc0, 0x74, 0xf8, 0xc3];
const CODE: u64 = 0x40_0000;
const MS: u64 = 1_000_000;

fn evil(part: &str) -> String {
    format!("{part}{EVIL}")
}

struct Namer;

impl Symbolizer for Namer {
    fn locate(&mut self, _: bool, _: &[Arc<Image>], address: u64) -> Vec<Location> {
        let (function, module, file) = (evil("spins"), evil("/bin/"), evil("/src/"));
        vec![Location { function, module, file, line: 1, offset: address - CODE }]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], _: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        Some((CODE, SPIN.to_vec()))
    }

    fn lines(&mut self, _: &[Arc<Image>], _: u64, _: usize) -> Vec<SourceLine> {
        vec![SourceLine { offset: 0, inlined: evil("inlined"), file: evil("/src/"), line: 1 }]
    }
}

fn switch(cpu: u16, prev: u32, state: SwitchState, next: u32, lock: LockId) -> SwitchEvent {
    let (syscall, chain) = (if state == SwitchState::Sleeping { 202 } else { -1 }, ChainId::NONE);
    SwitchEvent { cpu: Cpu(cpu), prev, next, state, io_wait: false, syscall, lock, chain }
}

/// A thread spins with a lock from 10 to 60 ms, while another waits for it.
fn trace() -> Trace {
    let mut b = TraceBuilder::new(&Destination::Memory).expect("builder");
    let meta = b.meta_mut();
    (meta.cpus, meta.focus_pids) = (2, vec![10]);
    (meta.format, meta.host.name, meta.host.os, meta.host.cpu) = (evil("f"), evil("h"), evil("o"), evil("c"));
    (meta.host.arch, meta.sample_period_ns) = ("x86_64".into(), MS);
    (meta.command, meta.hooks, meta.notes) = (vec![evil("cmd")], vec![evil("hook")], vec![evil("note").into()]);
    b.count_native(&evil("native"), 3);
    for (tid, name) in [(10, evil("app")), (11, evil("holder")), (12, FORMULA.to_owned()), (13, evil("app"))] {
        let name = b.string(&name);
        b.push(0, NameEvent { pid: 10, tid, name });
    }
    let image = Image { start: CODE, end: CODE + 4096, path: evil("/bin/"), pid: 10, ..Image::default() };
    let image = b.image(image);
    b.push(0, MapEvent { pid: 10, image });
    let lock = b.lock(LockKey { kind: LockKind::Futex, pid: 10, address: 0x1000 });
    b.push(1, switch(0, 0, SwitchState::Runnable, 11, LockId::NONE));
    b.push(1, switch(1, 0, SwitchState::Runnable, 12, LockId::NONE));
    b.push(10 * MS, switch(1, 12, SwitchState::Sleeping, 0, lock));
    for i in 0..40 {
        let ip = CODE + 2;
        let chain = b.chain(10, &[], &[ip]);
        b.push((12 + i) * MS, SampleEvent { cpu: Cpu(0), tid: 11, ip, bp: 0, chain });
    }
    let what = b.string(&evil("lost"));
    b.push(55 * MS, LostEvent { kind: holdup_trace::LossKind::Events, cpu: Cpu(0), span: Nanos(MS), count: 2, what });
    let chain = b.chain(10, &[], &[CODE + 2]);
    let (context, target) = (WakeContext::Task, Cpu(1));
    b.push(60 * MS, WakeEvent { cpu: Cpu(0), waker: 11, wakee: 12, context, source: 0, target, lock, chain });
    b.push(61 * MS, switch(1, 0, SwitchState::Runnable, 12, LockId::NONE));
    b.push(61 * MS, BlockedEvent { tid: 12, chain, lock });
    b.push(100 * MS, switch(0, 11, SwitchState::Dead, 0, LockId::NONE));
    b.finish(Some(&mut Namer)).expect("trace")
}

/// The trace in a folder of its own, under a hostile name.
fn written(folder: &Path) -> String {
    let path = folder.join("t\x1b[2J\u{202e}\r.holdup");
    file::write(&trace(), &path).expect("write");
    path.display().to_string()
}

fn run(args: &[&str], forced: bool) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdup"));
    command.args(args).stdin(Stdio::null()).env("COLUMNS", "100").env_remove("NO_COLOR");
    if forced {
        command.env("CLICOLOR_FORCE", "1")
    } else {
        command.env_remove("CLICOLOR_FORCE")
    };
    command.output().expect("the binary starts")
}

/// `text` without the styles that this program may use.
fn unstyled(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find('m').unwrap_or_else(|| panic!("not a style: {part:?}"));
        let numbers = part[..end].strip_prefix('[').unwrap_or_else(|| panic!("not a style: {part:?}"));
        assert!(
            numbers.bytes().all(|b| b.is_ascii_digit() || b == b';') && numbers != "41",
            "a foreign style: {part:?}"
        );
        out.push_str(&part[end + 1..]);
    }
    out
}

/// Nothing acts in what the command prints, piped and styled. Returns what stands on standard output.
fn harmless(args: &[&str]) -> String {
    let plain = run(args, false);
    if args.iter().any(|a| *a == "--flame" || *a == "--plot") {
        assert_eq!(plain.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&plain.stderr));
    }
    for (output, forced) in [(&plain, false), (&run(args, true), true)] {
        for bytes in [&output.stdout, &output.stderr] {
            let text = std::str::from_utf8(bytes).expect("UTF-8");
            let text = if forced { unstyled(text) } else { text.to_owned() };
            let acts = |c: char| c.is_control() && c != '\n' || EVIL.contains(c) && !c.is_ascii();
            let at = text.find(acts);
            assert!(at.is_none(), "{args:?}: {:?}", at.map(|at| text[at..].chars().take(40).collect::<String>()));
        }
    }
    assert!(plain.status.code().is_some_and(|code| code <= 3), "{args:?}: {:?}", plain.status);
    String::from_utf8(plain.stdout).expect("UTF-8")
}

/// As [`harmless`]; a hostile name is shown, as an escape.
fn shows(args: &[&str], escape: &str) -> String {
    let text = harmless(args);
    assert!(text.contains(escape), "{args:?}: {text}");
    text
}

#[test]
fn no_page_of_a_trace_acts() {
    let folder = tempfile::tempdir().expect("dir");
    let t = written(folder.path());
    for args in [
        &["explain", &t][..],
        &["info", &t],
        &["threads", &t],
        &["threads", &t, "--all", "--sort", "name"],
        &["chain", &t, "--at", "0.03", "--follow"],
        &["disasm", &t, "spins"],
        &["disasm", &t, "spins", "--all"],
        &["diff", &t, "--vs", &t],
        &["diff", &t, "--vs", &t, "--per", "2:1", "--fail-on", "1%"],
        &["table", &t, "switches"],
        &["table", &t, "cpu", "--by", "function,thread,process"],
        &["table", &t, "wakes"],
        &["table", &t, "locks"],
        &[
            "export",
            &t,
            "--format",
            "folded",
            "--stacks",
            "on-cpu,off-cpu,wakers,blame",
            "--per-thread",
            "-o",
            "/dev/stdout",
        ],
    ] {
        shows(args, "\\x1b");
    }
}

#[test]
fn no_document_of_a_trace_acts_and_each_says_the_same() {
    let folder = tempfile::tempdir().expect("dir");
    let t = written(folder.path());
    for args in [
        &["explain", &t, "--json"][..],
        &["info", &t, "--json"],
        &["threads", &t, "--json"],
        &["chain", &t, "--at", "0.03", "--follow", "--json"],
        &["disasm", &t, "spins", "--json"],
        &["diff", &t, "--vs", &t, "--per", "2:1", "--json"],
        &["table", &t, "switches", "--json"],
        &["export", &t, "--format", "json", "-o", "/dev/stdout"],
        &["export", &t, "--format", "speedscope", "--per-thread", "-o", "/dev/stdout"],
        &["export", &t, "--format", "firefox", "-o", "/dev/stdout"],
    ] {
        let text = shows(args, "\\u001b");
        let document: serde_json::Value = serde_json::from_str(&text).expect("one document");
        assert!(document.is_object(), "{args:?}");
    }
    let lines = shows(&["export", &t, "--format", "ndjson", "-o", "/dev/stdout"], "\\u001b");
    assert!(lines.lines().all(|l| serde_json::from_str::<serde_json::Value>(l).is_ok_and(|v| v["table"].is_string())));
    let threads = harmless(&["threads", &t, "--json"]);
    let threads: serde_json::Value = serde_json::from_str(&threads).expect("one document");
    let names: Vec<&str> =
        threads["threads"].as_array().expect("rows").iter().filter_map(|t| t["name"].as_str()).collect();
    assert!(names.contains(&evil("holder").as_str()) && names.contains(&FORMULA), "{names:?}");
}

/// The cells of a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cells.last_mut().expect("a cell").push(c),
        }
    }
    cells
}

#[test]
fn no_cell_of_a_spreadsheet_is_a_formula() {
    let folder = tempfile::tempdir().expect("dir");
    let t = written(folder.path());
    let text = shows(&["table", &t, "switches", "--format", "csv", "--columns", "thread,process,tid"], "\\x1b");
    assert!(text.lines().count() > 2);
    for line in text.lines() {
        let cells = cells(line);
        assert_eq!(cells.len(), 3, "{line}");
        assert!(!cells.iter().any(|c| c.starts_with(['=', '+', '-', '@', '\t', '\r'])), "{line}");
    }
    assert!(text.contains(&format!("'{FORMULA}")), "{text}");
    // What is written into a file is the same.
    let file = folder.path().join("t.csv");
    let path = file.display().to_string();
    harmless(&["table", &t, "switches", "--format", "csv", "--columns", "thread,process,tid", "-o", &path]);
    assert_eq!(std::fs::read_to_string(file).expect("the table"), text);
}

fn titles(svg: &str) -> Vec<String> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(svg, options).expect("valid XML");
    assert!(!document.descendants().any(|node| node.has_tag_name("b")));
    document.descendants().filter(|n| n.has_tag_name("title")).filter_map(|n| n.text()).map(str::to_owned).collect()
}

#[test]
fn a_folded_line_is_one_stack_whatever_it_is_called() {
    let folder = tempfile::tempdir().expect("dir");
    let t = written(folder.path());
    let text = harmless(&["export", &t, "--format", "folded", "-o", "/dev/stdout"]);
    // The process and its function: 40 samples of a millisecond.
    let (path, weight) = text.trim_end().rsplit_once(' ').expect("a weight");
    let framed = |part: &str| clean(&evil(part)).replace(';', ":");
    assert_eq!((path, weight), (format!("{};{}", framed("app"), framed("spins")).as_str(), "40000"));
}

#[test]
fn a_flame_graph_is_valid_and_its_frames_stay_whole() {
    let folder = tempfile::tempdir().expect("dir");
    let t = written(folder.path());
    let file = folder.path().join("f.svg");
    harmless(&["diff", &t, "--vs", &t, "--per", "2:1", "--flame", &file.display().to_string()]);
    let svg = std::fs::read_to_string(file).expect("the picture");
    assert!(!svg.contains(|c: char| EVIL.contains(c) && !c.is_ascii()), "{svg}");
    let titles = titles(&svg);
    // All, the program, its function.
    assert_eq!(titles.len(), 3, "{titles:?}");
    assert!(titles[2].starts_with(&clean(&evil("spins")).replace(';', ":")), "{titles:?}");
}

#[test]
fn a_flame_graph_of_one_recording_is_valid() {
    let folder = tempfile::tempdir().expect("dir");
    let (t, file) = (written(folder.path()), folder.path().join("f.svg").display().to_string());
    for args in [&["table", &t, "cpu", "--flame", &file] as &[&str], &["explain", &t, "--flame", &file]] {
        harmless(args);
        let titles = titles(&std::fs::read_to_string(&file).expect("the picture"));
        assert!(titles.iter().any(|t| t.starts_with(&clean(&evil("spins")).replace(';', ":"))), "{args:?}");
    }
    assert!(harmless(&["table", &t, "cpu", "--around", "spins"]).contains("itself"));
}

#[test]
fn a_scaling_plot_is_valid() {
    let folder = tempfile::tempdir().expect("dir");
    let file = folder.path().join("s.svg");
    let word = evil("").replace('\0', "");
    let plot = file.display().to_string();
    let args = ["scale", "--threads", "1,2", "--runs", "1", "--plot", &plot, "--", "sh", "-c", ": {n}", &word];
    harmless(&args);
    let svg = std::fs::read_to_string(file).expect("the picture");
    let document = roxmltree::Document::parse(&svg).expect("valid XML");
    let heading = document.descendants().filter_map(|n| n.text()).any(|t| t.contains("\\x1b[2J"));
    assert!(heading, "{svg}");
}

#[test]
fn no_error_acts() {
    let bad = "no\x1b[2J\x1b]0;t\x07\u{202e}\u{9b}\r";
    let folder = tempfile::tempdir().expect("dir");
    let t = written(folder.path());
    for args in [
        &[bad][..],
        &["explain", bad],
        &["info", bad],
        &["info", &t, bad],
        &["disasm", &t, bad],
        &["chain", &t, "--wait", bad],
        &["chain", &t, "--at", "0.03", "--thread", bad],
        &["table", &t, bad],
        &["table", &t, "switches", "--by", bad],
        &["table", &t, "switches", "--format", bad],
        &["table", &t, "switches", "--where", bad],
        &["explain", &t, "--focus", bad],
        &["lab", "run", bad],
        &["lab", "compare", bad, bad],
        &["load", "show", bad],
        &["check", "--only", bad],
        &["man", bad],
    ] {
        harmless(args);
        let error = String::from_utf8(run(args, false).stderr).expect("UTF-8");
        assert!(error.contains("\\x1b"), "{args:?}: {error}");
    }
}

/// Puts `to` in place of each string of a document, but for its schema.
fn replace(value: &mut serde_json::Value, to: &str) {
    match value {
        serde_json::Value::String(text) if !text.starts_with("holdup.") => *text = to.to_owned(),
        serde_json::Value::Array(items) => items.iter_mut().for_each(|v| replace(v, to)),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(|v| replace(v, to)),
        _ => {}
    }
}

#[test]
fn a_result_of_the_lab_from_elsewhere_does_not_act() {
    let folder = tempfile::tempdir().expect("dir");
    let [a, b] = ["a.json", "b.json"].map(|name| folder.path().join(name));
    let path = a.display().to_string();
    harmless(&["lab", "run", "counters", "--quick", "--threads", "1", "--set", "rounds=2", "-o", &path]);
    let mut report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&a).expect("a result")).expect("JSON");
    replace(&mut report, EVIL);
    for (file, factor) in [(&a, 1.0), (&b, 9.0)] {
        for series in report["experiments"][0]["series"].as_array_mut().expect("series") {
            for point in series["points"].as_array_mut().expect("points") {
                for part in ["median", "low", "high"] {
                    point[part] = (point[part].as_f64().expect("a number") * factor).into();
                }
            }
        }
        std::fs::write(file, report.to_string()).expect("a result");
    }
    shows(&["lab", "compare", &path, &b.display().to_string()], "\\x1b");
    shows(&["lab", "compare", &path, &b.display().to_string(), "--json"], "\\u001b");
}

#[cfg(feature = "script")]
#[test]
fn a_report_of_load_from_elsewhere_and_a_script_do_not_act() {
    let folder = tempfile::tempdir().expect("dir");
    let (script, report) = (folder.path().join("s.rn"), folder.path().join("r.json"));
    let (script, path) = (script.display().to_string(), report.display().to_string());
    let evil = EVIL.replace('\0', "").replace(['"', '\r', '\n'], "");
    std::fs::write(&script, format!("pub async fn run(ctx, i) {{ println!(\"{evil}\"); Err(\"{evil}\") }}"))
        .expect("a script");
    let once = ["load", "run", &script, "-d", "3", "-w", "0", "-t", "1", "--concurrency", "1", "-o", &path];
    let printed = String::from_utf8(run(&once, false).stderr).expect("UTF-8");
    assert!(printed.contains("\\x1b"), "{printed}");
    harmless(&once);
    let mut document: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&report).expect("a report")).expect("JSON");
    replace(&mut document, EVIL);
    std::fs::write(&report, document.to_string()).expect("a report");
    // A kind is one of a few words, or the report is refused.
    assert_eq!(harmless(&["load", "show", &path]), "");
    document["cut_kind"] = "error".into();
    std::fs::write(&report, document.to_string()).expect("a report");
    for args in [
        &["load", "show", &path][..],
        &["load", "compare", &path, &path],
        &["load", "list", &folder.path().display().to_string()],
    ] {
        harmless(args);
    }
    shows(&["load", "show", &path], "\\x1b");
    let plot = folder.path().join("p.svg");
    harmless(&["load", "show", &path, "--plot", &plot.display().to_string()]);
    let svg = std::fs::read_to_string(plot).expect("the picture");
    roxmltree::Document::parse(&svg).expect("valid XML");
    std::fs::write(&script, format!("pub fn run(ctx) {{ {evil} }}")).expect("a script");
    harmless(&["load", "run", &script]);
    harmless(&["load", "list", &script]);
}
