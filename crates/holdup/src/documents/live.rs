//! What `holdup threads PID --json` prints.

use holdup_analysis::threads::Naming;
use serde::Serialize;

/// The threads of a running process: `holdup.threads/1`, with `pid` in place of `trace`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Live {
    /// The name of the format.
    pub schema: &'static str,
    /// Process id.
    pub pid: u32,
    /// Process name.
    pub process: String,
    /// Threads without a name of their own.
    pub unnamed: usize,
    /// The threads.
    pub threads: Vec<LiveRow>,
    /// How to name threads; empty if that is not worth while.
    pub advice: String,
}

/// One thread of a running process. Times count from its start.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct LiveRow {
    /// Thread id.
    pub tid: u32,
    /// Thread name.
    pub name: String,
    /// What its name tells.
    pub naming: Naming,
    /// `R`, `S`, `D`, … as the kernel says.
    pub state: char,
    /// On a CPU, in seconds; none where the kernel does not count.
    pub ran_s: Option<f64>,
    /// Ready and not on a CPU, in seconds.
    pub ready_s: Option<f64>,
    /// How often it was put on a CPU.
    pub runs: Option<u64>,
    /// Switches because it waited.
    pub voluntary: u64,
    /// Switches because it was preempted.
    pub involuntary: u64,
}
