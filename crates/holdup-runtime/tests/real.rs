//! A real Java machine, as installed.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use holdup_runtime::jvm::{Refusal, perf_map};
use holdup_testing::{Need, has};

const SOURCE: &str = "public class Busy {
  static int spinAround(int x) { return x * 31 + 7; }
  public static void main(String[] a) throws Exception {
    int r = 0;
    for (int i = 0; i < 3000000; i++) r = spinAround(r);
    System.out.println(\"ready\");
    Thread.sleep(60000 + r % 2);
  }
}";

fn me() -> u32 {
    std::fs::metadata("/proc/self").unwrap().uid()
}

struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn machine(dir: &std::path::Path, flags: &[&str]) -> Machine {
    std::fs::write(dir.join("Busy.java"), SOURCE).unwrap();
    let mut child = Command::new("java")
        .args(["-XX:-Inline", "-Xmx64m"])
        .args(flags)
        .arg(dir.join("Busy.java"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    Machine(child)
}

#[test]
fn methods_have_names_and_nothing_is_left() {
    if !has(Need::Program("javac")) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let java = machine(dir.path(), &[]);
    let pid = java.0.id();
    for _ in 0..2 {
        let told = perf_map(pid, me(), Duration::from_secs(30)).unwrap();
        assert!(told.frames.len() > 10, "{} frames", told.frames.len());
        let map = String::from_utf8_lossy(&told.text);
        assert!(map.lines().any(|l| l.ends_with(" int Busy.spinAround(int)")), "{map}");
    }
    assert!(!std::path::Path::new(&format!("/tmp/perf-{pid}.map")).exists());
    assert!(!std::path::Path::new(&format!("/tmp/.attach_pid{pid}")).exists());
}

/// Under -Xrs SIGQUIT would end the machine, but its socket is open from the beginning: no signal is needed.
#[test]
fn a_machine_without_signals_answers_and_lives() {
    if !has(Need::Program("javac")) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut java = machine(dir.path(), &["-Xrs"]);
    let map = perf_map(java.0.id(), me(), Duration::from_secs(30)).map(|m| m.text.len());
    assert!(matches!(map, Ok(n) if n > 0), "{map:?}");
    assert!(java.0.try_wait().unwrap().is_none());
}

#[test]
fn a_machine_that_does_not_attach_lives() {
    if !has(Need::Program("javac")) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut java = machine(dir.path(), &["-XX:+DisableAttachMechanism"]);
    let got = perf_map(java.0.id(), me(), Duration::from_secs(2)).map(|m| m.text.len());
    assert!(matches!(got, Err(Refusal::Forbidden { .. })), "{got:?}");
    assert!(java.0.try_wait().unwrap().is_none());
    java.0.kill().unwrap();
    let mut said = String::new();
    java.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "", "a dump of its threads");
}
