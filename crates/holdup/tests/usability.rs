//! What a user of other tools types and pipes: hints, standard input, exit codes, the status line, completions.

mod outside;
mod recording;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use holdup_testing::{Need, skip};
use outside::{code, err, holdup, json, run};
use recording::can_record;
use serde_json::Value;

const HOLDUP: &str = env!("CARGO_BIN_EXE_holdup");
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../holdup-import/tests/fixtures");

/// What comes of `args` with `bytes` on a pipe.
fn piped(args: &[&str], mut bytes: File) -> Output {
    let mut child = holdup();
    let child = child.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    // It may end before it has read all.
    let feeder = std::thread::spawn(move || drop(std::io::copy(&mut bytes, &mut pipe)));
    let output = child.wait_with_output().expect("ends");
    feeder.join().expect("feeds");
    output
}

#[test]
fn words_of_perf_are_answered() {
    for (args, says) in [
        (
            &["record", "-F", "99", "-g", "--", "ls"][..],
            &["-g is an option of perf", "holdup record --freq 99 -- ls"][..],
        ),
        (&["record", "--call-graph", "dwarf", "-a"], &["call stacks", "did you mean: holdup record -a"]),
        (&["explain", "-e", "cycles", "-c", "1", "--", "ls"], &["no events to choose", "holdup explain -- ls"]),
        (&["record", "ls", "-l"], &["did you mean: holdup record -- ls -l"]),
        (&["explain", "sh", "-c", "exit 1"], &["did you mean: holdup explain -- sh -c 'exit 1'"]),
    ] {
        let o = run(args);
        assert_eq!(code(&o), 2, "{args:?}: {}", err(&o));
        assert!(says.iter().all(|says| err(&o).contains(says)) && o.stdout.is_empty(), "{args:?}: {}", err(&o));
    }
    for (args, says) in [
        (&["explain", "sh"][..], "to record it: holdup explain -- sh"),
        (&["explain", HOLDUP], "to record it: holdup explain -- "),
    ] {
        let o = run(args);
        assert!(code(&o) == 3 && err(&o).contains(says), "{args:?}: {}", err(&o));
    }
    let o = run(&["explain", "no-such-file-nor-program"]);
    assert!(code(&o) == 3 && !err(&o).contains("--"), "{}", err(&o));
}

/// The same answer from a file, a pipe, a file as standard input, and a named pipe, for every command that reads a trace.
#[test]
fn every_command_reads_every_format_from_a_pipe() {
    let dir = tempfile::tempdir().expect("dir");
    let perf = format!("{FIXTURES}/task.perf.data");
    let mut traces = vec![perf];
    if let Some(_one) = can_record() {
        let path = dir.path().join("t.holdup").display().to_string();
        assert_eq!(code(&run(&["record", "-o", &path, "--", "sh", "-c", "sleep 0.1"])), 0);
        traces.push(path);
    }
    for trace in &traces {
        for args in [
            &["info", "-", "--json"][..],
            &["explain", "-", "--json"],
            &["threads", "-", "--json"],
            &["table", "-", "switches", "--json"],
        ] {
            let from = |name: &str| -> Vec<String> {
                args.iter().map(|arg| if *arg == "-" { name.to_owned() } else { (*arg).to_owned() }).collect()
            };
            let open = || File::open(trace).expect("trace");
            let mut file = json(&holdup().args(from(trace)).output().expect("runs"));
            let mut whole = json(&holdup().args(args).stdin(open()).output().expect("runs"));
            let mut pipe = json(&piped(args, open()));
            for answer in [&mut file, &mut whole, &mut pipe] {
                answer["trace"] = Value::Null;
            }
            assert!(file == pipe && file == whole, "{trace} {args:?}");
        }
    }
    // What a shell makes of <(cat TRACE).
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let trace = traces.pop().expect("one");
    let (bytes, to) = (fs::read(&trace).expect("trace"), fifo.clone());
    let feeder = std::thread::spawn(move || fs::write(to, bytes).expect("a reader"));
    let of_fifo = json(&run(&["info", &fifo.display().to_string(), "--json"]));
    feeder.join().expect("feeds");
    assert_eq!(of_fifo, json(&run(&["info", &trace, "--json"])));
}

/// gzip of a trace is that trace, as a file and on a pipe.
#[test]
fn packed_traces_are_unpacked() {
    let dir = tempfile::tempdir().expect("dir");
    let own = dir.path().join("t.holdup");
    let perf = format!("{FIXTURES}/task.perf.data");
    let o = run(&["cut", &perf, "--redact", "-o", &own.display().to_string()]);
    assert_eq!(code(&o), 0, "{}", err(&o));
    for trace in [own.display().to_string(), perf] {
        let packed = dir.path().join("packed");
        let mut gzip =
            flate2::write::GzEncoder::new(File::create(&packed).expect("a file"), flate2::Compression::fast());
        gzip.write_all(&fs::read(&trace).expect("the trace")).expect("room");
        gzip.finish().expect("room");
        let answer = |o: Output| json(&o)["events"].clone();
        let plain = answer(run(&["info", &trace, "--json"]));
        assert_eq!(answer(run(&["info", &packed.display().to_string(), "--json"])), plain, "{trace}");
        let packed = File::open(&packed).expect("a file");
        assert_eq!(answer(piped(&["info", "-", "--json"], packed)), plain, "{trace}");
    }
}

#[test]
fn what_is_no_trace_on_a_pipe_is_a_sentence() {
    let dir = tempfile::tempdir().expect("dir");
    let file = |bytes: &[u8]| {
        let path = dir.path().join("input");
        fs::write(&path, bytes).expect("write");
        File::open(path).expect("open")
    };
    for (bytes, says) in [
        (&b""[..], "standard input at byte 0: it is empty"),
        (b"no trace\n", "standard input: is no trace"),
        (b"PK\x03\x04 and no more", "standard input: not a complete .holdup file"),
    ] {
        let o = piped(&["info", "-"], file(bytes));
        assert!(code(&o) == 3 && err(&o).contains(says), "{}", err(&o));
    }
    let o = piped(&["diff", "-", "--vs", "-"], File::open(format!("{FIXTURES}/task.perf.data")).expect("trace"));
    assert!(code(&o) == 3 && err(&o).contains("can be read only once"), "{}", err(&o));
}

#[test]
fn a_name_that_is_not_in_the_trace_gets_the_names_that_are() {
    let trace = format!("{FIXTURES}/task.perf.data");
    for args in [
        &["explain", &trace, "--focus", "scehd-pipe"][..],
        &["threads", &trace, "--focus", "scehd-pipe"],
        &["table", &trace, "switches", "--focus", "scehd-pipe"],
    ] {
        let o = run(args);
        assert!(
            code(&o) == 3 && err(&o).contains("(did you mean sched-pipe?); there are sched-pipe (2 processes), "),
            "{args:?}: {}",
            err(&o)
        );
        assert_eq!(err(&o).trim_end().lines().count(), 1);
    }
}

#[test]
fn explain_ends_as_the_command_did_and_names_no_file_that_is_gone() {
    let Some(_one) = can_record() else { return };
    let o = run(&["explain", "--", "sh", "-c", "sleep 0.05; exit 7"]);
    assert_eq!(code(&o), 7, "{}", err(&o));
    assert!(err(&o).contains("the command's exit code was 7, and so is this one"), "{}", err(&o));
    assert!(!err(&o).contains("trace.holdup"), "{}", err(&o));
    let o = run(&["explain", "--json", "--", "sh", "-c", "kill -9 $$"]);
    assert!(code(&o) == 137 && err(&o).contains("ended by signal 9"), "{}", err(&o));
    assert_eq!(code(&run(&["explain", "--", "sh", "-c", "sleep 0.05"])), 0);
    let dir = tempfile::tempdir().expect("dir");
    let kept = dir.path().join("kept.holdup").display().to_string();
    let o = run(&["explain", "--keep", &kept, "--", "true"]);
    assert!(err(&o).contains(&kept) && Path::new(&kept).exists(), "{}", err(&o));
}

/// A recording that cannot be turned into its file is kept only where its folder stays.
#[test]
fn nothing_is_kept_in_a_folder_that_goes_away() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let small = dir.path().join("small");
    fs::create_dir(&small).expect("folder");
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&small).output();
    if !mount.is_ok_and(|o| o.status.success()) {
        return skip(Need::Mounts, "a tmpfs");
    }
    let load = "timeout 2 sh -c 'while :; do /bin/true; done'; true";
    let o = holdup().args(["explain", "--", "sh", "-c", load]).env("TMPDIR", &small).output().expect("runs");
    let said = err(&o);
    let left = fs::read_dir(&small).expect("folder").count();
    Command::new("umount").arg(&small).status().expect("umount");
    assert_eq!(left, 0);
    assert!(!said.contains("is kept"), "{said}");
    if code(&o) != 0 {
        assert!(said.contains("the recording is lost"), "{said}");
    }
}

/// What appears on a terminal, as bytes.
#[track_caller]
fn on_a_terminal(command: &str) -> Option<String> {
    let o = Command::new("script").args(["-qec", command, "/dev/null"]).stdin(Stdio::null()).output();
    if o.is_err() {
        skip(Need::Program("script"), "it makes a terminal");
    }
    Some(String::from_utf8_lossy(&o.ok()?.stdout).into_owned())
}

#[test]
fn the_status_line_stays_out_of_the_programs_output() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let out = dir.path().join("t.holdup").display().to_string();
    let program = "for i in 1 2 3 4; do sleep 0.4; printf \"part $i\"; done; echo";
    let Some(seen) = on_a_terminal(&format!("'{HOLDUP}' record -o '{out}' -- sh -c '{program}'")) else { return };
    assert!(seen.contains("part 1part 2part 3part 4\r\n"), "{seen:?}");
    assert!(!seen.contains("events/s"), "{seen:?}");
    // Nor does what follows remove a line that the program has left open.
    let record = format!("'{HOLDUP}' record -o '{out}' -- printf open");
    let Some(seen) = on_a_terminal(&format!("stty cols 80 rows 24; {record}")) else { return };
    assert!(seen.contains(&format!("open{}\r", " ".repeat(80))), "{seen:?}");
    // With nobody else on the terminal it is there.
    let Some(seen) = on_a_terminal(&format!("'{HOLDUP}' record -o '{out}' -a --duration 1500ms")) else { return };
    assert!(seen.contains("events/s") && seen.contains("\r\x1b[K"), "{seen:?}");
}

/// The rest of a trace comes only once the terminal says that it is awaited.
#[test]
fn what_takes_long_says_what_it_does() {
    let dir = tempfile::tempdir().expect("dir");
    let fifo = dir.path().join("slow");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let command = format!("'{HOLDUP}' info '{}'", fifo.display());
    let mut script = Command::new("script");
    let script = script.args(["-qec", &command, "/dev/null"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let Ok(mut script) = script.spawn() else {
        return skip(Need::Program("script"), "it makes a terminal");
    };
    let bytes = fs::read(format!("{FIXTURES}/task.perf.data")).expect("trace");
    let mut pipe = fs::OpenOptions::new().write(true).open(&fifo).expect("a reader");
    pipe.write_all(&bytes[..100]).expect("write");
    let mut out = script.stdout.take().expect("pipe");
    let (said, heard) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let (mut seen, mut bytes) = (String::new(), [0; 4096]);
        while let Ok(n @ 1..) = out.read(&mut bytes) {
            seen.push_str(&String::from_utf8_lossy(&bytes[..n]));
            if seen.contains("reading slow") {
                let _ = said.send(());
            }
        }
        seen
    });
    let was_said = heard.recv_timeout(Duration::from_secs(60)).is_ok();
    pipe.write_all(&bytes[100..]).expect("write");
    drop(pipe);
    let seen = reader.join().expect("reads");
    script.wait().expect("ends");
    assert!(was_said, "{seen:?}");
    // And it is gone before the answer comes.
    let answer = seen.split("\r\x1b[K").last().unwrap_or_default();
    assert!(answer.contains("perf.data") && !answer.contains("reading slow"), "{seen:?}");
}

#[test]
fn bash_completes_names_and_runs_none_of_them() {
    let dir = tempfile::tempdir().expect("dir");
    let script = dir.path().join("completions");
    fs::write(&script, run(&["completions", "bash"]).stdout).expect("write");
    let planted = dir.path().join("x");
    let complete = |words: &[&str]| -> Option<String> {
        let list = words.iter().map(|w| format!("'{w}'")).collect::<Vec<_>>().join(" ");
        let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
        let code = format!(
            "source '{}'; COMP_WORDS=(holdup {list}); COMP_CWORD={}; _holdup holdup '{last}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display(),
            words.len()
        );
        let o = Command::new("bash").args(["-c", &code]).current_dir(dir.path()).output().ok()?;
        Some(String::from_utf8_lossy(&o.stdout).into_owned())
    };
    if complete(&["record", ""]).is_none() {
        return skip(Need::Program("bash"), "it cannot be run");
    }
    let offers = |words: &[&str], name: &str| {
        let offered = complete(words).expect("bash");
        assert!(offered.lines().any(|line| line == name), "{words:?} {name}: {offered}");
    };
    offers(&["table", "x.holdup", "who"], "who-waits-longest");
    offers(&["table", "x.holdup", "waits", "--by", "fun"], "function");
    offers(&["lab", "run", "send"], "send-delay");
    offers(&["check", "--only", "pre"], "pressure");
    offers(&["schema", "ex"], "explain");
    let me = std::process::id().to_string();
    offers(&["record", "-p", &me], &me);
    // A process may be called as it likes.
    let evil = "printf '$(>x)' > /proc/$$/comm; echo; read x";
    let mut child = Command::new("sh");
    let mut child = child.args(["-c", evil]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("pipe")).read_line(&mut line).expect("a line");
    complete(&["record", "-p", ""]);
    assert!(!planted.exists(), "a process's name was run");
    let _ = child.stdin.take().expect("pipe").write_all(b"\n");
    child.wait().expect("ends");
}
