//! Where a case runs: a folder, processes that end with it, and a recorder.

use std::fmt;
use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::holdup::{Holdup, perf_events};

/// How long a server may take to answer.
const READY: Duration = Duration::from_secs(20);
/// How long a process may take to end by itself once it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// A case's place to run.
pub struct Scene<'a> {
    holdup: &'a Holdup,
    /// Its folder, empty at first.
    pub dir: PathBuf,
    /// How long to record.
    pub seconds: f64,
    way: Way,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Focus,
    Machine,
    Perf,
}

/// A program of the case is not installed.
#[derive(Debug)]
pub struct Missing(pub String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skipped: there is no {} here (scripts/install-real.sh installs it)", self.0)
    }
}

impl std::error::Error for Missing {}

impl<'a> Scene<'a> {
    /// An empty folder at `dir`. Fails with [`Missing`] if one of `needs` is not installed.
    pub fn new(holdup: &'a Holdup, dir: &Path, seconds: f64, needs: &[&str]) -> Result<Self> {
        for need in needs {
            if program(need).is_none() {
                return Err(Missing((*need).to_owned()).into());
            }
        }
        if dir.exists() {
            fs::remove_dir_all(dir)?;
        }
        fs::create_dir_all(dir)?;
        Ok(Scene { holdup, dir: dir.to_owned(), seconds, way: Way::Focus })
    }

    /// The same, recording the whole machine.
    pub fn of_machine(self) -> Self {
        Scene { way: Way::Machine, ..self }
    }

    /// The same, recording by perf.
    pub fn by_perf(self) -> Self {
        Scene { way: Way::Perf, ..self }
    }

    /// How long the load has to go on so that the recording lies within it.
    pub fn load_seconds(&self) -> u64 {
        self.seconds.ceil() as u64 + 4
    }

    /// A file `name` with `text` in it; its path.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.dir.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// What the shell `command` prints; its error output if it fails.
    pub fn run(&self, command: &str) -> Result<String> {
        let output = self.shell(command).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{command}: {}: {}", output.status, said.trim());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Starts the shell `command`, all of which ends with what is returned. Its output goes to the file `log`.
    pub fn start(&self, command: &str) -> Result<Running> {
        let log = fs::File::options().create(true).append(true).open(self.dir.join("log"))?;
        let child = self
            .shell(&format!("exec {command}"))
            .process_group(0)
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| command.to_owned())?;
        Ok(Running(child))
    }

    /// Starts the shell `command` and waits until the shell command `ready` succeeds.
    pub fn start_until(&self, command: &str, ready: &str) -> Result<Running> {
        let mut running = self.start(command)?;
        let begun = Instant::now();
        while !self.shell(ready).stdout(Stdio::null()).stderr(Stdio::null()).status()?.success() {
            let log = || fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            ensure!(running.0.try_wait()?.is_none(), "{command} has ended: {}", log());
            ensure!(begun.elapsed() < READY, "{command} does not answer: {}", log());
            sleep(Duration::from_millis(100));
        }
        Ok(running)
    }

    /// Records the process `pid` with its children while `meanwhile` looks at it with another instrument; the trace and
    /// what `meanwhile` found. The load is given a second to begin.
    pub fn record_pid(&self, pid: u32, meanwhile: impl FnOnce() -> Result<String>) -> Result<(PathBuf, String)> {
        self.record_of(pid, &[], meanwhile)
    }

    /// The same with `span`s.
    pub fn record_spans(
        &self,
        pid: u32,
        span: &str,
        meanwhile: impl FnOnce() -> Result<String>,
    ) -> Result<(PathBuf, String)> {
        self.record_of(pid, &[span], meanwhile)
    }

    fn record_of(
        &self,
        pid: u32,
        spans: &[&str],
        meanwhile: impl FnOnce() -> Result<String>,
    ) -> Result<(PathBuf, String)> {
        sleep(Duration::from_secs(1));
        let who = ["-p".to_owned(), pid.to_string()];
        let (command, trace) = self.recorder(&who, spans, &["sleep".to_owned(), self.seconds.to_string()]);
        let child = spawn(command)?;
        let truth = meanwhile();
        self.finish(child)?;
        Ok((trace, truth?))
    }

    /// Records the shell `command` from its beginning to its end.
    pub fn record_command(&self, command: &str) -> Result<PathBuf> {
        self.record_command_with(command, &[])
    }

    /// The same with `spans`.
    pub fn record_command_with(&self, command: &str, spans: &[&str]) -> Result<PathBuf> {
        let command = ["sh", "-c", command].map(str::to_owned);
        let (command, trace) = self.recorder(&[], spans, &command);
        self.finish(spawn(command)?)?;
        Ok(trace)
    }

    /// The recorder's command, and the trace that it writes. With a process `who`, `command` only says how long.
    fn recorder(&self, who: &[String], spans: &[&str], command: &[String]) -> (Command, PathBuf) {
        let trace = self.dir.join(if self.way == Way::Perf { "perf.data" } else { "trace.holdup" });
        let mut recorder = Command::new(if self.way == Way::Perf { "perf" } else { self.holdup.path() });
        recorder.args(["record", "-o"]).arg(&trace);
        recorder.args(spans.iter().flat_map(|span| ["--span", span]));
        match self.way {
            Way::Perf => recorder.args(["-a", "-g"]).args(perf_events()).arg("--").args(command),
            Way::Machine => recorder.arg("-a").arg("--").args(command),
            Way::Focus if who.is_empty() => recorder.arg("--").args(command),
            Way::Focus => recorder.args(who).arg("--duration").arg(format!("{}s", self.seconds)),
        };
        recorder.current_dir(&self.dir).stdin(Stdio::null());
        (recorder, trace)
    }

    fn finish(&self, recorder: Child) -> Result<()> {
        let output = recorder.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the recorder: {}: {}", output.status, said.trim());
        Ok(())
    }

    fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(&self.dir).stdin(Stdio::null());
        shell
    }
}

/// Without the terminal's output: what it says is shown only if it fails.
fn spawn(mut command: Command) -> Result<Child> {
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let what = format!("{command:?}");
    command.spawn().context(what)
}

/// Where the executable `name` lies: on the path, or where Debian keeps servers. `a|b` is either.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path)
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .chain(fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|e| e.path().join("bin")))
        .collect();
    name.split('|').flat_map(|name| folders.iter().map(move |f| f.join(name))).find(|p| p.is_file())
}

/// A TCP port of 127.0.0.1 that nobody uses.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// What to put before a command so that it runs as `user` and not as root, which some servers refuse.
pub fn run_as(user: &str) -> String {
    match nix::unistd::geteuid().is_root() {
        true => format!("setpriv --reuid={user} --regid={user} --clear-groups"),
        false => String::new(),
    }
}

/// The number behind `before` in what a program `said`.
pub fn number_after(said: &str, before: &str) -> Result<f64> {
    let (_, rest) = said.split_once(before).with_context(|| format!("no \"{before}\" in: {said}"))?;
    let number = |c: &char| c.is_ascii_digit() || *c == '.';
    let number: String = rest.trim_start().chars().take_while(number).collect();
    number.parse().with_context(|| format!("no number after \"{before}\" in: {said}"))
}

/// The most frequent lines of `samples`, with their shares: what a sampling instrument has seen.
pub fn shares(samples: &str, top: usize) -> String {
    let mut counts = std::collections::BTreeMap::new();
    samples.lines().filter(|l| !l.trim().is_empty()).for_each(|l| *counts.entry(l.trim()).or_insert(0_usize) += 1);
    let all: usize = counts.values().sum();
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
    let said = counts.iter().take(top).map(|(line, n)| format!("{line} {} %", (100 * n + all / 2) / all.max(1)));
    said.collect::<Vec<_>>().join(", ")
}

/// A process group that ends with this value.
pub struct Running(Child);

impl Running {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it ends by itself.
    pub fn wait(mut self) -> Result<()> {
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = Pid::from_raw(self.0.id() as i32);
        // Its leader may have ended, and others of the group not.
        let _ = killpg(group, Signal::SIGTERM);
        let begun = Instant::now();
        while begun.elapsed() < GRACE && matches!(self.0.try_wait(), Ok(None)) {
            sleep(Duration::from_millis(20));
        }
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.0.wait();
    }
}
