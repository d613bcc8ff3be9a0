//! The experiments, one file each.

mod arc;
mod atomics;
mod counters;
mod false_sharing;
mod handoff;
mod locks;
mod memory;
pub mod pause;
mod preempt;
mod pulse_all;
mod send_delay;
mod timemutex;

use crate::experiment::Experiment;

/// All, in the order in which they are listed and run.
pub const ALL: &[&Experiment] = &[
    &pause::EXPERIMENT,
    &send_delay::EXPERIMENT,
    &pulse_all::EXPERIMENT,
    &timemutex::EXPERIMENT,
    &arc::EXPERIMENT,
    &counters::EXPERIMENT,
    // These are about what the others are made of.
    &atomics::EXPERIMENT,
    &false_sharing::EXPERIMENT,
    &locks::EXPERIMENT,
    &handoff::EXPERIMENT,
    &preempt::EXPERIMENT,
    &memory::EXPERIMENT,
];
