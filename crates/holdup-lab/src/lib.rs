//! Experiments on synchronisation, each with knobs, spreads and a verdict; and a check of the machine.
//!
//! An experiment ([`experiment::Experiment`]) is a sweep over cases. Its workers are parked threads, each on a CPU of its
//! own; rounds of about a millisecond are interleaved over all cases, so that a disturbance hits all alike; a round in which
//! the kernel took the CPU from a worker does not count. Time per operation is what a hand-written loop would show: the
//! harness adds a reading of the clock every 20 µs.

pub mod check;
pub mod compare;
mod error;
pub mod experiment;
pub mod experiments;
pub mod harness;
pub mod knobs;
pub mod locks;
pub mod machine;
pub mod pause;
pub mod plot;
pub mod policies;
pub mod report;
pub mod reproduce;
pub mod result;
pub mod topology;

pub use error::{Error, Result};
use holdup_base::near;

/// `; did you mean …?` with the one of `names` that `name` may be a slip of the pen for; empty if there is none.
fn hint(name: &str, names: &[&str]) -> String {
    near::nearest(name, names.iter().copied()).map_or(String::new(), |n| format!("; did you mean `{n}`?"))
}
