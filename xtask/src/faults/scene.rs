//! Recorders to be disturbed, and looks at what they leave.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The binary, and a folder for results.
pub struct Scene {
    pub holdup: PathBuf,
    pub folder: PathBuf,
}

/// What `info` says of a result.
pub struct Seen {
    /// When the first event was, on the recorder's clock, and for how long it goes on.
    pub end_s: f64,
    pub events: u64,
    /// The source's own counts.
    pub native: u64,
    pub forks: u64,
    pub threads: u64,
    /// Events that its losses count.
    pub lost: u64,
}

impl Scene {
    pub fn new(holdup: &Path, folder: &Path) -> Result<Scene> {
        ensure!(holdup.exists(), "there is no {}: cargo build --release, or --holdup PATH", holdup.display());
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
        Ok(Scene { holdup: holdup.to_owned(), folder: folder.to_owned() })
    }

    /// A folder of its own for a run.
    pub fn fresh(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// A recorder of the machine, once it records.
    pub fn start(&self, output: &Path, options: &[&str]) -> Result<Child> {
        let mut command = Command::new(&self.holdup);
        command.arg("record").args(options).arg("-a").arg("-o").arg(output);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let end = Instant::now() + Duration::from_secs(60);
        // More than the header and the first look at /proc.
        while size_of_spool(output) < 20_000 {
            ensure!(child.try_wait()?.is_none(), "the recorder ended: {}", words(&child.wait_with_output()?));
            ensure!(Instant::now() < end, "the recorder does not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(child)
    }

    /// Records a command with these options; its output.
    pub fn record(&self, output: &Path, options: &[&str], command: &[&str]) -> Result<Output> {
        let mut recorder = Command::new(&self.holdup);
        recorder.arg("record").args(options).arg("-o").arg(output).arg("--").args(command);
        Ok(recorder.stdin(Stdio::null()).output()?)
    }

    /// Whether it opens: `info` and `explain` end with 0.
    pub fn opens(&self, path: &Path) -> bool {
        let ask = |command: &str| {
            let output = Command::new(&self.holdup).arg(command).arg(path).output();
            let good = output.as_ref().is_ok_and(|o| o.status.success());
            if !good {
                eprintln!("{command} {}: {}", path.display(), output.map_or_else(|e| e.to_string(), |o| words(&o)));
            }
            good
        };
        ask("info") && ask("explain")
    }

    pub fn look(&self, path: &Path) -> Result<Seen> {
        let output = Command::new(&self.holdup).args(["info", "--json"]).arg(path).output()?;
        ensure!(output.status.success(), "info {}: {}", path.display(), words(&output));
        let info: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let number = |at: &str| info.pointer(at).and_then(serde_json::Value::as_f64).unwrap_or(0.0);
        let sum = |at: &str| -> u64 {
            let all = info.pointer(at).and_then(serde_json::Value::as_object).cloned().unwrap_or_default();
            all.values().filter_map(serde_json::Value::as_u64).sum()
        };
        let losses = info["losses"].as_array().cloned().unwrap_or_default();
        Ok(Seen {
            end_s: number("/start_ns") / 1e9 + number("/duration_s"),
            events: number("/events/switch") as u64,
            native: sum("/native_events"),
            forks: number("/native_events/sched_process_fork") as u64,
            threads: number("/threads") as u64,
            lost: losses.iter().filter_map(|loss| loss["count"].as_u64()).sum(),
        })
    }
}

pub fn signal(child: &Child, signal: Signal) -> Result<()> {
    kill(Pid::from_raw(child.id() as i32), signal).context("kill")
}

/// Ends a recorder as Ctrl-C does.
pub fn end(child: Child) -> Result<Output> {
    signal(&child, Signal::SIGINT)?;
    Ok(child.wait_with_output()?)
}

pub fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

/// The spool of a result.
pub fn spool(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".spool");
    name.into()
}

/// Bytes of the spool with its segments.
fn size_of_spool(output: &Path) -> u64 {
    let files = output.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let spools = files.filter(|f| f.file_name().to_string_lossy().contains(".spool"));
    spools.filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum()
}

/// The clock of the recorder: since the machine started, without the time it slept.
pub fn now_s() -> Result<f64> {
    let text = fs::read_to_string("/proc/uptime")?;
    text.split(' ').next().and_then(|n| n.parse().ok()).context("/proc/uptime")
}

/// A pause that is another one each time, up to `most`.
pub fn random_pause(most: Duration, nth: usize) {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_usize(nth);
    std::thread::sleep(most.mul_f64(hasher.finish() as f64 / u64::MAX as f64));
}
