//! Programs that are hard to record.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Row;
use super::scene::{Scene, Seen, words};
use crate::load;

/// Records a command of the shell; what is in the trace.
fn recorded(scene: &Scene, name: &str, command: &[&str]) -> Result<(Seen, bool, String)> {
    let output = scene.fresh(name)?.join("t.holdup");
    let ended = scene.record(&output, &[], command)?;
    let code = ended.status.code();
    let said = words(&ended);
    ensure!(code == Some(0), "{said}");
    Ok((scene.look(&output)?, scene.opens(&output), said))
}

fn this() -> Result<String> {
    Ok(std::env::current_exe()?.display().to_string())
}

/// As many processes one after the other as fast as a shell makes them.
pub fn processes(scene: &Scene, times: usize) -> Result<Row> {
    const PROCESSES: u64 = 20_000;
    let script = format!("i=0; while [ $i -lt {PROCESSES} ]; do /bin/true; i=$((i+1)); done");
    let (mut open, mut forks, mut lost) = (0, u64::MAX, 0);
    for _ in 0..times {
        let (seen, opens, _) = recorded(scene, "storm", &["sh", "-c", &script])?;
        (forks, lost) = (forks.min(seen.forks), lost + seen.lost);
        open += usize::from(opens);
    }
    let missing = PROCESSES.saturating_sub(forks);
    let text = format!("{missing} of {PROCESSES} processes; {lost} records and stacks counted as lost");
    Ok(Row {
        what: "a storm of 20,000 processes (fork and exec)",
        times,
        lost: text,
        open,
        results: times,
        is_good: missing <= lost,
    })
}

pub fn threads(scene: &Scene, times: usize) -> Result<Row> {
    const THREADS: u64 = 10_000;
    let (mut open, mut least, mut lost) = (0, u64::MAX, 0);
    for _ in 0..times {
        let (seen, opens, _) = recorded(scene, "threads", &[&this()?, load::COMMAND, "threads", &THREADS.to_string()])?;
        (least, lost) = (least.min(seen.threads), lost + seen.lost);
        open += usize::from(opens);
    }
    let missing = THREADS.saturating_sub(least);
    let text = format!("{missing} of {THREADS} threads; {lost} records and stacks counted as lost");
    Ok(Row { what: "a program of 10,000 threads", times, lost: text, open, results: times, is_good: missing <= lost })
}

/// A program whose file is gone when its functions are named.
pub fn unlinked(scene: &Scene, times: usize) -> Result<Row> {
    let mut open = 0;
    let (mut lost, mut named) = (0, 0);
    for _ in 0..times {
        let output = scene.fresh("unlinked")?.join("t.holdup");
        let copy = output.with_file_name("gone");
        fs::copy(this()?, &copy)?;
        let script = format!("{0} {1} spin 2 & sleep 0.3; rm {0}; wait", copy.display(), load::COMMAND);
        let ended = scene.record(&output, &[], &["sh", "-c", &script])?;
        ensure!(ended.status.success(), "{}", words(&ended));
        lost += scene.look(&output)?.lost;
        named += usize::from(samples_by(scene, &output, "process")?.contains("gone"));
        open += usize::from(scene.opens(&output));
    }
    let text = format!("{lost} records and stacks; the program is named {named} times of {times}");
    Ok(Row {
        what: "a program whose file is removed while it runs",
        times,
        lost: text,
        open,
        results: times,
        is_good: named == times,
    })
}

/// The table of CPU samples by a column, as text.
fn samples_by(scene: &Scene, path: &Path, column: &str) -> Result<String> {
    let output = Command::new(&scene.holdup).arg("table").arg(path).args(["cpu", "--by", column, "--json"]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub fn jit(scene: &Scene, times: usize) -> Result<Row> {
    let code = "let end = Date.now() + 3000; let x = 0; function spinning() { for (let i = 0; i < 1e6; i++) x += i % 7; } \
                while (Date.now() < end) spinning();";
    ensure!(Command::new("node").arg("--version").output().is_ok_and(|o| o.status.success()), "there is no node");
    let (mut open, mut lost, mut named) = (0, 0, 0);
    for _ in 0..times {
        let (seen, opens, _) = recorded(scene, "jit", &["node", "--perf-basic-prof", "-e", code])?;
        lost += seen.lost;
        open += usize::from(opens);
        let functions = samples_by(scene, &scene.folder.join("jit/t.holdup"), "function")?;
        named += usize::from(functions.contains("spinning"));
    }
    let text = format!("{lost} records and stacks; its function is named {named} times of {times}");
    let what = "a program that makes its code while it runs (node)";
    Ok(Row { what, times, lost: text, open, results: times, is_good: named == times })
}

/// The same number given to process after process.
pub fn pid_reuse(scene: &Scene, times: usize) -> Result<Row> {
    const ROUNDS: u64 = 300;
    let file = "/proc/sys/kernel/ns_last_pid";
    ensure!(Path::new(file).exists(), "this kernel does not let numbers be chosen ({file})");
    let script = format!(
        "i=0; while [ $i -lt {ROUNDS} ]; do echo 29999 > {file}; /bin/true; /bin/sleep 0.001; i=$((i+1)); done"
    );
    let (mut open, mut least, mut lost) = (0, u64::MAX, 0);
    for _ in 0..times {
        let (seen, opens, _) = recorded(scene, "reuse", &["sh", "-c", &script])?;
        (least, lost) = (least.min(seen.threads), lost + seen.lost);
        open += usize::from(opens);
    }
    let missing = (2 * ROUNDS).saturating_sub(least);
    let text = format!(
        "{missing} of {} processes with the same two numbers, each a thread of its own; {lost} counted as lost",
        2 * ROUNDS
    );
    Ok(Row {
        what: "numbers of processes that are given again at once",
        times,
        lost: text,
        open,
        results: times,
        is_good: missing <= lost,
    })
}

/// A process that becomes one program after another.
pub fn exec_chain(scene: &Scene, times: usize) -> Result<Row> {
    let script = "n=${1:-0}; [ $n -ge 500 ] && exit 0; exec sh \"$0\" $((n+1))";
    let file = scene.fresh("chain-script")?.join("chain.sh");
    fs::write(&file, script).context("script")?;
    let (mut open, mut lost) = (0, 0);
    for _ in 0..times {
        let (seen, opens, _) = recorded(scene, "exec", &["sh", &file.display().to_string(), "0"])?;
        lost += seen.lost;
        open += usize::from(opens);
    }
    let text = format!("{lost} records and stacks");
    Ok(Row {
        what: "a process that becomes another program 500 times",
        times,
        lost: text,
        open,
        results: times,
        is_good: true,
    })
}
