//! The flight recorder: conditions, traces that are written while recording goes on, the unit of systemd.

mod recording;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use recording::can_record;

const BINARY: &str = env!("CARGO_BIN_EXE_holdup");

/// Switches and wake-ups without samples and stacks: quickly converted.
const LIGHT: [&str; 4] = ["--freq", "0", "--min-wait", "10s"];

fn record(output: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("record").args(LIGHT).args(options).arg("-o").arg(output).stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

fn err(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

fn notes(trace: &Path) -> String {
    let o = Command::new(BINARY).arg("info").arg(trace).output().expect("it starts");
    assert!(o.status.success(), "{}", err(&o));
    String::from_utf8_lossy(&o.stdout).into_owned()
}

fn nap() {
    std::thread::sleep(Duration::from_millis(600));
}

#[test]
fn traces_are_written_while_recording_goes_on() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let at = |name: &str| dir.path().join(name);
    fs::write(at("t-1.holdup"), "of an earlier run").expect("write");
    let condition = format!("file {}", at("go").display());
    let options = ["-a", "--ring", "2s", "--until", &condition, "--count", "2", "--pause", "0s", "--after", "100ms"];
    let mut recorder = record(&at("t.holdup"), &options).spawn().expect("it starts");
    // The file comes and goes until there are two traces.
    while recorder.try_wait().expect("recorder").is_none() {
        fs::write(at("go"), "").expect("write");
        nap();
        fs::remove_file(at("go")).expect("remove");
        nap();
    }
    let o = recorder.wait_with_output().expect("output");
    assert!(o.status.success(), "{}", err(&o));
    assert!(err(&o).contains("2 traces"), "{}", err(&o));
    assert_eq!(fs::read_to_string(at("t-1.holdup")).expect("it is there"), "of an earlier run");
    for name in ["t-2.holdup", "t-3.holdup"] {
        assert!(notes(&at(name)).contains("kept because of the condition file"), "{}", notes(&at(name)));
    }
    let left = fs::read_dir(dir.path()).expect("folder").count();
    assert_eq!(left, 3, "the spool and its segments are gone");
}

#[test]
fn a_line_in_a_log_ends_a_recording() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let (log, output) = (dir.path().join("a.log"), dir.path().join("t.holdup"));
    fs::write(&log, "timeout of yesterday\n").expect("write");
    let condition = format!("log {} timeout", log.display());
    let mut recorder = record(&output, &["-a", "--until", &condition, "--after", "0s"]).spawn().expect("it starts");
    while recorder.try_wait().expect("recorder").is_none() {
        let before = fs::read_to_string(&log).expect("log");
        fs::write(&log, format!("{before}a timeout\n")).expect("write");
        nap();
    }
    let o = recorder.wait_with_output().expect("output");
    assert!(o.status.success(), "{}", err(&o));
    assert!(notes(&output).contains("kept because of the condition log"), "{}", notes(&output));
}

#[test]
fn a_wait_of_a_name_ends_a_recording_that_holds_it() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let output = dir.path().join("t.holdup");
    // It naps until it is ended with the recording.
    let napper: PathBuf = dir.path().join("napper-of-a-te");
    let sleep = ["/usr/bin/sleep", "/bin/sleep"].into_iter().find(|path| Path::new(path).exists()).expect("sleep");
    std::os::unix::fs::symlink(sleep, &napper).expect("a link");
    let mut command = record(&output, &["--until", "wait 300ms napper-of-a-te any", "--after", "0s"]);
    let o = command.arg("--").arg(&napper).arg("1000").output().expect("it starts");
    assert_eq!(o.status.code(), Some(143), "{}", err(&o));
    assert!(notes(&output).contains("(napper-of-a-te) has waited for"), "{}", notes(&output));
}

#[test]
fn what_cannot_be_is_a_sentence() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let folder = format!("log {} x", dir.path().display());
    for (options, code, word) in [
        (&["-a", "--count", "2"][..], 2, "--ring"),
        (&["-a", "--until", "sometimes"], 2, "is no condition"),
        (&["-a", "--until", "wait 5s"], 2, "wait TIME NAME"),
        (&["-a", "--ring-size", "1M"], 2, "16M"),
        (&["-a", "--until", &folder], 3, "cannot be watched"),
    ] {
        let o = record(&dir.path().join("t.holdup"), options).output().expect("it starts");
        assert_eq!(o.status.code(), Some(code), "{options:?}: {}", err(&o));
        assert!(err(&o).contains(word), "{options:?}: {}", err(&o));
    }
    assert_eq!(fs::read_dir(dir.path()).expect("folder").count(), 0);
}

#[test]
fn systemd_understands_the_units() {
    understands("holdup.service", "record", 5);
    understands("holdup-agent.service", "agent", 1);
}

/// Whether systemd and the command that it starts know all that `unit` says, with more than `least` options.
fn understands(name: &str, command: &str, least: usize) {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join(name);
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    let text = fs::read_to_string(unit).expect("the unit");
    let text: String = text.split_inclusive('\n').filter(|line| !line.starts_with('#')).collect();
    // Its options are some that this binary has.
    let options = text.split(' ').filter(|word| word.starts_with("--")).count();
    let help = Command::new(BINARY).args([command, "--help"]).output().expect("it starts");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let known = text.split(' ').filter(|word| word.starts_with("--") && help.contains(word)).count();
    assert!(options > least && options == known, "{options} and {known}");
    fs::write(&path, text.replace("@PREFIX@/bin/holdup", BINARY)).expect("write");
    match Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path).output() {
        // It reads the units of other packages, too, and says what it thinks of them.
        Ok(o) => assert!(o.status.success() && !err(&o).contains(name), "{}", err(&o)),
        // Elsewhere its options are all that is looked at.
        Err(e) => assert_eq!(e.kind(), std::io::ErrorKind::NotFound),
    }
}
