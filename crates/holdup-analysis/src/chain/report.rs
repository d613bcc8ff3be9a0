//! The answer as data: `holdup.chain/1`.

use holdup_base::named;
use serde::Serialize;

use crate::classify::WaitKind;
use crate::report::{Instruction, LockFacts, TraceFacts};

/// Where a chain begins.
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    /// At the wait of this number, in the order of their starts.
    Wait(u64),
    /// At the wait that is open at `seconds`: of the thread with this tid or name, else the longest in the focus.
    At {
        /// Since the trace's start.
        seconds: f64,
        /// Whose, by tid or name.
        thread: Option<String>,
    },
}

/// A readying chain.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Chain {
    /// `holdup.chain/1`.
    pub schema: &'static str,
    /// Of which trace.
    pub trace: TraceFacts,
    /// The instant that was asked for.
    pub at_s: Option<f64>,
    /// How many other threads of the focus waited at that instant.
    pub also_waiting: usize,
    /// Why this wait, where there was a choice; else empty.
    pub note: String,
    /// The thread that waited, then each one's waker; the first thousand.
    pub hops: Vec<Hop>,
    /// Where the chain ends.
    pub end: End,
    /// What the whole first wait was, the largest part first: their shares add up to 1.
    pub shares: Vec<Share>,
    /// What happened at the wait's lock, if that was asked for.
    pub handoffs: Option<Handoffs>,
}

/// A thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Who {
    /// Process name.
    pub process: String,
    /// Process id.
    pub pid: u32,
    /// Thread name.
    pub thread: String,
    /// Thread id.
    pub tid: u32,
}

/// One thread of the chain.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Hop {
    /// Who.
    pub who: Who,
    /// How the chain came here.
    pub by: Edge,
    /// What it did from the end of its wait until it readied the hop before; for the first hop until it ran.
    pub did: Did,
    /// The wait by which the chain goes on; none where the chain ends with this thread.
    pub wait: Option<WaitFacts>,
    /// The part of the first wait for which this hop answers, in seconds.
    pub part_s: f64,
    /// The part of the first wait that lies in the wait above and for which no thread answers, but a disk, a timer, the
    /// network; where the chain ends with it, that is in `end`.
    pub alone_s: f64,
    /// Whether that part holds the instant that was asked for.
    pub at: bool,
}

/// A part of the first wait: all hops of one thread that did the same.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Share {
    /// Who.
    pub who: Who,
    /// What it did, or waited for.
    pub what: EndKind,
    /// Where it ran mostly; empty if it did not, or if that is unknown.
    pub function: String,
    /// Seconds of the first wait.
    pub part_s: f64,
    /// Its share, 0 to 1.
    pub share: f64,
    /// How often.
    pub times: u64,
}

named! {
    /// How a chain comes from one thread to the next.
    #[derive(Default)]
    pub enum Edge {
        /// It begins here.
        #[default]
        Start = "start",
        /// This one ended the wait of the one before.
        Waker = "waker",
        /// This one owned its lock at the instant asked for.
        Owner = "owner",
        /// The same thread, before the wait that no thread ended.
        Before = "before",
        /// This one created the one before.
        Creator = "creator",
    }
}

named! {
    /// What a chain ends at.
    #[derive(Default)]
    pub enum EndKind {
        /// A thread that ran.
        Running = "running",
        /// A thread that could run and did not.
        Runnable = "runnable",
        /// A thread that a signal has stopped, or that is frozen with its control group.
        Stopped = "stopped",
        /// A disk.
        Disk = "disk",
        /// A timer.
        Timer = "timer",
        /// The network.
        Network = "network",
        /// Input from outside.
        Input = "input",
        /// Another interrupt.
        Interrupt = "interrupt",
        /// A wait that nobody ended.
        Nobody = "nobody",
        /// A wait that the chain has passed already.
        Circle = "circle",
        /// Events that were lost.
        Lost = "lost",
        /// Something that is not in the trace.
        #[default]
        Unknown = "unknown",
        /// Nothing: it goes on, and is not shown.
        Cut = "cut",
    }
}

/// What a thread did between two instants.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Did {
    /// From when.
    pub from_s: f64,
    /// Until when.
    pub to_s: f64,
    /// On a CPU, in seconds.
    pub ran_s: f64,
    /// Could run and did not, in seconds.
    pub ready_s: f64,
    /// Waited, in seconds.
    pub waited_s: f64,
    /// The function on most of its samples; empty without any.
    pub function: String,
    /// `file.c:12`.
    pub source: String,
    /// Its samples meanwhile.
    pub samples: u64,
    /// The instruction with most samples.
    pub instruction: Option<Instruction>,
    /// Who had its CPU while it could run, the longest first.
    pub behind: Vec<Behind>,
}

/// A thread that ran in another one's place.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Behind {
    /// Who.
    pub who: Who,
    /// For how long, in seconds.
    pub ran_s: f64,
}

/// One wait of the chain.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct WaitFacts {
    /// Its number, for `--wait`; none if it began before what was looked at.
    pub id: Option<u64>,
    /// For what, in kind.
    pub kind: WaitKind,
    /// On which lock.
    pub lock: Option<LockFacts>,
    /// When it began.
    pub start_s: f64,
    /// When it was ended; the trace's end if it never was.
    pub woken_s: f64,
    /// From its begin until it was ended.
    pub waited_s: f64,
    /// From then until the thread ran.
    pub ready_s: f64,
    /// Whether nobody ended it within the trace.
    pub open: bool,
    /// What ended it: `thread`, `timer`, `softirq network`, `interrupt 12`, …
    pub ended_by: String,
    /// The innermost function of the application where it waited.
    pub function: String,
    /// Where it waited, the innermost frame first.
    pub stack: Vec<String>,
    /// Where it was ended.
    pub waker_stack: Vec<String>,
}

/// Where a chain ends.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct End {
    /// What it ends at.
    pub kind: EndKind,
    /// One sentence.
    pub text: String,
    /// The hop that answers for the largest part of the first wait, counted from 0; the end itself if it is as many
    /// as there are hops.
    pub main_hop: usize,
    /// Its share of the first wait, 0 to 1.
    pub main_share: f64,
    /// The part of the first wait for which the end itself answers (a disk, a timer), in seconds.
    pub part_s: f64,
}

/// What happened at a lock while anybody waited for it, around one wait.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Handoffs {
    /// Which.
    pub lock: Option<LockFacts>,
    /// From when somebody waited all the time, in seconds.
    pub from_s: f64,
    /// Until when.
    pub to_s: f64,
    /// Hand-offs in that time.
    pub total: usize,
    /// Of these, left out before the first of the list.
    pub skipped: usize,
    /// Hand-offs of this lock in the whole trace.
    pub in_trace: usize,
    /// In time order.
    pub list: Vec<Handoff>,
}

/// A lock changes hands.
#[derive(Debug, Clone, Default, Serialize, schemars::JsonSchema)]
pub struct Handoff {
    /// When the next owner was woken, in seconds.
    pub t_s: f64,
    /// Who let go; none if an interrupt or nobody known did.
    pub from: Option<Who>,
    /// What ended the wait, as in [`WaitFacts::ended_by`].
    pub ended_by: String,
    /// Who got it.
    pub to: Who,
    /// The wait's number, for `--wait`.
    pub wait: Option<u64>,
    /// How long that one had waited, in seconds.
    pub waited_s: f64,
    /// From the wake-up until it ran, in seconds.
    pub handoff_s: f64,
    /// From running until it woke the next; none if it woke nobody.
    pub held_s: Option<f64>,
    /// How many others waited then.
    pub waiting: usize,
}
