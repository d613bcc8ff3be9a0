//! What `holdup explain` says, as data. Field names are fixed by the project's contract.

// Long because it is the list of all that a report says.

use holdup_base::named;
use holdup_trace::LockKind;
use serde::Serialize;

pub use crate::about::About;
use crate::idiom::IdiomFacts;

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

    /// The same with up to so many seconds, in which there seemed to be nothing to do, as held up.
    pub(crate) fn held_up_after_all(self, seconds: f64) -> Self {
        let moved = seconds.min(self.no_work).max(0.0);
        CpuSeconds { held_up: self.held_up + moved, no_work: self.no_work - moved, ..self }
    }
}

/// One reason.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Finding {
    /// `f1`, `f2`, …
    pub id: String,
    /// Its kind.
    pub kind: FindingKind,
    /// One sentence.
    pub title: String,
    /// Who did it.
    pub culprit: Culprit,
    /// With which lock.
    pub lock: Option<LockFacts>,
    /// Where the lock was released, or the waiters were woken; the innermost frame first.
    pub release_stack: Vec<String>,
    /// Where the waiters waited.
    pub wait_stack: Vec<String>,
    /// Who waited.
    pub waiters: Waiters,
    /// CPU seconds charged to it.
    pub blame_cpu_s: f64,
    /// Its share of all that is charged.
    pub share_of_held_up: f64,
    /// The program cannot get faster than by this factor if it is mended; `None` where no bound can be given.
    pub gain_at_most: Option<f64>,
    /// How long, in seconds, somebody waited for it.
    pub lasted_s: f64,
    /// When, in seconds.
    pub windows: Vec<[f64; 2]>,
    /// What the disk did meanwhile; `None` where it is not about a disk, or no request was recorded.
    pub disk: Option<DiskFacts>,
    /// How far it can be believed.
    pub confidence: Confidence,
    /// Why not more.
    pub doubts: Vec<String>,
    /// What it rests on.
    pub evidence: Vec<String>,
    /// What to do.
    pub advice: String,
    /// Whom and what it is about, by the trace's own numbers: for whoever has the trace, too.
    #[serde(skip)]
    #[schemars(skip)]
    pub about: About,
}

/// Stretches of time in which threads waited unusually long for the same.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Stall {
    /// When, in seconds; of many, the longest.
    pub windows: Vec<[f64; 2]>,
    /// How many there were.
    pub count: usize,
    /// The longest, in seconds.
    pub longest_s: f64,
    /// The shortest.
    pub shortest_s: f64,
    /// How many threads waited at once, at most; 0 where a thread was away from its events and nobody is known to wait.
    pub waiters: usize,
    /// Their names, like ones together.
    pub names: Vec<String>,
    /// For whom or what.
    pub culprit: Culprit,
    /// One sentence.
    pub title: String,
}

impl Explanation {
    /// Findings with a consequence that are not small, the first to begin with. Idleness by design is the first where it matters most.
    pub fn on_page(&self) -> impl Iterator<Item = &Finding> {
        let is_idle = |f: &&Finding| f.kind == FindingKind::IdleByDesign;
        let idle = self.findings.iter().filter(|_| self.mostly_idle).find(is_idle);
        let matters = move |f: &&Finding| {
            !is_idle(f)
                && f.blame_cpu_s >= ON_THE_PAGE * self.cpu_seconds.total
                && f.gain_at_most.is_none_or(|gain| gain > 1.01)
        };
        idle.into_iter().chain(self.findings.iter().filter(matters))
    }
}

impl Finding {
    /// Whether time was lost to it: work alone and idleness by design are no causes.
    pub fn is_cause(&self) -> bool {
        !matches!(self.kind, FindingKind::CpuBound | FindingKind::IdleByDesign)
    }
}

named! {
    /// What kind of reason a finding is. These words are never renamed.
    #[derive(Default)]
    pub enum FindingKind {
        /// A thread keeps a lock for long.
        #[default]
        LockHeld = "lock-held",
        /// A lock that nobody keeps for long is handed on all the time.
        Convoy = "convoy",
        /// The one whom others wait for is ready and gets no CPU.
        OwnerNotRunning = "owner-not-running",
        /// Threads are ready while a CPU is idle: they may not run there, or the scheduler put them elsewhere.
        RunnableWhileIdle = "runnable-while-idle",
        /// Time goes into waking threads up on idle CPUs.
        WakeLatency = "wake-latency",
        /// Threads are ready, and a quota of their control group keeps them from running.
        Throttled = "throttled",
        /// Threads are ready, and others use the CPUs.
        CpuStarved = "cpu-starved",
        /// One thread works while others wait for it.
        Serial = "serial",
        /// A language's runtime collects garbage while the program waits for it.
        Gc = "gc",
        /// One thread has more of the same work than the others, which wait for it.
        Imbalance = "imbalance",
        /// A disk, waited for by one on behalf of others.
        Disk = "disk",
        /// One sleeps while others wait for it.
        SleepPolling = "sleep-polling",
        /// One waits for the world outside in the middle of its work, or while others wait for it.
        Network = "network",
        /// Threads wait in loops for what others do: they use CPUs and get nothing done.
        Spin = "spin",
        /// Threads on different CPUs write the same cache line at the same time.
        CacheLine = "cache-line",
        /// There is no wait to mend, only work.
        CpuBound = "cpu-bound",
        /// Nobody was held up: they waited for work that nobody sent.
        IdleByDesign = "idle-by-design",
    }
}

named! {
    /// How far a finding can be believed.
    #[derive(Default)]
    pub enum Confidence {
        /// Nothing speaks against it.
        High = "high",
        /// There are doubts.
        Medium = "medium",
        /// The doubts are grave, or many.
        #[default]
        Low = "low",
    }
}

/// The thread, function and instruction at the end of the chain.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Culprit {
    /// Process name.
    pub process: String,
    /// Process id.
    pub pid: u32,
    /// Thread name.
    pub thread: String,
    /// Thread id.
    pub tid: u32,
    /// How many threads of its program have a part in it, this one included; 0 if unknown.
    pub threads: usize,
    /// Of how many processes.
    pub processes: usize,
    /// Function, demangled.
    pub function: String,
    /// The file that holds its code.
    pub module: String,
    /// `file.c:12`.
    pub source: String,
    /// The function that calls it most; empty if that is unknown.
    pub called_by: String,
    /// Where it was found most often.
    pub instruction: Option<Instruction>,
}

/// A hot instruction.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Instruction {
    /// Its address.
    pub address: String,
    /// Disassembled; empty if the code is not in the trace.
    pub text: String,
    /// Its share of the culprit's samples.
    pub share: f64,
    /// The instructions of the loop or neighbourhood around it, each with its share.
    pub around: Vec<Neighbour>,
    /// What the loop around it does that could be done faster, where that is certain.
    pub idiom: Option<IdiomFacts>,
}

/// An instruction near the hot one.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Neighbour {
    /// Its address.
    pub address: String,
    /// Disassembled.
    pub text: String,
    /// Its share of the culprit's samples.
    pub share: f64,
    /// Whether it belongs to the innermost loop around the hot instruction.
    pub in_loop: bool,
}

/// A lock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct LockFacts {
    /// What kind of lock.
    pub kind: LockKind,
    /// Where it is.
    pub address: String,
    /// Its name, if it has one.
    pub name: String,
}

/// The requests of the threads that waited for a disk, and of threads of the kernel that acted for them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DiskFacts {
    /// By device, the one that took longest first; at most four.
    pub devices: Vec<DiskDevice>,
}

/// The requests to one device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DiskDevice {
    /// Its major and minor number, such as `8:0`.
    pub device: String,
    /// Requests that carried data.
    pub requests: u64,
    /// Requests that only made the device empty its cache.
    pub flushes: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// From issuing to completion, on average, in seconds.
    pub mean_s: f64,
    /// The longest.
    pub longest_s: f64,
    /// Requests that the device had to do when one of these was issued, on average, with those of others.
    pub queue_depth: f64,
    /// The share of them that began where the device's previous request ended.
    pub sequential_share: f64,
    /// Who issued them, by thread name, the most first; at most four.
    pub by: Vec<DiskIssuer>,
}

/// Threads that issued requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct DiskIssuer {
    /// Their name.
    pub thread: String,
    /// How many.
    pub requests: u64,
}

/// Who waited, and for how long.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Waiters {
    /// How many threads.
    pub threads: usize,
    /// How many waits.
    pub waits: u64,
    /// All of them together, in seconds.
    pub total_s: f64,
    /// On average.
    pub mean_s: f64,
    /// The longest.
    pub max_s: f64,
    /// Their names, like ones together: `compiler-00 … compiler-11`.
    pub names: Vec<String>,
    /// The function in which they waited.
    pub function: String,
    /// `file.c:12`.
    pub source: String,
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
