//! What every part of holdup stands on: text that is safe to show, files that are safe to write, names that were meant, numbers
//! as text, and the statistics that more than one part needs.
//!
//! Names come from outside: of threads, processes, files, symbols. [`text`] is the one rule for what of them may reach
//! a terminal, a table or a picture. [`output`] is the one way in which a file is made, and
//! [`claim`] that in which one is made that a single process at a time may write.

//!
//! A page in a browser has no files: there the modules that make some are missing, and what others need of them says so.

#![forbid(unsafe_code)]

#[cfg(unix)]
pub mod claim;
mod named;
pub mod near;
pub mod numbers;
#[cfg(unix)]
pub mod output;
#[cfg(not(unix))]
#[path = "no_output.rs"]
pub mod output;
#[cfg(unix)]
pub mod scratch;
#[cfg(not(unix))]
#[path = "no_scratch.rs"]
pub mod scratch;
pub mod stats;
pub mod text;
#[cfg(unix)]
pub mod trusted;

/// How perf records what holdup needs, for sentences that say so.
pub const PERF: &str =
    "perf record -a -g -c 1 -e sched:sched_switch -e sched:sched_waking -e cpu-clock/freq=999/ -- CMD";

/// How Windows' tools record the same, with stacks: the newer one comes with Windows. Both write OUT.etl when they are told to stop.
pub const ETW: [&str; 2] = [
    "wpr -start GeneralProfile -filemode & CMD & wpr -stop OUT.etl",
    "xperf -on PROC_THREAD+LOADER+PROFILE+CSWITCH+DISPATCHER+DISK_IO+INTERRUPT+DPC -stackwalk Profile+CSwitch+ReadyThread & CMD & \
     xperf -d OUT.etl",
];

#[cfg(unix)]
pub use claim::Claim;
#[cfg(unix)]
pub use output::Output;
