//! The built binary from outside: exit codes, errors, pipes, and real recordings where the machine allows.

mod recording;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use holdup_testing::{Need, has, skip};
use serde_json::Value;

use recording::can_record;

fn holdup() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdup"));
    command.stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    holdup().args(args).output().expect("the binary starts")
}

fn out(o: &Output) -> String {
    String::from_utf8_lossy(&o.stdout).into_owned()
}

fn err(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

fn code(o: &Output) -> i32 {
    assert!(!err(o).contains("panicked"), "{}", err(o));
    o.status.code().expect("no signal")
}

/// Exit code 3, one sentence that names the file, nothing on standard output.
fn refuses(args: &[&str], named: &str) {
    let o = run(args);
    assert_eq!(code(&o), 3, "{args:?}: {}", err(&o));
    assert!(o.stdout.is_empty(), "{args:?}");
    let text = err(&o);
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    assert!(text.starts_with("holdup: ") && text.contains(named), "{text}");
}

fn file(dir: &Path, name: &str) -> String {
    dir.join(name).display().to_string()
}

#[test]
fn unusable_inputs_are_one_sentence() {
    let dir = tempfile::tempdir().expect("dir");
    let path = |name: &str| file(dir.path(), name);
    fs::write(path("empty"), b"").expect("write");
    fs::write(path("text"), b"this is no trace, whatever its name says\n").expect("write");
    fs::write(path("cut.holdup"), b"PK\x03\x04 and no more than that").expect("write");
    fs::write(path("cut.spool"), b"holdspl").expect("write");
    for name in ["missing", "empty", "text", "cut.holdup", "cut.spool"] {
        refuses(&["info", &path(name)], name);
        refuses(&["explain", &path(name)], name);
        refuses(&["explain", "--json", &path(name)], name);
    }
    let folder = dir.path().display().to_string();
    refuses(&["info", &folder], &folder);
    refuses(&["explain", &folder], &folder);
    refuses(&["man", &path("no-folder")], "no-folder");
}

#[test]
fn bad_usage_is_2() {
    for args in [
        &["record"][..],
        &["explain"],
        &["explain", "x", "--window", "3"],
        &["info", "--no-such-flag"],
        &["record", "--duration", "3 weeks", "-a"],
        &["no-such-command"],
        &["info"],
    ] {
        let o = run(args);
        assert_eq!(code(&o), 2, "{args:?}: {}", err(&o));
        assert!(o.stdout.is_empty() && !o.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn every_help_has_an_example() {
    for command in [
        "demo",
        "record",
        "info",
        "explain",
        "chain",
        "disasm",
        "threads",
        "scale",
        "diff",
        "lab",
        "check",
        "completions",
        "man",
    ] {
        let o = run(&[command, "--help"]);
        assert_eq!(code(&o), 0, "{command}");
        assert!(out(&o).contains("Example"), "{command}");
    }
    assert!(out(&run(&["--help"])).contains("Example"));
}

/// The template of help takes `{n}` for the end of a line.
#[test]
fn help_shows_the_placeholder_of_a_sweep() {
    let help = out(&run(&["scale", "--help"]));
    assert!(help.contains("./bench --threads {n}\n") && help.contains("{n} in CMD stands"), "{help}");
    assert!(help.contains("has no {n}") && !help.contains('\x1b'), "{help}");
    let dir = tempfile::tempdir().expect("dir");
    assert_eq!(code(&run(&["man", &dir.path().display().to_string()])), 0);
    let page = std::fs::read_to_string(dir.path().join("holdup-scale.1")).expect("page");
    assert!(page.contains("threads {n}") && page.contains("has no {n}") && !page.contains('\x1b'), "{page}");
}

#[test]
fn schema_completions_and_man_pages() {
    let schema = out(&run(&["info", "--schema"]));
    assert!(schema.contains("switch: ") && schema.contains("ns since start"));
    let json: Value = serde_json::from_slice(&run(&["info", "--schema", "--json"]).stdout).expect("json");
    assert!(json["tables"].as_array().is_some_and(|t| t.len() >= 16));
    assert!(out(&run(&["completions", "bash"])).contains("_holdup"));
    let dir = tempfile::tempdir().expect("dir");
    assert_eq!(code(&run(&["man", &dir.path().display().to_string()])), 0);
    assert!(dir.path().join("holdup.1").exists() && dir.path().join("holdup-explain.1").exists());
}

#[test]
fn a_closed_pipe_is_no_error() {
    for args in [&["info", "--schema"][..], &["completions", "bash"]] {
        let mut child =
            holdup().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        drop(child.stdout.take());
        let o = child.wait_with_output().expect("ends");
        assert!(!err(&o).contains("panicked"), "{args:?}: {}", err(&o));
    }
}

#[test]
fn recording_without_privilege_is_4() {
    if !has(Need::Root) || !has(Need::Program("setpriv")) {
        return;
    }
    let dir = tempfile::tempdir().expect("dir");
    // The build's folder may be closed to others.
    let copy = dir.path().join("holdup");
    // By a process of its own, as in `attach`: else another test's child may hold it open for writing.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_holdup")).arg(&copy).status().expect("cp");
    assert!(copied.success());
    fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("mode");
    let mut o = Command::new("setpriv");
    o.args(["--reuid=65534", "--clear-groups", "--inh-caps=-all"]).arg(&copy);
    let o = o.args(["record", "-o", &file(dir.path(), "t"), "--", "true"]).current_dir(dir.path()).output();
    let o = o.expect("setpriv");
    assert_eq!(code(&o), 4, "{}", err(&o));
    assert!(err(&o).contains("perf record"), "{}", err(&o));
    assert!(!dir.path().join("t").exists());
}

/// The parts of the sum add up.
fn check_sum(json: &Value) {
    let cpu = &json["cpu_seconds"];
    let part = |name: &str| cpu[name].as_f64().expect("a number");
    let names = ["busy", "spin", "other", "held_up", "runnable_idle", "no_work", "lost"];
    let (sum, total) = (names.iter().map(|n| part(n)).sum::<f64>(), part("total"));
    assert!(total > 0.0 && (sum - total).abs() <= 1e-3 * total, "{cpu}");
}

fn explain(path: &str) -> Value {
    let o = run(&["explain", path, "--json"]);
    assert_eq!(code(&o), 0, "{}", err(&o));
    let json = serde_json::from_slice(&o.stdout).expect("json");
    check_sum(&json);
    json
}

fn check_culprit(first: &Value) {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let culprit = &first["culprit"];
    assert_eq!(text(&first["kind"]), "lock-held", "{first}");
    assert_eq!(text(&culprit["thread"]), "bitmap-scan", "{first}");
    // An unoptimized build spends part of the loop in helpers.
    assert!(text(&culprit["source"]).contains("program.rs"), "{culprit}");
    assert!(text(&culprit["function"]).contains("find_free_block"), "{culprit}");
    assert_ne!(text(&first["confidence"]), "low", "{first}");
    assert!(first["waiters"]["threads"].as_u64() >= Some(2), "{first}");
}

#[test]
fn the_demo_names_its_culprit() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = file(dir.path(), "demo.holdup");
    let o = run(&["record", "-o", &path, "--", env!("CARGO_BIN_EXE_holdup"), "demo-program"]);
    assert_eq!(code(&o), 0, "{}", err(&o));
    let answer = explain(&path);
    let cpu = |part: &str| answer["cpu_seconds"][part].as_f64().expect("a number");
    // A lock holds no CPU up that others would have used.
    if cpu("other") < 0.2 * cpu("total") {
        check_culprit(&answer["findings"][0]);
    } else {
        let why = format!("so nothing of who is the culprit: {}", answer["cpu_seconds"]);
        skip(Need::Other { name: "CPUs that other programs left alone", is_here: false }, &why);
    }

    let page = run(&["explain", &path]);
    assert!(!out(&page).contains('\x1b'), "no colours in a pipe");
    let page =
        holdup().args(["explain", &path]).env("NO_COLOR", "1").env("CLICOLOR_FORCE", "0").output().expect("runs");
    assert!(!out(&page).contains('\x1b'), "no colours with NO_COLOR");
    let shell = format!("'{}' explain '{path}' | head -1", env!("CARGO_BIN_EXE_holdup"));
    let o = Command::new("sh").args(["-c", &shell]).output().expect("sh");
    assert!(!err(&o).contains("panicked") && out(&o).lines().count() == 1, "{}", err(&o));

    refuses(&["explain", &path, "--focus", "no-such-process"], "no-such-process");
    refuses(&["explain", &path, "--window", "900..901"], "demo.holdup");
    // Cut short, the file is refused.
    let bytes = fs::read(&path).expect("read");
    for part in [8, bytes.len() / 2, bytes.len() - 1] {
        fs::write(file(dir.path(), "short.holdup"), &bytes[..part]).expect("write");
        refuses(&["explain", &file(dir.path(), "short.holdup")], "short.holdup");
    }
}

#[test]
fn exit_codes_are_those_of_the_command() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = file(dir.path(), "t.holdup");
    assert_eq!(code(&run(&["record", "-o", &path, "--", "sh", "-c", "exit 7"])), 7);
    let info: Value = serde_json::from_slice(&run(&["info", &path, "--json"]).stdout).expect("json");
    assert_eq!(info["exit_code"], 7);
    let o = run(&["explain", "--json", "--", "sh", "-c", "sleep 0.1"]);
    assert_eq!(code(&o), 0, "{}", err(&o));
    check_sum(&serde_json::from_slice(&o.stdout).expect("json"));
}

#[test]
fn a_killed_recorder_leaves_a_spool() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = file(dir.path(), "t.holdup");
    let mut child = holdup()
        .args(["record", "-o", &path, "-a", "--duration", "600s"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let spool = format!("{path}.spool");
    // A round of the recorder writes a few times: so many sizes are several rounds.
    let mut sizes = std::collections::BTreeSet::new();
    while sizes.len() < 30 {
        assert!(child.try_wait().expect("a child").is_none(), "it ended by itself");
        sizes.extend(fs::metadata(&spool).ok().map(|about| about.len()));
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("kill");
    child.wait().expect("wait");
    assert!(Path::new(&spool).exists() && !Path::new(&path).exists());
    assert_eq!(code(&run(&["info", &spool])), 0);
    explain(&spool);
}

struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_keeps_what_was_written() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let small = dir.path().join("small");
    fs::create_dir(&small).expect("folder");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(&small).output();
    if !mount.is_ok_and(|o| o.status.success()) {
        return skip(Need::Mounts, "a tmpfs");
    }
    let mounted = Mount(small.clone());
    let path = file(&small, "t.holdup");
    let load = "timeout 3 sh -c 'while :; do /bin/true; done'; true";
    let o = run(&["record", "-o", &path, "--", "sh", "-c", load]);
    let ended = code(&o);
    let left: Vec<String> = [format!("{path}.spool"), path].into_iter().filter(|p| Path::new(p).exists()).collect();
    assert!(!left.is_empty(), "exit code {ended}: {}", err(&o));
    for path in &left {
        let info = run(&["info", path]);
        assert_eq!(code(&info), 0, "{path}: {}{}", err(&o), err(&info));
    }
    drop(mounted);
}

#[test]
fn a_tiny_buffer_counts_what_it_loses() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = file(dir.path(), "t.holdup");
    let load = "timeout 2 sh -c 'yes | cat | cat | cat > /dev/null'; true";
    let o = run(&["record", "--buffer", "1", "-o", &path, "--", "sh", "-c", load]);
    assert_eq!(code(&o), 0, "{}", err(&o));
    let info: Value = serde_json::from_slice(&run(&["info", &path, "--json"]).stdout).expect("json");
    let losses = info["losses"].as_array().expect("losses");
    let lost = |l: &&Value| l["kind"] == "events" && l["count"].as_u64() > Some(0);
    let lost = losses.iter().filter(lost).count();
    let answer = explain(&path);
    if lost == 0 {
        return skip(
            Need::Other { name: "load that a buffer of 1 MB cannot hold", is_here: false },
            "nothing was lost",
        );
    }
    let findings = answer["findings"].as_array().expect("findings");
    assert!(findings.iter().all(|f| f["confidence"] != "high"), "{answer}");
}
