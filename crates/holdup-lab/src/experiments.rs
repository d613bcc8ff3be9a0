//! The experiments, one file each.

mod atomics;
mod counters;

use crate::experiment::Experiment;

/// All, in the order in which they are listed and run.
pub const ALL: &[&Experiment] = &[&counters::EXPERIMENT, &atomics::EXPERIMENT];
