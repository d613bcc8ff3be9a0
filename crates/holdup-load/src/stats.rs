//! How sure a measurement is: intervals of means, percentiles and ratios, and a test by ranks.
//!
//! Pure functions of the samples: no clock, and the same answer for the same samples, as all draws have fixed seeds.
//! All intervals are 95 % intervals.
//!
//! What a program does in one second resembles what it does in the next. A run of sixty seconds with a correlation of
//! 0.9 from each second to the next says as much as three independent ones, and an interval that takes them for sixty
//! is a fifth as long as it should be. [`mean_interval`] has the figures.

mod arma;
mod mean;
#[cfg(test)]
mod mean_tests;
mod percentile;
#[cfg(test)]
mod percentile_tests;
mod ratio;
mod student;

pub use holdup_base::stats::{RankTest, mann_whitney, median};
pub use mean::{MeanInterval, SHORTEST, mean_interval};
pub use percentile::{PercentileInterval, Slices, percentile_interval};
pub use ratio::{Ratio, compare, compare_slices};
