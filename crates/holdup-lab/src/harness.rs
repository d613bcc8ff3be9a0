//! How the lab measures: parked workers, interleaved rounds, preempted rounds marked, medians with spread.

pub mod affinity;
pub mod case;
pub mod clock;
pub mod cycles;
pub mod pool;
pub mod random;
pub mod rounds;
pub mod stats;
pub mod usage;
