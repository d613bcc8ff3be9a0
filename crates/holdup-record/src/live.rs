//! What /proc tells of the threads of a running process: names, and what the scheduler counts.

use std::fs;
use std::path::Path;

use holdup_trace::{Error, Nanos, Result};

use crate::proc::numbers;

/// A running process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveProcess {
    /// Process id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its threads, by tid.
    pub threads: Vec<LiveThread>,
}

/// One of its threads. Times and counts are from its start on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveThread {
    /// Thread id.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// `R`, `S`, `D`, … as the kernel says.
    pub state: char,
    /// Time on a CPU; `None` where the kernel does not count (CONFIG_SCHED_INFO).
    pub ran: Option<Nanos>,
    /// Time ready to run and not on a CPU.
    pub ready: Option<Nanos>,
    /// How often it was put on a CPU.
    pub runs: Option<u64>,
    /// Switches because it waited.
    pub voluntary: u64,
    /// Switches because another thread was to run.
    pub involuntary: u64,
}

/// Reads the threads of the process with the number `pid`, or of the process of the thread with that number. Threads
/// that end meanwhile are left out. Fails if there is no such process, or if it ends meanwhile.
pub fn live_threads(pid: u32) -> Result<LiveProcess> {
    let folder = format!("/proc/{pid}");
    if !Path::new(&folder).exists() {
        return Err(Error::Input(format!("no process has the number {pid}, and no file that name")));
    }
    let gone = || Error::Input(format!("process {pid} ended while its threads were read"));
    let status = read(&format!("{folder}/status")).ok_or_else(gone)?;
    let pid = field(&status, "Tgid").and_then(|t| t.parse().ok()).unwrap_or(pid);
    let name = name(&format!("/proc/{pid}/comm")).ok_or_else(gone)?;
    let mut tids: Vec<u32> = numbers(Path::new(&format!("/proc/{pid}/task"))).collect();
    tids.sort_unstable();
    let threads: Vec<LiveThread> = tids.into_iter().filter_map(|tid| thread(pid, tid)).collect();
    if threads.is_empty() { Err(gone()) } else { Ok(LiveProcess { pid, name, threads }) }
}

fn thread(pid: u32, tid: u32) -> Option<LiveThread> {
    let folder = format!("/proc/{pid}/task/{tid}");
    let status = read(&format!("{folder}/status"))?;
    let schedstat = read(&format!("{folder}/schedstat")).unwrap_or_default();
    let mut counts = schedstat.split_ascii_whitespace().map_while(|n| n.parse().ok());
    let number = |key: &str| field(&status, key).and_then(|n| n.parse().ok()).unwrap_or(0);
    Some(LiveThread {
        tid,
        name: name(&format!("{folder}/comm"))?,
        state: field(&status, "State").and_then(|s| s.chars().next()).unwrap_or('?'),
        ran: counts.next().map(Nanos),
        ready: counts.next().map(Nanos),
        runs: counts.next(),
        voluntary: number("voluntary_ctxt_switches"),
        involuntary: number("nonvoluntary_ctxt_switches"),
    })
}

/// `None` once the thread is gone. A name may be any bytes.
fn read(path: &str) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn name(path: &str) -> Option<String> {
    read(path).map(|text| text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// The value of `key` in a file of the form of /proc/PID/status.
fn field<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    status.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_this_thread() {
        let handle = std::thread::Builder::new().name("a name".into()).spawn(|| {
            let me = live_threads(std::process::id()).expect("it runs");
            assert_eq!(me.pid, std::process::id());
            me.threads.iter().filter(|t| t.name == "a name" && t.state == 'R').count()
        });
        assert_eq!(handle.expect("starts").join().expect("ends"), 1);
        assert!(live_threads(u32::MAX).expect_err("too great").to_string().contains("4294967295"));
    }

    #[test]
    fn fields_of_status() {
        let status =
            "Name:\tx\nState:\tS (sleeping)\nTgid:\t12\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t8\n";
        assert_eq!(field(status, "Tgid"), Some("12"));
        assert_eq!(field(status, "State"), Some("S (sleeping)"));
        assert_eq!(field(status, "voluntary_ctxt_switches"), Some("7"));
        assert_eq!(field(status, "None"), None);
    }
}
