//! What a case is: a program under a load, the truth, and what an answer must say to be right.

use std::path::PathBuf;

use anyhow::Result;
use holdup_analysis::report::FindingKind;

use super::scene::Scene;

/// One program under one load.
pub struct Case {
    /// Its name on the command line.
    pub name: &'static str,
    /// The program and what is wrong with it, in a few words.
    pub title: &'static str,
    /// The load, as one would type it.
    pub command: &'static str,
    /// Executables without which it is skipped.
    pub needs: &'static [&'static str],
    /// The truth, and which instrument tells it; what the instrument said in this run follows it in the table.
    pub truth: &'static str,
    /// What answers are right when the program itself is in focus.
    pub expect: Expect,
    /// Who drives it from outside, and what answers are right with that one in focus.
    pub client: Option<Client>,
    /// Runs the load and records it.
    pub record: fn(&Scene) -> Result<Recorded>,
    /// What mends it.
    pub fix: Option<Fix>,
}

/// The answers to tell apart.
#[derive(Clone, Copy)]
pub struct Expect {
    /// The first finding must be one of these.
    pub right: &'static [Is],
    /// It is at least not wrong if it is one of these, or if the second finding is right.
    pub vague: &'static [Is],
    /// Whether "nothing held it up" is right.
    pub nothing: bool,
}

impl Expect {
    /// Whether it is right to say that other programs had the CPUs.
    pub fn starves(&self) -> bool {
        self.right.iter().any(|is| is.kinds.contains(&FindingKind::CpuStarved))
    }
}

/// A kind of finding; an empty pattern matches all.
#[derive(Clone, Copy)]
pub struct Is {
    /// One of these kinds.
    pub kinds: &'static [FindingKind],
    /// Pattern of the culprit's process or thread.
    pub who: &'static str,
    /// Pattern of the culprit's function, or of one on its release stack.
    pub function: &'static str,
    /// Pattern of a function in which they waited.
    pub hung: &'static str,
    /// Pattern of the title.
    pub title: &'static str,
    /// Pattern of the first stall's title or function; with it, nothing else of this counts.
    pub stall: &'static str,
}

impl Is {
    /// Matches every finding: a beginning to override.
    pub const ANY: Is = Is { kinds: &[], who: "", function: "", hung: "", title: "", stall: "" };
}

/// What may be said of one who waits for another, if that one's name is right: whatever the other did meanwhile.
pub const HELD_UP: &[FindingKind] = &[
    FindingKind::LockHeld,
    FindingKind::Convoy,
    FindingKind::Serial,
    FindingKind::Imbalance,
    FindingKind::Disk,
    FindingKind::SleepPolling,
    FindingKind::CpuBound,
    FindingKind::WakeLatency,
];

/// The other end of a server's sockets.
#[derive(Clone, Copy)]
pub struct Client {
    /// Its process' name, for `--focus`.
    pub process: &'static str,
    /// What is right to say of it.
    pub expect: Expect,
}

/// What came of running a case.
pub struct Recorded {
    /// The recording.
    pub trace: PathBuf,
    /// What the other instrument said in this run.
    pub truth: String,
    /// The process' name, to put into focus where the recording has no focus of its own, as perf's has none.
    pub focus: &'static str,
}

/// A change that mends the case, to hold the printed bound against.
pub struct Fix {
    /// The change in a few words.
    pub what: &'static str,
    /// Work done each second without (`false`) or with the change, unrecorded.
    pub rate: fn(&Scene, bool) -> Result<f64>,
}
