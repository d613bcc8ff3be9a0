//! What `holdup explain` says, as data. Field names are fixed by the project's contract.

mod finding;
mod title;

use serde::Serialize;

pub use finding::{
    About, Activity, Confidence, Culprit, DiskDevice, DiskFacts, DiskIssuer, DiskNeighbour, Finding, FindingKind,
    Instruction, LockFacts, Neighbour, Stall, Waiters, WorkedOn,
};
pub use title::Title;

/// From this share of the time on there was nothing to do nearly all of it.
const NEARLY_ALL: f64 = 0.8;
/// So many times as much of it as a finding cost.
const NEXT_TO_NOTHING: f64 = 10.0;

/// From this share of all CPU time on a finding is worth its place on the page.
pub const ON_THE_PAGE: f64 = 0.01;

/// What to explain, and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Only this part, in seconds since the trace's start.
    pub window: Option<(f64, f64)>,
    /// Only this process, by name or pid, and its children can be held up.
    pub focus: Option<String>,
    /// At most this many findings; 0 for the default.
    pub top: usize,
    /// Functions whose waits are idle by design, whatever the rules say.
    pub idle: Vec<String>,
    /// Functions whose waits are held up, whatever the rules say.
    pub work: Vec<String>,
}

/// The answer.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Explanation {
    /// `holdup.explain/1`.
    pub schema: &'static str,
    /// Of what.
    pub trace: TraceFacts,
    /// What to know before all else: what this trace cannot tell, and how to record what it lacks.
    pub caveats: Vec<Caveat>,
    /// Where the CPU time went.
    pub cpu_seconds: CpuSeconds,
    /// Whether the program in focus mostly had nothing to do: what it waits for matters more than what held it up.
    pub mostly_idle: bool,
    /// What ran most, by process and function; at most ten.
    pub hot: Vec<Hot>,
    /// Why, in the order of blame.
    pub findings: Vec<Finding>,
    /// Files whose functions are shown by address, and what would name them.
    pub nameless: Vec<Nameless>,
    /// What else held threads up, all of it together: each too small for a finding, or not asked for.
    pub smaller: Smaller,
    /// Short stretches in which threads stood still unusually long, the longest first.
    pub stalls: Vec<Stall>,
    /// How far to believe it.
    pub health: Health,
}

/// The trace in a line.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct TraceFacts {
    /// The file.
    pub path: String,
    /// Its format.
    pub format: String,
    /// Where the explained part begins, in seconds.
    pub start_s: f64,
    /// Its length in seconds.
    pub duration_s: f64,
    /// CPUs.
    pub cpus: usize,
    /// The process tree in focus; empty for the whole machine.
    pub focus: String,
}

/// A file whose functions have no names in the trace: its debug symbols name them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Nameless {
    /// The file.
    pub path: String,
    /// By which a debuginfod server knows it; empty if unknown.
    pub build_id: String,
}

/// Causes without a finding of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Smaller {
    /// How many.
    pub causes: usize,
    /// CPU seconds charged to them.
    pub blame_cpu_s: f64,
}

impl Smaller {
    /// One more.
    pub(crate) fn add(&mut self, blame_cpu_s: f64) {
        self.causes += 1;
        self.blame_cpu_s += blame_cpu_s;
    }
}

/// Something that this trace cannot tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Caveat {
    /// One or two sentences.
    pub what: String,
    /// Command lines that record what is missing; empty if that is not the matter.
    pub record: Vec<String>,
}

/// A function of a process by its share of all samples in focus.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Hot {
    /// The process.
    pub process: String,
    /// The function, demangled.
    pub function: String,
    /// The file that holds its code.
    pub module: String,
    /// Its share.
    pub share: f64,
    /// The part of that in which the kernel worked for it.
    pub kernel: f64,
    /// The function with most of its time that it called and that is not the program's, but the kernel's or a library's; empty if none
    /// has a tenth of it.
    pub below: String,
    /// The part of its time in that one.
    pub below_share: f64,
}

/// Seconds of CPU time; `total` is the sum of all others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
#[allow(missing_docs)]
pub struct CpuSeconds {
    pub total: f64,
    pub busy: f64,
    pub spin: f64,
    pub other: f64,
    pub held_up: f64,
    pub runnable_idle: f64,
    pub no_work: f64,
    pub lost: f64,
}

impl CpuSeconds {
    /// The sum of all parts, which must be `total`.
    pub fn sum(&self) -> f64 {
        self.busy + self.spin + self.other + self.held_up + self.runnable_idle + self.no_work + self.lost
    }

    /// Whether there was nothing to do nearly all the time, and a finding cost next to nothing beside that.
    pub fn leaves_next_to_nothing(&self, finding: &Finding) -> bool {
        self.no_work >= NEARLY_ALL * self.total && self.no_work > NEXT_TO_NOTHING * finding.blame_cpu_s
    }

    /// The same with up to so many seconds, in which there seemed to be nothing to do, as held up.
    pub(crate) fn held_up_after_all(self, seconds: f64) -> Self {
        let moved = seconds.min(self.no_work).max(0.0);
        CpuSeconds { held_up: self.held_up + moved, no_work: self.no_work - moved, ..self }
    }
}

impl Explanation {
    /// Findings with a consequence that are not small, the first to begin with. Idleness by design is the first where it matters most.
    pub fn on_page(&self) -> impl Iterator<Item = &Finding> {
        let is_idle = |f: &&Finding| f.kind == FindingKind::IdleByDesign;
        let idle = self.findings.iter().filter(|_| self.mostly_idle).find(is_idle);
        let matters = move |f: &&Finding| {
            !is_idle(f)
                && (f.blame_cpu_s >= ON_THE_PAGE * self.cpu_seconds.total
                    || self.lasts(f)
                    || f.kind == FindingKind::CpuBound)
                && f.gain_at_most.is_none_or(|gain| gain > 1.01)
        };
        idle.into_iter().chain(self.findings.iter().filter(matters))
    }

    /// Whether it is a collection for most of the time: collectors that keep all CPUs busy let none stand idle.
    fn lasts(&self, finding: &Finding) -> bool {
        finding.kind == FindingKind::Gc && finding.lasted_s > 0.5 * self.trace.duration_s
    }
}

/// What limits the answer.
#[derive(Debug, Clone, Copy, Default, Serialize, schemars::JsonSchema)]
pub struct Health {
    /// Events that the source says were lost.
    pub lost_events: u64,
    /// Stacks that found no room: waits and samples without a place.
    pub lost_stacks: u64,
    /// Mappings of code that were lost: functions without names, or with wrong ones.
    pub lost_mappings: u64,
    /// Waits whose waker is unknown.
    pub unknown_wakers: u64,
    /// Circles of waiting threads.
    pub cycles: u64,
    /// Events that contradict earlier ones.
    pub unmatched: u64,
    /// The share of the CPU time whose use is not known.
    pub share_unknown: f64,
    /// Switches that the trace lacks and that were inferred.
    pub inferred: u64,
    /// Figures that were greater than time and CPUs allow, and were cut: each is a mistake in holdup.
    pub impossible: u64,
}
