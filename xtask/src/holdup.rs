//! Runs the binary and reads its JSON.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use holdup_analysis::diff::report::{Role, Subject};
use holdup_analysis::diff::scaling::{Law, Verdict};
use holdup_analysis::report::{Confidence, FindingKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// What `perf record -a -g` has to record for holdup.
pub fn perf_events() -> impl Iterator<Item = &'static str> {
    holdup_base::PERF.split(' ').skip_while(|word| *word != "-c").take_while(|word| *word != "--")
}

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
    pub kind: FindingKind,
    /// Who did it.
    pub culprit: Option<Culprit>,
    /// CPU seconds.
    pub blame_cpu_s: f64,
    /// How sure.
    pub confidence: Confidence,
    /// How many times faster it could be without it, at most.
    pub gain_at_most: Option<f64>,
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

/// The parts of `diff --json` that are compared.
#[derive(Debug, Deserialize)]
pub struct Compared {
    /// The earlier side.
    pub before: Side,
    /// The later side.
    pub after: Side,
    /// What changed, the most telling first.
    pub changes: Vec<Change>,
}

/// One side of a comparison.
#[derive(Debug, Deserialize)]
pub struct Side {
    /// How long the program lived.
    #[serde(default)]
    pub elapsed_s: f64,
}

/// One change.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Change {
    /// What kind of thing changed.
    pub what: Subject,
    /// Its name.
    pub name: String,
    /// By how many CPU seconds.
    pub delta_s: f64,
    /// Whether it is the cause.
    pub role: Role,
    /// Why.
    pub because: String,
}

/// The parts of `scale --json` that are compared.
#[derive(Debug, Deserialize)]
pub struct Swept {
    /// What was measured at each count.
    pub points: Vec<Point>,
    /// Where the loss comes from.
    pub attribution: Option<Attribution>,
}

/// One count.
#[derive(Debug, Deserialize)]
pub struct Point {
    /// Throughput for each thread, as a share of what it is with the smallest count.
    pub efficiency: f64,
}

/// Where the loss comes from.
#[derive(Debug, Deserialize)]
pub struct Attribution {
    /// What most of it is.
    pub verdict: Verdict,
    /// Seconds of threads for each unit of work, at both counts.
    pub cost_s_per_unit: [f64; 2],
    /// The largest first.
    pub causes: Vec<LossCause>,
}

/// A function, lock or place.
#[derive(Debug, Deserialize)]
pub struct LossCause {
    /// By which law it grows.
    pub law: Law,
    /// Its name.
    pub name: String,
    /// Its share of the cost.
    pub share: f64,
}

/// The parts of `info --json` that are compared.
#[derive(Debug, Deserialize)]
pub struct Info {
    /// Rows of each table.
    pub events: BTreeMap<String, u64>,
    /// What is missing.
    pub losses: Vec<Loss>,
    /// How long the trace is.
    pub duration_s: f64,
    /// Of how many CPUs.
    pub cpus: f64,
    /// What recording cost; none of imported traces.
    pub recorder: Option<Recorder>,
    /// By which hooks it was recorded.
    #[serde(default)]
    pub hooks: Vec<String>,
    /// What the recorder had to say.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What recording cost, in CPU seconds.
#[derive(Debug, Deserialize)]
pub struct Recorder {
    reader_s: f64,
    samples_s: f64,
    stacks_s: f64,
    switches_s: f64,
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

    /// The share of the machine's CPU time that recording cost; no number where it is not known.
    pub fn cost(&self) -> f64 {
        let of = |r: &Recorder| (r.reader_s + r.samples_s + r.stacks_s + r.switches_s) / (self.duration_s * self.cpus);
        self.recorder.as_ref().map_or(f64::NAN, of)
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
        self.json(&["explain".as_ref(), trace.as_ref()])
    }

    /// What is in `trace`.
    pub fn info(&self, trace: &Path) -> Result<Info> {
        self.json(&["info".as_ref(), trace.as_ref()])
    }

    /// Compares the runs `before` with those `after`.
    pub fn diff(&self, before: &[PathBuf], after: &[PathBuf]) -> Result<Compared> {
        let mut args: Vec<&OsStr> = vec!["diff".as_ref()];
        args.extend(before.iter().map(|trace| trace.as_os_str()));
        args.push("--vs".as_ref());
        args.extend(after.iter().map(|trace| trace.as_os_str()));
        self.json(&args)
    }

    /// Records and measures `program` with one thread and with two.
    pub fn scale(&self, program: &Path, args: &[String]) -> Result<Swept> {
        let mut all: Vec<&OsStr> =
            ["scale", "--threads", "1,2", "--runs", "1", "--trace", "--"].map(AsRef::as_ref).into();
        all.push(program.as_ref());
        all.extend(args.iter().map(AsRef::<OsStr>::as_ref));
        self.json(&all)
    }

    /// Records `program` in `trace`.
    pub fn record(&self, trace: &Path, program: &Path, args: &[String]) -> Result<()> {
        let mut command = Command::new(&self.0);
        command.args(["record", "-o"]).arg(trace).arg("--").arg(program).args(args);
        recorded(&mut command, trace.parent().expect("a trace lies in a folder"))
    }

    /// What it prints for `args` as JSON.
    pub fn json<T: DeserializeOwned>(&self, args: &[&OsStr]) -> Result<T> {
        let (command, rest) = args.split_first().context("no command")?;
        let output = Command::new(&self.0).arg(command).arg("--json").args(rest).stderr(Stdio::piped()).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let what = || format!("holdup {} --json", args.join(" ".as_ref()).to_string_lossy());
        ensure!(output.status.success(), "{}: {}: {}", what(), output.status, said.trim());
        serde_json::from_slice(&output.stdout).with_context(what)
    }
}

/// Runs a recorder until its program ends. The fsync scenario writes into `scratch`: on the disk of the build folder,
/// not on a tmpfs.
pub fn recorded(command: &mut Command, scratch: &Path) -> Result<()> {
    command.current_dir(scratch).env("TMPDIR", scratch).stdin(Stdio::null());
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "record: {}: {}", output.status, said.trim());
    Ok(())
}
