//! One change between two traces, in the contract's names.

use holdup_base::named;
use serde::Serialize;

/// One change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Change {
    /// What it is a change of.
    pub what: Subject,
    /// What it is called.
    pub name: String,
    /// In which process; empty for the program in focus.
    pub process: String,
    /// CPU seconds before and after, for the same work.
    pub cpu_s: [f64; 2],
    /// Thread seconds of waiting before and after: its own for a place that waits, else those that end at it.
    pub wait_s: [f64; 2],
    /// CPU seconds by which the whole changed through this, used or kept idle; of a symptom, seconds of its own.
    pub delta_s: f64,
    /// Whether it is the reason for others.
    pub role: Role,
    /// The reason for that, with figures.
    pub because: String,
    /// Mann–Whitney's p with several runs on both sides.
    pub significance: Option<f64>,
}

named! {
    /// What a change is a change of.
    #[derive(Default)]
    pub enum Subject {
        /// From those who wait to the one they wait for.
        Chain = "chain",
        /// A function's CPU time.
        #[default]
        Function = "function",
        /// An instruction's.
        Instruction = "instruction",
        /// The waits for a lock.
        Lock = "lock",
        /// The waits at a place.
        WaitSite = "wait-site",
    }
}

named! {
    /// Whether a change is the reason for others, in the order in which they are shown.
    #[derive(Default)]
    pub enum Role {
        /// It changed by itself.
        Cause = "cause",
        /// Nobody knows.
        #[default]
        Unclear = "unclear",
        /// It follows from something else.
        Symptom = "symptom",
    }
}
