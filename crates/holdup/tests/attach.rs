//! Recording what runs already: by number, by name, by control group, with the children that it has.

mod outside;
mod recording;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use holdup_testing::{Need, skip};
use outside::{code, err, holdup, json, run};
use recording::can_record;

#[test]
fn what_does_not_run_is_no_recording() {
    let dir = tempfile::tempdir().expect("dir");
    let out = dir.path().join("t.holdup").display().to_string();
    for (args, says) in [
        (&["-p", "4194305"][..], "there is no process 4194305"),
        (&["-p", "no-such-process-at-all"], "no process is called"),
        (&["-p", "1,4194305"], "there is no process 4194305"),
        (&["--cgroup", "/no/such/group"], "there is no control group /no/such/group"),
    ] {
        for command in [&["record", "-o", &out][..], &["explain", "--keep", &out]] {
            let o = run(&[command, args].concat());
            assert!(code(&o) == 3 && err(&o).contains(says), "{args:?}: {}", err(&o));
            assert_eq!(fs::read_dir(dir.path()).expect("dir").count(), 0, "{args:?}");
        }
    }
}

/// A program of a name of its own, with a child that exists already; both end with its standard input.
fn family(dir: &Path, name: &str) -> (Child, u32) {
    let program = dir.join(name);
    if !program.exists() {
        let shell = ["/bin/sh", "/usr/bin/sh"].into_iter().find(|path| Path::new(path).exists()).expect("a shell");
        // By a process of its own: a file that is open for writing here may be so in a child that another test starts just
        // then, and no file is run that somebody writes to.
        assert!(Command::new("cp").arg(shell).arg(&program).status().expect("cp").success());
    }
    let script = "(while :; do sleep 0.01; done) & echo $!; read x; kill $!";
    let mut child = Command::new(program);
    let child = child.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = child.spawn().expect("starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("pipe")).read_line(&mut line).expect("a line");
    (child, line.trim().parse().expect("a pid"))
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    child.wait().expect("ends");
}

/// Records until `until` lets the families end, and tells which processes are in the focus.
fn attached(path: &Path, args: &[&str], end_families: impl FnOnce()) -> Vec<String> {
    let path = path.display().to_string();
    let mut recorder = holdup();
    let recorder = recorder.args(["record", "-o", &path]).args(args).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut recorder = recorder.spawn().expect("starts");
    // The first round of a spool names all that runs; before it there is but a header.
    let spool = PathBuf::from(format!("{path}.spool"));
    let begun = || fs::metadata(&spool).is_ok_and(|m| m.len() > 8192);
    while !begun() && recorder.try_wait().expect("wait").is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    end_families();
    let o = recorder.wait_with_output().expect("ends");
    assert_eq!(code(&o), 0, "{args:?}: {}", err(&o));
    let threads = json(&run(&["threads", &path, "--json", "--top", "1000"]));
    let rows = threads["threads"].as_array().expect("threads").iter();
    rows.map(|row| row["pid"].to_string()).collect()
}

#[test]
fn processes_are_attached_by_number_name_and_group_with_their_children() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    for by in ["numbers", "name", "repeated"] {
        let name = format!("family-{by}");
        let ((first, child), (second, other)) = (family(dir.path(), &name), family(dir.path(), &name));
        let pids = [first.id(), child, second.id(), other].map(|pid| pid.to_string());
        let both = format!("{},{}", pids[0], pids[2]);
        let args = match by {
            "numbers" => vec!["-p", both.as_str()],
            "name" => vec!["-p", name.as_str()],
            _ => vec!["-p", pids[0].as_str(), "-p", pids[2].as_str()],
        };
        let focus = attached(&dir.path().join(format!("{by}.holdup")), &args, || {
            end(first);
            end(second);
        });
        for pid in &pids {
            assert!(focus.contains(pid), "{by}: {pid} of {pids:?} is not in {focus:?}");
        }
        assert!(!focus.contains(&std::process::id().to_string()), "{by}");
    }
}

/// A control group that is removed in the end.
struct Group(PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Processes come and go while the hooks are attached, while /proc is read, and while the hooks are detached.
#[test]
fn whoever_runs_while_recording_begins_or_ends_has_a_name() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let _storm = Storm(Command::new("sh").args(["-c", "while :; do /bin/true; done"]).spawn().expect("starts"));
    for n in 0..5 {
        let names = names_of_all(&dir.path().join(format!("{n}.holdup")));
        assert!(names.iter().any(|name| name == "true"), "{names:?}");
        let nameless: Vec<_> = names.iter().filter(|name| name.starts_with("tid ")).collect();
        assert!(nameless.is_empty(), "{nameless:?} of {}", names.len());
    }
}

/// A shell that starts one program after another until it is dropped.
struct Storm(Child);

impl Drop for Storm {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The names of all threads that run within 0.2 s.
fn names_of_all(path: &Path) -> Vec<String> {
    let path = path.display().to_string();
    let o = run(&["record", "-a", "--duration", "0.2s", "-o", &path]);
    assert_eq!(code(&o), 0, "{}", err(&o));
    let told = json(&run(&["threads", &path, "--json", "--top", "100000"]));
    let rows = told["threads"].as_array().expect("threads");
    rows.iter().map(|row| row["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_control_group_is_its_processes() {
    let Some(_one) = can_record() else { return };
    let roots = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
    let name = format!("holdup-test-{}", std::process::id());
    let made = roots
        .iter()
        .map(|root| Group(Path::new(root).join(&name)))
        .find(|group| fs::create_dir(&group.0).is_ok() && group.0.join("cgroup.procs").exists());
    let Some(group) = made else {
        return skip(Need::ControlGroups, "none can be made");
    };
    let o = run(&["record", "-o", "/nowhere/t", "--cgroup", &name]);
    assert!(code(&o) == 3 && err(&o).contains("no process is in the control group"), "{}", err(&o));
    let dir = tempfile::tempdir().expect("dir");
    let (first, child) = family(dir.path(), "in-a-group");
    let pid = first.id().to_string();
    if fs::write(group.0.join("cgroup.procs"), &pid).is_err() {
        end(first);
        return skip(Need::ControlGroups, "no process can be put into one");
    }
    let focus = attached(&dir.path().join("t.holdup"), &["--cgroup", &format!("/{name}")], || end(first));
    assert!(focus.contains(&pid) && focus.contains(&child.to_string()), "{focus:?}");
}

/// What stands on a terminal of 30 lines after this output. A picture tells what differs from the one before: a word that shares a letter
/// with what stood there never comes whole.
fn screen(output: &[u8]) -> String {
    let (mut cells, mut row, mut column) = (vec![[' '; 100]; 30], 0, 0);
    let output = String::from_utf8_lossy(output);
    let mut rest = output.chars();
    while let Some(c) = rest.next() {
        if c != '\x1b' {
            if let Some(cell) = cells.get_mut(row).and_then(|line| line.get_mut(column)) {
                *cell = c;
            }
            column += 1;
            continue;
        }
        // A bracket, numbers, and a letter that says what they are.
        let sequence = rest.as_str();
        let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(sequence.len());
        let numbers: Vec<usize> = sequence[..end].split(['[', ';']).filter_map(|n| n.parse().ok()).collect();
        match (sequence[end..].chars().next(), numbers.as_slice()) {
            (Some('H'), [line, place]) => (row, column) = (line - 1, place - 1),
            (Some('J'), _) => cells.fill([' '; 100]),
            _ => {}
        }
        rest = sequence[end..].chars();
        rest.next();
    }
    cells.iter().map(|line| line.iter().chain(&['\n']).collect::<String>()).collect()
}

/// The screen on a terminal of its own, which `script` makes: pages come, keys act, and the terminal is given back.
#[test]
fn top_draws_pages_until_a_key_ends_it() {
    let Some(_one) = can_record() else { return };
    let command = format!("stty rows 30 cols 100; exec {} top --over 300ms", env!("CARGO_BIN_EXE_holdup"));
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped()).env("TERM", "xterm");
    let mut child = script.spawn().expect("script");
    let (mut input, mut output) = (child.stdin.take().expect("pipe"), child.stdout.take().expect("pipe"));
    let (mut seen, mut some) = (Vec::new(), [0; 4096]);
    // A picture comes in several pieces.
    while !["page", "worked", "process"].iter().all(|word| screen(&seen).contains(word)) {
        let n = output.read(&mut some).expect("its output");
        assert!(n > 0, "it ended: {}", screen(&seen));
        seen.extend_from_slice(&some[..n]);
    }
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.contains("\x1b[?1049h"), "{seen}");
    input.write_all(b"sq").expect("keys");
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).expect("its output");
    assert!(child.wait().expect("its end").success());
    assert!(String::from_utf8_lossy(&rest).contains("\x1b[?1049l"), "the terminal is as it was");
}

#[test]
fn top_looks_once_and_says_how_long() {
    for (args, says) in [(&["top"][..], "terminal"), (&["top", "--json"], "--once")] {
        let o = run(args);
        assert!(code(&o) == 2 && err(&o).contains(says), "{args:?}: {}", err(&o));
    }
    let Some(_one) = can_record() else { return };
    let answer = json(&run(&["top", "--once", "--json", "--over", "400ms"]));
    assert_eq!(answer["schema"], "holdup.explain/1");
    let length = answer["trace"]["duration_s"].as_f64().expect("a length");
    assert!((0.3..5.0).contains(&length), "{length} s");
}

/// What is looked at ran before, and the recording lasts as long as the command beside it, which is not in focus.
#[test]
fn a_command_runs_while_others_are_looked_at() {
    let Some(_one) = can_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let (server, child) = family(dir.path(), "server-beside");
    let pids = [server.id(), child].map(|pid| pid.to_string());
    let (path, said) = (dir.path().join("t.holdup"), dir.path().join("said"));
    let load = format!("echo $$ > {}; sleep 0.3", said.display());
    let focus = attached(&path, &["-p", &pids[0], "--", "sh", "-c", &load], || {});
    end(server);
    assert!(pids.iter().all(|pid| focus.contains(pid)), "{pids:?} {focus:?}");
    let load = fs::read_to_string(said).expect("it ran");
    assert!(!focus.contains(&load.trim().to_owned()), "{load} {focus:?}");
}
