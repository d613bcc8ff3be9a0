//! `holdup load` from outside: scripts, real servers, freezes, kills, reports.

#![cfg(feature = "script")]

#[path = "../../holdup-load/tests/servers/mod.rs"]
mod servers;

#[path = "load/latte.rs"]
mod latte;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use servers::Server;

fn load(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdup"));
    command.arg("load").args(args).stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    load(args).output().expect("the binary starts")
}

fn started(args: &[&str]) -> Child {
    load(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
}

fn err(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

fn json(o: &Output) -> Value {
    assert!(o.status.code().is_some_and(|code| code < 2), "{}", err(o));
    serde_json::from_slice(&o.stdout).expect("one JSON document")
}

fn count(report: &Value, name: &str) -> u64 {
    report[name].as_u64().unwrap_or_else(|| panic!("{name}: {report:#}"))
}

fn workload(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads").join(name).display().to_string()
}

fn written(folder: &Path, text: &str) -> String {
    let path = folder.join("work.rn");
    fs::write(&path, text).expect("the script");
    path.display().to_string()
}

/// Waits until a report of the run that goes on is there: then it has measured something, and minds signals.
fn wait_for_report(path: &Path, child: &mut Child) {
    while fs::metadata(path).map_or(0, |about| about.len()) == 0 {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before it wrote a report");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until a run is well under way with its calls.
fn wait_for_calls(server: &Server, child: &mut Child) {
    servers::redis::wait_for_lookups(server, 100, || child.try_wait().expect("a child").is_none());
}

/// All that was due is accounted for.
fn assert_accounted(report: &Value, due: u64) {
    let parts = ["cycles", "errors", "unserved", "unfinished"].map(|name| count(report, name));
    assert_eq!((parts.iter().sum::<u64>(), count(report, "due")), (due, due), "{parts:?}");
}

#[test]
fn a_script_without_a_server_is_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let [report, plot, log] = ["r.json", "r.svg", "r.hlog"].map(|name| folder.path().join(name).display().to_string());
    let script = workload("empty.rn");
    let o = run(&[
        "run",
        &script,
        "-t",
        "2",
        "-d",
        "1s",
        "-w",
        "0.2s",
        "--json",
        "-o",
        &report,
        "--plot",
        &plot,
        "--hdr-log",
        &log,
    ]);
    let answer = json(&o);
    assert_eq!((answer["schema"].as_str(), count(&answer, "threads")), (Some("holdup.load/1"), 2));
    assert!(count(&answer, "cycles") > 1000 && count(&answer, "errors") == 0);
    let [low, high] = [0, 1].map(|i| answer["throughput"]["ci95"][i].as_f64().expect("an interval"));
    let mean = answer["throughput"]["mean"].as_f64().expect("a mean");
    assert!(low <= mean && mean <= high);
    assert!(answer["hdr"].as_str().is_some_and(|hdr| hdr.len() > 20));
    let saved: Value = serde_json::from_str(&fs::read_to_string(&report).expect("a report")).expect("JSON");
    assert_eq!(saved, answer);
    assert!(fs::read_to_string(plot).expect("a plot").contains("calls per second"));
    assert!(fs::read_to_string(log).expect("a log").contains("Tag=response,"));
    let shown = run(&["show", &report, "--json"]);
    assert_eq!(json(&shown), answer);
    let listed = json(&run(&["list", &folder.path().display().to_string(), "--json"]));
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    let compared = json(&run(&["compare", &report, &report, "--fail-on", "5%", "--json"]));
    assert_eq!(compared["changes"][0]["ratio"].as_f64(), Some(1.0));
}

/// What is due in half a wave is known, whatever the machine makes of it.
#[test]
fn a_rate_that_swings_is_due_as_its_wave_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let (script, picture) = (workload("empty.rn"), folder.path().join("p.svg").display().to_string());
    let wave = ["--rate", "2000", "--rate-sine-amplitude", "0.8", "--rate-sine-period", "1s"];
    let o = run(&[&["run", &script, "-d", "500ms", "-w", "100ms", "--plot", &picture, "--json"][..], &wave].concat());
    let answer = json(&o);
    assert!(o.status.success(), "{}", err(&o));
    // 1000 at the mean rate, and 0.8 · 2/π of that for the crest.
    assert!(count(&answer, "due").abs_diff(1509) <= 3, "{answer:#}");
    assert_eq!(answer["rate_sine"]["amplitude"].as_f64(), Some(0.8));
    assert_eq!(answer["rate_sine"]["period_s"].as_f64(), Some(1.0));
    for wrong in [&["--rate-sine-amplitude", "0.5"][..], &["--rate", "9", "--rate-sine-amplitude", "1.1"]] {
        assert_eq!(run(&[&["run", &script, "-d", "1"][..], wrong].concat()).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn reports_are_listed_by_what_they_are_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = written(folder.path(), "pub async fn a(ctx, i) {}\npub async fn b(ctx, i) {}");
    std::fs::create_dir(folder.path().join("older")).expect("a folder");
    for (to, function, tags) in [("1.json", "a:3,b:1", "x,y"), ("2.json", "b", "x"), ("older/3.json", "a", "y")] {
        let to = folder.path().join(to).display().to_string();
        let o = run(&["run", &script, "-d", "10", "-w", "0", "-f", function, "--tag", tags, "-o", &to]);
        assert!(o.status.success(), "{}", err(&o));
    }
    let dir = folder.path().display().to_string();
    let listed = |filter: &[&str]| {
        let answer = json(&run(&[&["list", &dir, "--json"][..], filter].concat()));
        let paths = answer.as_array().expect("a list").iter().map(|report| report["path"].as_str().expect("a path"));
        paths.map(|path| path.rsplit('/').next().expect("a name").to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(listed(&[]), "1.json 2.json");
    assert_eq!(listed(&["-r"]), "1.json 2.json 3.json");
    assert_eq!(listed(&["-r", "-f", "a"]), "1.json 3.json");
    assert_eq!(listed(&["-r", "--tag", "x,y"]), "1.json");
    assert_eq!(listed(&["--workload", "work.rn", "-f", "b"]), "1.json 2.json");
    assert_eq!(listed(&["--workload", "other.rn"]), "");
}

#[test]
fn cycles_are_counted_to_the_last_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = written(folder.path(), "pub async fn a(ctx, i) {}\npub async fn b(ctx, i) {}");
    let o = run(&["run", &script, "-t", "3", "-d", "10001", "-w", "100", "-f", "a:3", "-f", "b", "--json"]);
    let answer = json(&o);
    assert_eq!(count(&answer, "cycles"), 10_001);
    assert_eq!(answer["function"].as_str(), Some("a:3, b:1"));
}

#[test]
fn mistakes_are_sentences_with_their_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |text: &str, args: &[&str], code: i32, words: &[&str]| {
        let script = written(folder.path(), text);
        let o = run(&[&["run", &script, "-d", "1s"], args].concat());
        let said = err(&o);
        assert_eq!(o.status.code(), Some(code), "{said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    };
    refused("pub fn run(ctx, i) {\n    let = 3;\n}", &[], 3, &["work.rn:2:"]);
    // Nothing was measured: no table of zeros.
    refused("pub fn run(ctx, i) {\n    ctx.exec(1);\n}", &[], 1, &["work.rn:2:", "`exec`"]);
    refused("pub fn walk(ctx, i) {}", &[], 3, &["`run`", "walk"]);
    refused("pub fn run(ctx, i) {}", &["-P", "rows=3"], 3, &["no parameters", "`rows`"]);
    refused("pub fn run(ctx, i) {}", &["-P", "rows"], 2, &["NAME=VALUE"]);
    refused("pub fn run(ctx, i) {}", &["-f", "run:none"], 2, &["run:none"]);
    refused(
        "pub fn prepare(ctx) {\n\n    panic!(\"no way\")\n}\npub fn run(ctx) {}",
        &[],
        3,
        &["work.rn:3:", "no way"],
    );
    refused("pub fn run(ctx, i) {}", &["redis://127.0.0.1:1"], 3, &["127.0.0.1:1"]);
    refused("pub fn run(ctx, i) {}", &["ftp://127.0.0.1"], 2, &["ftp"]);
    let o = run(&["show", &written(folder.path(), "{}")]);
    assert_eq!(o.status.code(), Some(3), "{}", err(&o));
}

#[test]
fn an_error_in_the_middle_keeps_what_was_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let script =
        written(folder.path(), "pub fn run(ctx, i) {\n    if i == 5000 {\n        panic!(\"enough\");\n    }\n}");
    let o = run(&["run", &script, "-d", "1000000", "-w", "0", "--json"]);
    assert_eq!(o.status.code(), Some(1));
    let answer = json(&o);
    assert_eq!((count(&answer, "cycles"), count(&answer, "errors")), (5000, 1));
    let cut = answer["cut"].as_str().expect("a reason");
    assert!(cut.contains("work.rn:3:") && cut.contains("enough"), "{cut}");
}

#[test]
fn a_signal_ends_a_run_and_keeps_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.json");
    let output = path.display().to_string();
    let mut child = started(&["run", &workload("empty.rn"), "-d", "600s", "-w", "0s", "--json", "-o", &output]);
    wait_for_report(&path, &mut child);
    servers::signal("-INT", &child.id().to_string());
    let o = child.wait_with_output().expect("it ends");
    assert_eq!(o.status.code(), Some(0), "{}", err(&o));
    let answer = json(&o);
    assert_eq!(answer["cut"].as_str(), Some("interrupted"));
    assert_eq!(answer["cut_kind"].as_str(), Some("asked"));
    assert!(answer["elapsed_s"].as_f64().is_some_and(|s| s > 0.0 && s < 600.0));
}

#[test]
fn a_killed_generator_leaves_what_it_had_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("r.json");
    let mut child =
        started(&["run", &workload("empty.rn"), "-d", "600s", "-w", "0.1s", "-o", &path.display().to_string()]);
    wait_for_report(&path, &mut child);
    child.kill().expect("killed");
    child.wait().expect("gone");
    let report = json(&run(&["show", &path.display().to_string(), "--json"]));
    assert!(count(&report, "cycles") > 0 && report["throughput"]["mean"].as_f64() > Some(0.0), "{report:#}");
    assert!(report["cut"].as_str().is_some_and(|why| why.contains("had not ended")), "{report:#}");
    let names: Vec<_> = fs::read_dir(folder.path()).expect("list").map(|e| e.expect("entry").file_name()).collect();
    assert_eq!(names, ["r.json"]);
}

#[test]
fn a_sweep_takes_its_work_from_the_reports_of_load() {
    let binary = env!("CARGO_BIN_EXE_holdup");
    let script = workload("empty.rn");
    let sweep = |command: &[&str]| {
        let mut scale = Command::new(binary);
        scale.args(["scale", "--threads", "1,2", "--runs", "1", "--load", "--json", "--"]).args(command);
        scale.stdin(Stdio::null()).output().expect("the binary starts")
    };
    let o = sweep(&[binary, "load", "run", &script, "-t", "{n}", "-d", "300ms", "-w", "0", "--json"]);
    let answer = json(&o);
    let points = answer["points"].as_array().expect("points");
    assert!(points.len() == 2 && points.iter().all(|point| point["throughput"].as_f64().is_some_and(|t| t > 1000.0)));
    let o = sweep(&["echo", "{n}"]);
    assert!(o.status.code() == Some(3) && err(&o).contains("--load wants"), "{}", err(&o));
}

fn redis() -> Option<Server> {
    servers::redis::start(None, None).inspect_err(|why| servers::skip("Redis", servers::redis::NEEDS, why)).ok()
}

#[test]
fn a_frozen_server_is_charged_with_all_that_was_due() {
    let Some(server) = redis() else { return };
    let address = format!("redis://127.0.0.1:{}", server.port);
    let cache = workload("cache.rn");
    assert!(run(&["load", &cache, &address, "-P", "keys=100"]).status.success());
    let begun = Instant::now();
    let mut child =
        started(&["run", &cache, &address, "-P", "keys=100", "--rate", "500", "-d", "4s", "-w", "0s", "--json"]);
    wait_for_calls(&server, &mut child);
    server.freeze();
    std::thread::sleep(Duration::from_secs(1));
    server.thaw();
    let o = child.wait_with_output().expect("it ends");
    let answer = json(&o);
    assert!(begun.elapsed() >= Duration::from_secs(4));
    assert_accounted(&answer, 2000);
    // Five hundred calls were due in the frozen second; the tenth of all calls that waited least of them waited 0.6 s.
    let [p90, max] = ["p90", "max"].map(|name| answer["latency_ms"][name].as_f64().expect("a time"));
    assert!(p90 > 500.0 && max > 950.0, "p90 {p90} ms, max {max} ms");
    let service = answer["service_ms"]["p90"].as_f64().expect("a time");
    assert!(service < p90, "{service} {p90}");
}

#[test]
fn two_servers_are_compared_in_turns() {
    let (Some(a), Some(b)) = (redis(), redis()) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let [a, b] = [&a, &b].map(|server| format!("redis://127.0.0.1:{}", server.port));
    let out = folder.path().join("r.json").display().to_string();
    let cache = workload("cache.rn");
    let args = ["--repeats", "3", "-d", "200ms", "-w", "0", "-p", "4", "--json"];
    let o = run(&[&["run", &cache, &a, "--vs", &b, "-o", &out], args.as_slice()].concat());
    let answer = json(&o);
    assert_eq!(answer["reports"], serde_json::json!([3, 3]));
    assert!(answer["changes"][0]["p"].is_number());
    let order: Vec<bool> = err(&o).lines().map(|line| line.contains(&a)).collect();
    assert_eq!(order, [true, false, false, true, true, false]);
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 6);
}

#[test]
fn a_server_that_goes_leaves_a_report_and_a_sentence() {
    let Some(server) = redis() else { return };
    let address = format!("redis://127.0.0.1:{}", server.port);
    let cache = workload("cache.rn");
    let args = ["--retries", "0", "--give-up", "1s", "-p", "4", "-w", "0s", "-d", "60s", "--json"];
    let mut child = started(&[&["run", &cache, &address], args.as_slice()].concat());
    wait_for_calls(&server, &mut child);
    server.kill();
    let o = child.wait_with_output().expect("it ends");
    assert_eq!(o.status.code(), Some(1), "{}", err(&o));
    let answer = json(&o);
    assert!(count(&answer, "cycles") > 0 && count(&answer, "errors") > 0);
    let cut = answer["cut"].as_str().expect("a reason");
    assert!(cut.contains("nothing but errors") && cut.contains("cache.rn:"), "{cut}");
}

#[test]
fn a_saturated_server_is_called_so() {
    let Some(server) = redis() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    // A million additions take Redis, which has one thread for them, some milliseconds: a thousand of them a second can't be served.
    let slow = "EVAL 'local n = 0 for i = 1, 1000000 do n = n + i end return n' 0";
    let script =
        written(folder.path(), &format!("pub async fn run(ctx, i) {{\n    ctx.execute(\"{slow}\").await?;\n}}"));
    let address = format!("redis://127.0.0.1:{}", server.port);
    let o = run(&["run", &script, &address, "--rate", "1000", "-d", "2s", "-w", "0s", "-p", "2", "--json"]);
    let answer = json(&o);
    assert_eq!(answer["saturated"].as_bool(), Some(true));
    assert_accounted(&answer, 2000);
    assert!(answer["warnings"][0].as_str().is_some_and(|w| w.starts_with("saturated: offered 1000/s, served ")));
}

#[test]
fn cassandra_from_schema_to_a_report() {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let server = match servers::cassandra::start(cache, None) {
        Ok(server) => server,
        Err(why) => return servers::skip("Cassandra", &servers::cassandra::needs(cache), &why),
    };
    let address = format!("127.0.0.1:{}", server.port);
    let read = workload("read.rn");
    let rows = ["-P", "rows=2000"];
    let o = run(&["run", &read, &address, "-d", "1s"]);
    assert_eq!(o.status.code(), Some(3));
    assert!(err(&o).contains("read.rn:24:") && err(&o).contains("holdup"), "{}", err(&o));
    let o = run(&["schema", &read, &address, "--timeout", "60s"]);
    assert!(o.status.success(), "{}", err(&o));
    let loaded = json(&run(&[&["load", &read, &address, "--timeout", "60s", "--json"], rows.as_slice()].concat()));
    assert_eq!((count(&loaded, "cycles"), count(&loaded, "errors")), (2000, 0));
    let measured = json(&run(&[&["run", &read, &address, "-t", "2", "-d", "2s", "--json"], rows.as_slice()].concat()));
    assert!(count(&measured, "cycles") > 0);
    // Every key was loaded: each call finds its row.
    assert!(count(&measured, "rows") >= count(&measured, "cycles"));
    latte::validations_and_batches(&address);
}
