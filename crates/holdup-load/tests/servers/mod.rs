//! Real servers for tests: started on free ports of this machine with all of their files in a directory of their own, and
//! stopped with the test, whatever ends it.
//!
//! It takes the standard library, `tempfile` and `holdup-testing` alone, so that other programs can include it by its path.

#![allow(dead_code, reason = "each test binary uses the servers it is about")]

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::{Duration, Instant};

use holdup_testing::Need;
use tempfile::TempDir;

pub mod cassandra;
pub mod certificate;
pub mod http;
pub mod postgres;
pub mod redis;

/// Starts the command, tells its process, and ends it once standard input closes: when the test is done, or is no more.
const SUPERVISOR: &str = r#"
log=$1; dir=$2; shift 2
"$@" >"$log" 2>&1 </dev/null &
pid=$!
echo "$pid"
cat >/dev/null
kill -CONT "$pid" 2>/dev/null
kill -TERM "$pid" 2>/dev/null
( trap 'kill "$nap"; exit' TERM; sleep 15 & nap=$!; wait "$nap"; kill -KILL "$pid" ) >/dev/null 2>&1 &
timer=$!
wait "$pid" 2>/dev/null
kill "$timer" 2>/dev/null
rm -rf "$dir"
"#;

/// A server that runs until this is dropped.
pub struct Server {
    supervisor: Child,
    process: String,
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
    dir: TempDir,
}

impl Server {
    /// Runs `command`, whose files are in `dir`, until `port` of 127.0.0.1 answers.
    ///
    /// # Errors
    /// What it printed last, if it ended or did not answer within `patience`.
    pub fn start(command: &[String], dir: TempDir, port: u16, patience: Duration) -> Result<Server, String> {
        let mut supervisor = Command::new("sh")
            .args(["-c", SUPERVISOR, "supervisor"])
            .args([dir.path().join("log"), dir.path().to_owned()])
            .args(command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("no shell can be started: {error}"))?;
        let mut process = String::new();
        let told = supervisor.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut process));
        let server = Server { supervisor, process: process.trim().to_owned(), port, dir };
        if !matches!(told, Some(Ok(length)) if length > 1) {
            return Err(format!("{} did not start", command[0]));
        }
        server.wait_for_port(patience)?;
        Ok(server)
    }

    fn wait_for_port(&self, patience: Duration) -> Result<(), String> {
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if !self.is_running() {
                return Err(format!("the server ended: {}", self.log()));
            }
            if start.elapsed() > patience {
                return Err(format!("the server did not listen within {patience:?}: {}", self.log()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// A process that ended but was not waited for has no memory any more.
    fn is_running(&self) -> bool {
        std::fs::read_to_string(format!("/proc/{}/statm", self.process)).is_ok_and(|statm| !statm.starts_with("0 "))
    }

    /// The last lines of what it printed.
    pub fn log(&self) -> String {
        let log = std::fs::read(self.dir.path().join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// Where its files are.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Its connections stay open, and nothing comes over them.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Goes on after [`Server::freeze`].
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// Ends it at once, and returns when it is gone.
    pub fn kill(&self) {
        self.signal("-KILL");
        while self.is_running() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn signal(&self, name: &str) {
        signal(name, &self.process);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }
}

/// Sends `name`, such as `-STOP`, to a process.
pub fn signal(name: &str, process: &str) {
    let status = Command::new("kill").args([name, process]).status().expect("kill can be run");
    assert!(status.success(), "kill {name} {process} failed");
}

/// A port of 127.0.0.1 that is free, and that no other test of this process is given. It is below those that the system hands
/// out by itself, so that no connection and no listener takes it before the server does.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    // Programs that run at the same time begin at different places.
    let own = (std::process::id() % u32::from(COUNT)) as u16 / 16 * 16;
    let mut ports = (0..COUNT).map(|_| FIRST + (own + NEXT.fetch_add(1, Relaxed) % COUNT) % COUNT);
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("one of many ports is free")
}

/// An empty directory that is removed with what is in it.
pub fn directory(name: &str) -> TempDir {
    tempfile::Builder::new().prefix(&format!("holdup-{name}-")).tempdir().expect("a directory can be made")
}

/// The program `name`, by the search path or in one of `places`.
pub fn program(name: &str, places: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(places.iter().cloned()).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// Skips a test without the server `what`, which needs these things and did not start, with the reason.
#[track_caller]
pub fn skip(what: &str, needs: &[Need], why: &str) {
    let missing = needs.iter().copied().find(|need| !need.is_here());
    holdup_testing::skip(missing.unwrap_or(Need::Other { name: what, is_here: true }), why);
}
