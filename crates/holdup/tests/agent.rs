//! `holdup agent`: what a scraper gets, and who gets nothing.

mod recording;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use recording::can_record;

const BINARY: &str = env!("CARGO_BIN_EXE_holdup");
const PACKAGING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging");

/// An agent, and where it listens.
struct Running(Child, String);

impl Running {
    fn start(options: &[&str]) -> Self {
        let mut command = Command::new(BINARY);
        command
            .stdin(Stdio::null())
            .env("XDG_CONFIG_HOME", "/nowhere")
            .args(["agent", "--over", "200ms", "--every", "400ms", "--listen", "127.0.0.1:0"])
            .args(options);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("starts");
        let mut line = String::new();
        BufReader::new(child.stderr.take().expect("stderr")).read_line(&mut line).expect("a line");
        let rest = line.split_once("http://").unwrap_or_else(|| panic!("no address in {line:?}")).1;
        let address = rest.split_once("/metrics").expect("its path").0.to_owned();
        Running(child, address)
    }

    /// The answer to a request with these headers.
    fn ask(&self, method: &str, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(&self.1).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
        write!(stream, "{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n").expect("asks");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn metrics(&self) -> String {
        let answer = self.ask("GET", "/metrics", &format!("Host: {}\r\n", self.1));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
    }

    /// Ends it as a service's manager does: who is started in the background by a shell ignores Ctrl-C.
    fn end(mut self) {
        let asked = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status().expect("kill");
        assert!(asked.success());
        // What it recorded then is not named any more.
        let begun = Instant::now();
        while self.0.try_wait().expect("waits").is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it goes on");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

fn value(metrics: &str, series: &str) -> f64 {
    let line = metrics.lines().find_map(|l| l.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in\n{metrics}")).parse().expect("a number")
}

#[test]
fn what_is_recorded_adds_up() {
    let Some(_alone) = can_record() else { return };
    let agent = Running::start(&[]);
    let begun = Instant::now();
    let metrics = loop {
        let metrics = agent.metrics();
        if value(&metrics, "holdup_rounds_total") >= 3.0 {
            break metrics;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "it does not get on:\n{metrics}");
        std::thread::sleep(Duration::from_millis(50));
    };
    let observed = value(&metrics, "holdup_observed_seconds_total");
    assert!(observed >= 0.55, "{observed}");
    let states = ["busy", "spin", "other", "held_up", "runnable_idle", "no_work", "lost"];
    let sum: f64 = states.map(|s| value(&metrics, &format!("holdup_cpu_seconds_total{{state=\"{s}\"}}"))).iter().sum();
    let cpus = sum / observed;
    assert!((cpus - cpus.round()).abs() < 0.01 && cpus >= 1.0, "{cpus} CPUs");
    assert!(value(&metrics, "process_cpu_seconds_total") > 0.0);
    assert_eq!(value(&metrics, "holdup_rounds_failed_total"), 0.0);
    let checked =
        Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    if let Ok(mut promtool) = checked {
        promtool.stdin.take().expect("stdin").write_all(metrics.as_bytes()).expect("writes");
        let said = promtool.wait_with_output().expect("ends");
        assert!(said.status.success(), "{}\n{metrics}", String::from_utf8_lossy(&said.stdout));
    }
    agent.end();
}

/// A line of what the kernel tells of a process.
fn status(pid: &str, key: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    text.lines().find_map(|l| l.strip_prefix(key)).expect("is told").trim().to_owned()
}

#[test]
fn who_speaks_to_the_network_has_no_privilege() {
    let Some(_alone) = can_record() else { return };
    let agent = Running::start(&[]);
    let pid = agent.0.id().to_string();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("its children");
    let answers: Vec<&str> = children.split_whitespace().collect();
    let [answers] = answers[..] else { panic!("one process answers: {children}") };
    assert_eq!(status(answers, "Uid:"), "65534\t65534\t65534\t65534");
    assert_eq!(status(answers, "Groups:"), "");
    assert_eq!(u64::from_str_radix(&status(answers, "CapPrm:"), 16), Ok(0));
    assert!(agent.metrics().contains("holdup_rounds_total"));
    let answers = answers.to_owned();
    agent.end();
    let begun = Instant::now();
    while Path::new(&format!("/proc/{answers}")).exists() {
        assert!(begun.elapsed() < Duration::from_secs(30), "what answered is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn strangers_get_nothing() {
    let Some(_alone) = can_record() else { return };
    let agent = Running::start(&[]);
    let here = format!("Host: {}\r\n", agent.1);
    for (method, path, headers, status) in [
        ("GET", "/metrics", "Host: evil.example\r\n", "403"),
        ("GET", "/metrics", "", "403"),
        ("GET", "/", here.as_str(), "404"),
        ("GET", "/../../etc/passwd", here.as_str(), "404"),
        ("POST", "/metrics", here.as_str(), "405"),
    ] {
        let answer = agent.ask(method, path, headers);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{method} {path} {headers:?}: {answer}");
        assert!(!answer.contains("holdup_"), "{answer}");
    }
    agent.end();
    let dir = tempfile::tempdir().expect("dir");
    let secret = dir.path().join("secret");
    fs::write(&secret, "sesame\n").expect("write");
    let agent = Running::start(&["--secret-file", &secret.display().to_string()]);
    let of = |secret: &str| {
        agent.ask("GET", "/metrics", &format!("Host: {}\r\nAuthorization: Bearer {secret}\r\n", agent.1))
    };
    assert!(of("sesame").contains("holdup_rounds_total"));
    assert!(of("sesamE").starts_with("HTTP/1.1 401") && of("").starts_with("HTTP/1.1 401"));
    agent.end();
}

#[test]
fn what_cannot_be_is_said() {
    let dir = tempfile::tempdir().expect("dir");
    let folder = dir.path().display().to_string();
    let (empty, long) = (dir.path().join("empty"), dir.path().join("long"));
    fs::write(&empty, "\n").expect("write");
    fs::write(&long, "x".repeat(5000)).expect("write");
    let (empty, long) = (empty.display().to_string(), long.display().to_string());
    for (options, exit, word) in [
        (&["--over", "2s", "--every", "1s"][..], 2, "must not be shorter"),
        (&["--listen", "0.0.0.0:0"], 2, "--secret-file"),
        (&["--listen", "nowhere"], 2, "--listen"),
        (&["--secret-file", "/no/such/file"], 3, "/no/such/file"),
        (&["--secret-file", &folder], 3, "a plain file"),
        (&["--secret-file", &long], 3, "a plain file"),
        (&["--secret-file", &empty], 3, "first line"),
    ] {
        let o = Command::new(BINARY).arg("agent").args(options).output().expect("the binary starts");
        let said = String::from_utf8_lossy(&o.stderr);
        assert_eq!(o.status.code(), Some(exit), "{options:?}: {said}");
        assert!(said.contains(word), "{options:?}: {said}");
    }
}

/// Names of series in a text.
fn series(text: &str) -> BTreeSet<String> {
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    text.split(word).filter(|w| w.starts_with("holdup_") || w.starts_with("process_cpu")).map(str::to_owned).collect()
}

#[test]
fn dashboard_and_rules_ask_for_what_there_is() {
    let known = series(&holdup_export::metrics::Metrics::default().text(0.0));
    for file in ["grafana/holdup.json", "prometheus/holdup.yml", "prometheus/holdup.html"] {
        let text = fs::read_to_string(Path::new(PACKAGING).join(file)).expect("it is there");
        let asked = series(&text);
        assert!(asked.len() >= 4, "{file}: {asked:?}");
        assert!(asked.is_subset(&known), "{file}: {:?}", asked.difference(&known));
    }
    let dashboard = fs::read(PathBuf::from(PACKAGING).join("grafana/holdup.json")).expect("it is there");
    assert!(serde_json::from_slice::<serde_json::Value>(&dashboard).expect("json")["panels"].is_array());
    let rules = Path::new(PACKAGING).join("prometheus/holdup.yml");
    if let Ok(said) = Command::new("promtool").args(["check", "rules"]).arg(rules).output() {
        assert!(
            said.status.success(),
            "{}{}",
            String::from_utf8_lossy(&said.stdout),
            String::from_utf8_lossy(&said.stderr)
        );
    }
}
