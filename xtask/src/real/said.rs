//! What `explain --json` says, as far as it is judged.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use holdup_analysis::report::{Confidence, FindingKind, ON_THE_PAGE};
use serde::Deserialize;

use crate::holdup::Holdup;

/// The document.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Said {
    pub(super) cpu_seconds: BTreeMap<String, f64>,
    pub(super) mostly_idle: bool,
    pub(super) findings: Vec<Finding>,
    /// The stalls, the longest first.
    pub stalls: Vec<Stall>,
    /// What the recording cannot tell.
    pub caveats: Vec<Caveat>,
}

/// Something that a recording cannot tell.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Caveat {
    /// What would record it.
    pub record: Vec<String>,
}

/// A window in which many waited unusually long.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Stall {
    /// One sentence.
    pub title: String,
    /// For whom.
    pub culprit: Culprit,
}

/// One finding.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// The word for its kind: a binary under test may know others than we do.
    #[serde(rename = "kind")]
    pub word: String,
    /// Its headline.
    pub title: String,
    /// Who did it.
    pub culprit: Option<Culprit>,
    /// Who waited.
    pub waiters: Option<Waiters>,
    /// Where they waited.
    pub wait_stack: Vec<String>,
    /// CPU seconds.
    pub blame_cpu_s: f64,
    /// How many times faster the run could be without it.
    pub gain_at_most: Option<f64>,
    /// How sure.
    pub confidence: Confidence,
}

/// The culprit of a finding.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Culprit {
    /// Its process.
    pub process: Option<String>,
    /// Its thread.
    pub thread: Option<String>,
    /// Its function.
    pub function: Option<String>,
    /// Who calls the function.
    pub called_by: Option<String>,
}

/// Who waited.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Waiters {
    /// The function in which they did.
    pub function: Option<String>,
}

impl Said {
    /// What `holdup` says of `trace` with `focus` in focus, or with the trace's own.
    pub fn of(holdup: &Holdup, trace: &Path, focus: Option<&str>) -> Result<Said> {
        let mut command = Command::new(holdup.path());
        command.args(["explain", "--json"]).arg(trace);
        if let Some(focus) = focus {
            command.args(["--focus", focus]);
        }
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "explain: {}: {}", output.status, said.trim());
        serde_json::from_slice(&output.stdout).context("explain --json")
    }

    /// Whether it says that another recording would tell more.
    pub fn doubts_itself(&self) -> bool {
        self.caveats.iter().any(|caveat| !caveat.record.is_empty())
    }

    /// The stall that the page shows first.
    pub fn stall(&self) -> Option<&Stall> {
        self.stalls.first()
    }

    /// The first causes that the page shows. With `busy`, what other programs' CPU time cost is left out: the machine has
    /// other work to do, and the answer is as true as it is beside the point.
    pub fn first(&self, busy: bool) -> Vec<Finding> {
        let total = self.cpu_seconds.get("total").copied().unwrap_or(0.0);
        let is_idle = |f: &&Finding| f.kind() == Some(FindingKind::IdleByDesign);
        let idle = self.findings.iter().filter(|_| self.mostly_idle).find(is_idle);
        let hidden = |f: &&Finding| is_idle(f) || busy && f.kind() == Some(FindingKind::CpuStarved);
        let shown = self.findings.iter().filter(|f| !hidden(f) && f.blame_cpu_s >= ON_THE_PAGE * total);
        idle.into_iter().chain(shown).take(2).cloned().collect()
    }
}

impl Stall {
    /// Whether its sentence or function passes `test`.
    pub fn says(&self, test: impl Fn(&str) -> bool) -> bool {
        test(&self.title) || test(self.culprit.function.as_deref().unwrap_or(""))
    }
}

impl Finding {
    /// Its kind, if we know it.
    pub fn kind(&self) -> Option<FindingKind> {
        serde_json::from_value(self.word.clone().into()).ok()
    }

    /// The function that it names; empty if none.
    pub fn function(&self) -> &str {
        self.culprit.as_ref().and_then(|c| c.function.as_deref()).unwrap_or("")
    }

    /// The process that it names; empty if none.
    pub fn process(&self) -> &str {
        self.culprit.as_ref().and_then(|c| c.process.as_deref()).unwrap_or("")
    }

    /// Whether process or thread passes `test`.
    pub fn who(&self, test: impl Fn(&str) -> bool) -> bool {
        let culprit = self.culprit.clone().unwrap_or_default();
        test(culprit.process.as_deref().unwrap_or("")) || test(culprit.thread.as_deref().unwrap_or(""))
    }

    /// Whether the function or its caller passes `test`.
    pub fn ran(&self, test: impl Fn(&str) -> bool) -> bool {
        let caller = self.culprit.as_ref().and_then(|c| c.called_by.as_deref()).unwrap_or("");
        test(self.function()) || test(caller)
    }

    /// Whether a function in which they waited passes `test`.
    pub fn hung(&self, test: impl Fn(&str) -> bool) -> bool {
        let function = self.waiters.as_ref().and_then(|w| w.function.as_deref()).unwrap_or("");
        test(function) || self.wait_stack.iter().any(|f| test(f))
    }
}
