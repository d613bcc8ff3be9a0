//! A cause: who, where, for how long, and how sure that is.

use holdup_base::named;
use holdup_trace::LockKind;
use serde::Serialize;

use super::title::Title;
pub use crate::about::About;
use crate::idiom::IdiomFacts;

/// One reason.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Finding {
    /// `f1`, `f2`, …
    pub id: String,
    /// Its kind.
    pub kind: FindingKind,
    /// One sentence.
    #[schemars(with = "String")]
    pub title: Title,
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

impl Finding {
    /// Whether time was lost to it: work alone and idleness by design are no causes.
    pub fn is_cause(&self) -> bool {
        !matches!(self.kind, FindingKind::CpuBound | FindingKind::IdleByDesign)
    }

    /// Whether it works alone, and others hardly waited for it meanwhile: who waits for its end is no waiter, and those that waited for it otherwise
    /// say nothing.
    pub fn is_hardly_waited_for(&self) -> bool {
        self.kind == FindingKind::Serial && self.waiters.total_s < HARDLY * self.lasted_s
    }
}

/// Who waited for less of the time that a finding lasted than this hardly did.
const HARDLY: f64 = 0.05;

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
    /// Where that does so, `file.c:12`; empty if unknown.
    pub called_at: String,
    /// What its processes worked on, if their command lines tell: the one with the most blame first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub works_on: Vec<WorkedOn>,
    /// Where it was found most often.
    pub instruction: Option<Instruction>,
    /// What it did there.
    pub activity: Activity,
}

/// A script, a source file, a crate or a class that a process worked on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct WorkedOn {
    /// Its name, without folders.
    pub what: String,
    /// Its share of what is charged to the finding.
    pub share: f64,
}

named! {
    /// What a culprit did for most of the time that is charged to it.
    #[derive(Default)]
    pub enum Activity {
        /// It ran, or would have with a CPU.
        #[default]
        Ran = "ran",
        /// It slept.
        Slept = "slept",
        /// It waited for the world outside.
        Waited = "waited",
    }
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
    /// How long the device had something to do meanwhile, for anybody, in seconds: no longer than all its requests one after another.
    pub worked_at_most_s: f64,
    /// Requests that the device had to do when one of these was issued, on average, with those of others.
    pub queue_depth: f64,
    /// The share of them that began where the device's previous request ended.
    pub sequential_share: f64,
    /// How many times each place that they concern was read or written on average, at least: bytes per byte of the megabytes that were;
    /// 0 where these are too many to tell.
    pub times_each: f64,
    /// Who issued them, by thread name, the most first; at most four.
    pub by: Vec<DiskIssuer>,
    /// Others that had requests to it meanwhile, by process, the most bytes first; at most four.
    pub others: Vec<DiskNeighbour>,
}

/// A program with requests of its own to the same device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DiskNeighbour {
    /// Its name.
    pub process: String,
    /// How many requests.
    pub requests: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// How long these took, from issuing to completion, all together, in seconds.
    pub took_s: f64,
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
