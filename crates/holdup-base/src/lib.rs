//! What every part of holdup stands on: text that is safe to show, files that are safe to write, names that were meant, numbers
//! as text, and the statistics that more than one part needs.
//!
//! Names come from outside: of threads, processes, files, symbols. [`text`] is the one rule for what of them may reach
//! a terminal, a table or a picture. [`output`] is the one way in which a file is made, and
//! [`claim`] that in which one is made that a single process at a time may write.

#![forbid(unsafe_code)]

pub mod claim;
mod named;
pub mod near;
pub mod numbers;
pub mod output;
pub mod scratch;
pub mod stats;
pub mod text;
pub mod trusted;

/// How perf records what holdup needs, for sentences that say so.
pub const PERF: &str =
    "perf record -a -g -c 1 -e sched:sched_switch -e sched:sched_waking -e cpu-clock/freq=999/ -- CMD";

pub use claim::Claim;
pub use output::Output;
