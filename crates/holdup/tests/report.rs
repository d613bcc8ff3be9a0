//! `holdup report` and `holdup cut`: one file, without what `--redact` takes out, and nothing of it markup.

#![allow(missing_docs)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use holdup_trace::{
    ChainId, Cpu, Destination, Image, Location, LockId, MapEvent, NameEvent, Nanos, PlacementEvent, SampleEvent,
    SwitchEvent, SwitchState, Symbolizer, Trace, TraceBuilder, WakeContext, WakeEvent, file,
};

const MS: u64 = 1_000_000;
const CODE: u64 = 0x40_0000;
const HOST: &str = "secrethost-7";
/// What is not to be found in a redacted file. Names of functions, threads and processes stay.
const SECRETS: [&str; 6] = [HOST, "hunter2", "/home/ann", "ann.scope", "/srv/ann", "secretproject"];
const MARKUP: &str = "</script><img src=x onerror=alert(1)>";

struct Namer;

impl Symbolizer for Namer {
    fn locate(&mut self, _: bool, _: &[Arc<Image>], address: u64) -> Vec<Location> {
        let [function, module, file] =
            ["crunch", "/home/ann/secretproject/bin/app", "/srv/ann/secretproject/src/crunch.c"].map(str::to_owned);
        vec![Location { function, module, file, line: 12, offset: address - CODE }]
    }

    fn code(&mut self, _: bool, _: &[Arc<Image>], _: u64, _: usize) -> Option<(u64, Vec<u8>)> {
        Some((CODE, vec![0x90, 0xc3]))
    }
}

fn switch(cpu: u16, prev: u32, state: SwitchState, next: u32) -> SwitchEvent {
    SwitchEvent {
        cpu: Cpu(cpu),
        prev,
        next,
        state,
        io_wait: false,
        syscall: -1,
        lock: LockId::NONE,
        chain: ChainId::NONE,
    }
}

/// One thread works while another waits for it.
fn trace() -> Trace {
    let mut b = TraceBuilder::new(&Destination::Memory).expect("builder");
    let meta = b.meta_mut();
    (meta.cpus, meta.format, meta.sample_period_ns) = (2, "holdup".into(), MS);
    (meta.host.name, meta.host.arch) = (HOST.into(), "x86_64".into());
    meta.command = vec!["/home/ann/secretproject/bin/app".into(), "--token=hunter2".into()];
    meta.notes = vec![format!("no names for /home/ann/lib.so on {HOST}: gone").into()];
    let image = b.image(Image {
        start: CODE,
        end: CODE + 4096,
        path: "/home/ann/secretproject/bin/app".into(),
        pid: 10,
        ..Image::default()
    });
    b.push(0, MapEvent { pid: 10, image });
    for (tid, name) in [(10, MARKUP), (11, "waiter")] {
        let name = b.string(&name.chars().take(40).collect::<String>());
        b.push(0, NameEvent { pid: 10, tid, name });
    }
    let (cpus, group) = (b.string("0-1"), b.string("/user.slice/ann.scope"));
    b.push(0, PlacementEvent { tid: 10, cpus, nice: 0, policy: 0, group, span: Nanos::ZERO });
    b.push(0, switch(0, 0, SwitchState::Runnable, 10));
    b.push(0, switch(1, 0, SwitchState::Runnable, 11));
    for round in 0..20 {
        let at = round * 50 * MS;
        b.push(at + MS, switch(1, 11, SwitchState::Sleeping, 0));
        for sample in 2..40 {
            let chain = b.chain(10, &[], &[CODE + 1]);
            b.push(at + sample * MS, SampleEvent { cpu: Cpu(0), tid: 10, ip: CODE + 1, bp: 0, chain });
        }
        let wake = WakeEvent {
            cpu: Cpu(0),
            waker: 10,
            context: WakeContext::Task,
            source: 0,
            wakee: 11,
            target: Cpu(1),
            lock: LockId::NONE,
            chain: ChainId::NONE,
        };
        b.push(at + 40 * MS, wake);
        b.push(at + 41 * MS, switch(1, 0, SwitchState::Runnable, 11));
    }
    b.finish(Some(&mut Namer)).expect("trace")
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_holdup")).args(args).output().expect("holdup runs")
}

fn done(args: &[&str]) {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

struct Folder {
    dir: tempfile::TempDir,
    trace: String,
}

fn folder() -> Folder {
    let dir = tempfile::tempdir().expect("folder");
    // The trace's own path is no secret here, its name is not shown when it is redacted.
    let path = dir.path().join("secretproject.holdup");
    file::write(&trace(), &path).expect("trace");
    Folder { trace: path.display().to_string(), dir }
}

impl Folder {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// The text of a document's element.
fn element<'a>(html: &'a str, id: &str) -> Option<&'a str> {
    Some(html.split_once(&format!("id=\"{id}\">"))?.1.split_once("</script>")?.0)
}

/// The trace within, unpacked to the bytes of its columns.
fn inside(html: &str) -> Vec<u8> {
    let packed = STANDARD.decode(element(html, "holdup-trace-0").expect("a trace")).expect("base64");
    holdup_report::gunzip(&packed).expect("gzip")
}

fn found<'a>(bytes: &[u8], wanted: &'a [&'a str]) -> Vec<&'a str> {
    wanted.iter().copied().filter(|w| bytes.windows(w.len()).any(|part| part == w.as_bytes())).collect()
}

fn report(folder: &Folder, more: &[&str]) -> String {
    let path = folder.path("out.html").display().to_string();
    done(&[&["report", folder.trace.as_str(), "-o", path.as_str()], more].concat());
    std::fs::read_to_string(Path::new(&path)).expect("a text")
}

#[test]
fn redacted_files_tell_nothing_of_the_machine() {
    let folder = folder();
    let (open, redacted) = (report(&folder, &[]), report(&folder, &["--redact"]));
    // What is searched for is there unless it is taken out.
    assert_eq!(found(&inside(&open), &SECRETS), SECRETS);
    assert!(found(&inside(&redacted), &SECRETS).is_empty(), "{:?}", found(&inside(&redacted), &SECRETS));
    assert!(found(redacted.as_bytes(), &SECRETS).is_empty(), "{:?}", found(redacted.as_bytes(), &SECRETS));
    // What the report is about stays.
    assert_eq!(found(&inside(&redacted), &["crunch", "waiter", "crunch.c"]), ["crunch", "waiter", "crunch.c"]);
    // So does a cut, as a file that can be explained.
    let cut = folder.path("cut.holdup").display().to_string();
    done(&["cut", &folder.trace, "--window", "0.2..0.6", "--redact", "-o", &cut]);
    let plain = file::write_memory(&file::read(Path::new(&cut)).expect("a trace"), false).expect("bytes");
    assert!(found(&plain, &SECRETS).is_empty(), "{:?}", found(&plain, &SECRETS));
    let explained = run(&["explain", &cut, "--json"]);
    let text = String::from_utf8(explained.stdout).expect("text");
    let answer: serde_json::Value = serde_json::from_str(&text).expect("json");
    assert!((answer["trace"]["duration_s"].as_f64().expect("length") - 0.4).abs() < 1e-6, "{text}");
    assert!(text.contains("crunch"), "{text}");
}

#[test]
fn a_document_is_whole_and_small_and_asks_nobody() {
    let folder = folder();
    let html = report(&folder, &[]);
    assert!(html.len() < 5_000_000, "{} bytes", html.len());
    assert!(html.contains("default-src 'none'"));
    for outside in [" src=\"", "href=\"http", "href=\"app", "@import", "url("] {
        let page = html.replace(element(&html, "holdup-glue").expect("glue"), "");
        let markup = page.split("<script>").next().expect("what is before the script");
        assert!(!markup.contains(outside), "{outside}");
    }
    // Names are data, never markup: this one would run.
    assert!(!html.contains("onerror=alert"), "a name stands in the document as it is");
    assert_eq!(found(&inside(&html), &["onerror=alert"]), ["onerror=alert"]);
}

#[test]
fn without_a_trace_it_is_a_page_to_drop_one_on() {
    let folder = folder();
    let path = folder.path("drop.html").display().to_string();
    done(&["report", "-o", &path]);
    let html = std::fs::read_to_string(&path).expect("a text");
    let host: serde_json::Value = serde_json::from_str(element(&html, "holdup-host").expect("host")).expect("json");
    assert_eq!((host["kind"].as_str(), &host["trace"]), (Some("wasm"), &serde_json::Value::Null));
    assert!(element(&html, "holdup-trace-0").is_none() && element(&html, "holdup-wasm").expect("wasm").len() > 100_000);
    for (wrong, code) in [
        (vec!["report", "-o", &path, "--redact"], 2),
        (vec!["report", "/nowhere/at.all", "-o", &path], 3),
        (vec!["cut", &folder.trace, "-o", &path], 2),
        (vec!["cut", &folder.trace, "--window", "7..8", "-o", &path], 3),
    ] {
        let output = run(&wrong);
        assert_eq!(output.status.code(), Some(code), "{wrong:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
