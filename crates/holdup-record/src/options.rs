//! What to record, and what came of it.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use holdup_runtime::Held;
use holdup_runtime::jvm::{CompiledFrame, InlinedFunctions};
use holdup_trace::{Nanos, RecorderCost};
use rustc_hash::FxHashMap;

use crate::probes::Probe;
use crate::trigger::Condition;

/// Whose work the report is about. Recording is system-wide in every case: the culprit may be anyone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The whole machine.
    System,
    /// Running processes and their children, those that exist already too; recording ends when all of these have ended.
    Pids(Vec<u32>),
    /// A command, started once recording is active and run as the user who runs this, without capabilities of its file; recording ends when it does.
    Command {
        /// The program and its arguments.
        argv: Vec<OsString>,
    },
}

impl Options {
    /// The processes whose trees the report is about; none where it is about all of the machine. `child` is the command.
    pub(crate) fn roots(&self, child: Option<u32>) -> Vec<u32> {
        match &self.target {
            _ if self.machine => Vec::new(),
            _ if !self.about.is_empty() => self.about.clone(),
            Target::System => Vec::new(),
            Target::Pids(pids) => pids.clone(),
            Target::Command { .. } => child.into_iter().collect(),
        }
    }
}

/// How much a flight recorder keeps: what either limit leaves of the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ring {
    /// At least the last stretch of this length, up to one and a half of it.
    pub time: Option<Duration>,
    /// At most so many bytes, and one round of the buffers more, on disk.
    pub bytes: Option<u64>,
}

impl Ring {
    pub(crate) fn nanos(&self) -> Option<u64> {
        self.time.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// How often a flight recorder keeps what it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// So often, then recording ends; 0 for without end.
    pub count: u64,
    /// No condition counts for so long after the last time.
    pub pause: Duration,
}

/// What is recorded of requests and answers on sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sockets {
    /// The first bytes of each request: users' data.
    pub with_text: bool,
}

/// How to record.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whose work the report is about.
    pub target: Target,
    /// Whether the report is about all of the machine, also while a command runs.
    pub machine: bool,
    /// Running processes of which the report is about while a command runs, and their children; none where it is about the target.
    pub about: Vec<u32>,
    /// Ends recording after this long; `None` for until told to stop.
    pub duration: Option<Duration>,
    /// CPU samples per second and CPU; 0 for none, `None` for as many as a third of the budget affords, and [`FREQ`] at most.
    pub freq: Option<u32>,
    /// The share of the machine's CPU time that recording may cost; 1 and more is no limit, and each stack is then put
    /// together anew.
    pub budget: f64,
    /// Waits at least this long get a stack.
    pub min_wait: Nanos,
    /// Flight recorder: only so much of the end is kept.
    pub ring: Option<Ring>,
    /// Conditions of which the first that holds ends the recording, or makes a flight recorder [keep](Self::keep) what it has.
    pub until: Vec<Condition>,
    /// How long recording goes on after that.
    pub after: Duration,
    /// Flight recorder: what there is is kept each time a condition holds, and at SIGUSR1, and recording goes on.
    pub keep: Option<Keep>,
    /// Where spans begin and end.
    pub spans: Vec<Probe>,
    /// Whether requests and answers on sockets are spans.
    pub sockets: Option<Sockets>,
    /// Whether lines that programs write to a `trace_marker` begin and end spans.
    pub markers: bool,
    /// Buffer for records of each CPU; rounded to a power of two of slots, and cut to an eighth of the memory in all.
    pub buffer_mb_per_cpu: usize,
    /// Buffer for stacks of all CPUs.
    pub stack_buffer_mb: usize,
    /// How much of a user stack is copied where its end is not known, up to 64: of others all of it, up to 64.
    pub stack_kb: usize,
    /// Most bytes of new stacks per second and CPU; what is left out is counted.
    pub stack_mb_per_s: u64,
    /// How often the buffers are emptied.
    pub drain_every: Duration,
}

/// Most CPU samples per second and CPU, where nothing else is said. No whole fraction of the usual rates of timers.
pub const FREQ: u32 = 999;
/// The share of the machine's CPU time that recording may cost, where nothing else is said.
pub const BUDGET: f64 = 0.03;

/// Waits of at least this length get a stack, where nothing else is said.
pub const MIN_WAIT: Duration = Duration::from_micros(20);
/// How long recording goes on after a condition, where nothing else is said.
pub const AFTER: Duration = Duration::from_secs(1);
/// MB of buffer for each CPU, where nothing else is said.
pub const BUFFER_MB: u32 = 24;

impl Default for Options {
    fn default() -> Self {
        Options {
            target: Target::System,
            machine: false,
            about: Vec::new(),
            duration: None,
            freq: None,
            budget: BUDGET,
            min_wait: Nanos(MIN_WAIT.as_nanos() as u64),
            ring: None,
            until: Vec::new(),
            after: AFTER,
            keep: None,
            spans: Vec::new(),
            sockets: None,
            markers: false,
            buffer_mb_per_cpu: BUFFER_MB as usize,
            stack_buffer_mb: 32,
            stack_kb: 16,
            stack_mb_per_s: 20,
            drain_every: Duration::from_millis(20),
        }
    }
}

/// How a recording is going, for a status line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Status {
    /// Since recording began.
    pub elapsed: Duration,
    /// Records so far.
    pub events: u64,
    /// Bytes in the spool.
    pub bytes: u64,
    /// Records that found no room in their CPU's ring.
    pub lost: u64,
    /// Stacks written.
    pub stacks: u64,
    /// Stacks that found no room in their buffer.
    pub lost_stacks: u64,
    /// Stacks left out to limit the rate.
    pub limited_stacks: u64,
}

impl Status {
    /// All that found no room and is missing: records and stacks.
    pub fn missing(&self) -> u64 {
        self.lost + self.lost_stacks
    }
}

/// What came of a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// The command's exit code; 128 + n if it was ended by signal n.
    pub exit_code: Option<i32>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// Whether a signal that was for the recorder ended it, or came while it was ending.
    pub interrupted: bool,
    /// What recording cost meanwhile.
    pub cost: RecorderCost,
    /// The last status.
    pub status: Status,
    /// By which hooks events were recorded.
    pub hooks: Vec<String>,
    /// How often a flight recorder has kept what it had.
    pub kept: u64,
    /// What names functions of processes that may have ended.
    pub left: Left,
    /// What the user should know: a full disk, hooks that are missing.
    pub notes: Vec<String>,
}

/// What processes leave that may have ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Left {
    /// The names of code that they compiled while they ran.
    pub code: Vec<CompiledCode>,
    /// Files of their programs that may be gone.
    pub held: Vec<Held>,
    /// Processes whose stacks lead to the functions of what they interpret and compile.
    pub named: Vec<u32>,
}

/// The functions that a process compiled while it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompiledCode {
    /// The process.
    pub pid: u32,
    /// What it told: a perf map, as hostile as the process.
    pub text: Vec<u8>,
    /// The frames of its code, by start.
    pub frames: Vec<CompiledFrame>,
    /// Which functions were put into which of its code.
    pub inlined: InlinedFunctions,
    /// What its interpreter ran, by where it lies.
    pub methods: FxHashMap<u64, Arc<str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_may_run_for_the_sake_of_others() {
        let target = Target::Command { argv: vec!["make".into()] };
        let of = |machine| Options { target: target.clone(), machine, ..Options::default() }.roots(Some(7));
        assert_eq!((of(false), of(true)), (vec![7], Vec::new()));
        let about = Options { target: target.clone(), about: vec![4, 5], ..Options::default() };
        assert_eq!(about.roots(Some(7)), [4, 5], "a server, while its load runs");
    }
}
