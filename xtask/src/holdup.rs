//! Runs the binary and reads its JSON.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// What `perf record` has to record for holdup.
pub const PERF_EVENTS: [&str; 8] =
    ["-c", "1", "-e", "sched:sched_switch", "-e", "sched:sched_waking", "-e", "cpu-clock/freq=999/"];

/// The binary under test.
pub struct Holdup(PathBuf);

/// The parts of `explain --json` that are compared.
#[derive(Debug, Deserialize)]
pub struct Explained {
    /// The accounting.
    pub cpu_seconds: BTreeMap<String, f64>,
    /// The findings, the first one first.
    pub findings: Vec<Finding>,
}

/// One finding.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// Its kind.
    pub kind: String,
    /// Who did it.
    pub culprit: Option<Culprit>,
    /// CPU seconds.
    pub blame_cpu_s: f64,
    /// How sure.
    pub confidence: String,
}

/// The culprit of a finding.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Culprit {
    /// The thread's name.
    pub thread: Option<String>,
    /// The function.
    pub function: Option<String>,
}

/// The parts of `info --json` that are compared.
#[derive(Debug, Deserialize)]
pub struct Info {
    /// Rows of each table.
    pub events: BTreeMap<String, u64>,
    /// What is missing.
    pub losses: Vec<Loss>,
}

/// One loss.
#[derive(Debug, Deserialize)]
pub struct Loss {
    /// How many.
    pub count: u64,
}

impl Finding {
    /// The culprit's thread; empty if there is none.
    pub fn thread(&self) -> &str {
        self.culprit.as_ref().and_then(|c| c.thread.as_deref()).unwrap_or("")
    }

    /// The culprit's function; empty if there is none.
    pub fn function(&self) -> &str {
        self.culprit.as_ref().and_then(|c| c.function.as_deref()).unwrap_or("")
    }
}

impl Info {
    /// Switches and wake-ups.
    pub fn scheduler_events(&self) -> u64 {
        ["switch", "wake"].iter().filter_map(|table| self.events.get(*table)).sum()
    }

    /// Records lost.
    pub fn lost(&self) -> u64 {
        self.losses.iter().map(|l| l.count).sum()
    }
}

impl Holdup {
    /// The binary at `path`, or the release build.
    pub fn new(root: &Path, path: Option<String>) -> Result<Self> {
        let path = path.map_or_else(|| root.join("target/release/holdup"), PathBuf::from);
        ensure!(path.is_file(), "{} is missing: cargo build --release -p holdup", path.display());
        Ok(Holdup(path.canonicalize()?))
    }

    /// The binary's path.
    pub fn path(&self) -> &str {
        self.0.to_str().expect("the repository's path is UTF-8")
    }

    /// Explains `trace`.
    pub fn explain(&self, trace: &Path) -> Result<Explained> {
        self.json("explain", trace)
    }

    /// What is in `trace`.
    pub fn info(&self, trace: &Path) -> Result<Info> {
        self.json("info", trace)
    }

    fn json<T: DeserializeOwned>(&self, command: &str, trace: &Path) -> Result<T> {
        let output = Command::new(&self.0).arg(command).arg(trace).arg("--json").stderr(Stdio::piped()).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let what = || format!("holdup {command} {} --json", trace.display());
        ensure!(output.status.success(), "{}: {}: {}", what(), output.status, said.trim());
        serde_json::from_slice(&output.stdout).with_context(what)
    }
}
