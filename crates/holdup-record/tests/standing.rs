//! Threads that wait when a recording begins.

mod common;

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{may_record, open, run, run_until};
use holdup_record::{Options, Target};
use holdup_trace::Table;

/// Comes back when a process waits in a system call.
fn await_call(pid: u32, number: &str) {
    let begin = format!("{number} ");
    while !std::fs::read_to_string(format!("/proc/{pid}/syscall")).is_ok_and(|s| s.starts_with(&begin)) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn who_waits_when_it_begins_is_looked_at() {
    let Some(_one) = may_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let (path, file) = (dir.path().join("spool"), dir.path().join("lock"));
    let flock = |what: &[&str]| Command::new("flock").arg(&file).args(what).process_group(0).spawn().expect("flock");
    let mut holder = flock(&["sleep", "1000"]);
    while Command::new("flock").arg("-n").arg(&file).arg("true").status().expect("flock").success() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut waiter = flock(&["true"]);
    let mut reader = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat");
    await_call(waiter.id(), "73");
    await_call(reader.id(), "0");
    let outcome = run_until(&Options::default(), &path, &mut |status| {
        drop(reader.stdin.take());
        status.elapsed > Duration::from_millis(500)
    });
    for child in [&mut holder, &mut waiter] {
        Command::new("kill").args(["--", &format!("-{}", child.id())]).status().expect("kill");
        child.wait().expect("wait");
    }
    outcome.expect("recording");
    assert!(reader.wait().expect("cat").success());
    let trace = open(&path, None);
    let rows: Vec<_> = trace.standing_waits.load().expect("standing waits").rows().collect();
    // One goes on until the end, one is over before.
    for (pid, call) in [(waiter.id(), 73), (reader.id(), 0)] {
        let own = |thread| trace.thread(thread).is_some_and(|t| t.pid == pid);
        let [row] = rows.iter().filter(|row| own(row.thread)).collect::<Vec<_>>()[..] else {
            panic!("{pid}: {rows:?}")
        };
        assert!(
            row.syscall == call && trace.stacks.frames(row.stack).count() > 3,
            "{row:?}, with frames of the kernel"
        );
        let runs = trace.switches.iter().any(|switch| own(switch.expect("a switch").next));
        assert_eq!(runs, pid == reader.id());
    }
}

#[test]
fn a_command_that_may_not_begin_yet_waits_for_nothing() {
    let Some(_one) = may_record() else { return };
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("spool");
    let target = Target::Command { argv: vec!["true".into()] };
    run(&Options { target, ..Options::default() }, &path).expect("recording");
    let trace = open(&path, None);
    let rows = trace.standing_waits.load().expect("standing waits");
    let of_command = |thread| trace.thread(thread).is_some_and(|t| trace.meta.focus_pids.contains(&t.pid));
    assert!(rows.rows().all(|row| !of_command(row.thread)) && !trace.meta.focus_pids.is_empty());
}
