//! The interval of the mean of a correlated series.

use serde::Serialize;

use super::arma::{Belief, beliefs};
use super::student::Student;

/// Shorter series have no interval.
pub const SHORTEST: usize = 10;
/// Longer series are averaged in blocks until no more than this is left. Blocks of an ARMA(1, 1) are one, too.
const LONGEST: usize = 400;
/// The share of probability outside of an interval.
pub(super) const OUTSIDE: f64 = 0.05;

/// The mean of a series with its 95 % interval, in the samples' unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct MeanInterval {
    /// The arithmetic mean.
    pub mean: f64,
    /// The lower end, as far below the mean as the upper one is above.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How many independent samples would say as much. More than there are, where a high sample tends to follow a low
    /// one.
    pub effective_n: f64,
    /// From how many samples one of these is made: the integrated autocorrelation time, in samples; 1 without
    /// correlation.
    pub correlation_time: f64,
}

/// The mean of `samples` taken one after the other (such as calls per second in each second of a run), with a 95 %
/// interval that knows that neighbours resemble each other. `None` with fewer than [`SHORTEST`] samples, or one that is
/// not finite. The interval of a constant series has length 0. O(n); 60 samples take about 1 ms.
///
/// **Method.** All of 293 ARMA(1, 1) models are weighed by what the samples say of them (Zellner and Tiao, 1964); the
/// mean then has a mixture of Student's distributions. Nothing is estimated and then taken for true, so a short series
/// with strong correlation, which can't be told from one with stronger, has the long interval that it deserves.
///
/// **Measured**, as the share of 1000 simulated runs whose interval has the true mean in it, in percent:
///
/// | samples | φ = 0 | 0.3  | 0.6  | 0.8  | 0.9  | 0.95 |
/// |---------|-------|------|------|------|------|------|
/// | 10      | 99.0  | 98.4 | 97.1 | 94.6 | 88.4 | 80.6 |
/// | 20      | 98.3  | 98.6 | 98.5 | 97.0 | 93.6 | 85.9 |
/// | 60      | 96.5  | 97.5 | 96.5 | 96.8 | 96.4 | 93.7 |
/// | 300     | 95.4  | 94.7 | 94.9 | 94.8 | 96.9 | 96.1 |
/// | 600     | 96.1  | 96.3 | 95.8 | 95.2 | 95.1 | 97.7 |
///
/// | 20, 60 and 300 samples of                      |      |      |      |
/// |------------------------------------------------|------|------|------|
/// | the sum of two neighbouring draws, MA(1)       | 99.1 | 95.0 | 95.0 |
/// | the sum of four, MA(3)                         | 98.8 | 97.3 | 98.1 |
/// | φ = 0.6 behind as much noise                   | 98.3 | 98.1 | 95.7 |
/// | φ = 0.9 behind as much noise                   | 89.7 | 92.1 | 95.0 |
/// | φ = 0.9 behind four times as much noise        | 93.4 | 91.1 | 94.7 |
/// | φ = 0.6 with dips of any depth, a tenth of all | 97.9 | 97.2 | 95.9 |
///
/// For comparison, 60 samples with φ = 0, 0.6 and 0.9: five batches 94.5, 92.6 and 81.8; ten batches 95.1, 90.6 and
/// 66.2; the autocorrelation time by Sokal's window 97.2, 87.4 and 75.4, by Geyer's monotone sequence 96.2, 90.5 and
/// 78.2; four cosine weights (U. K. Müller, 2007) 94.6, 94.2 and 84.5; an AR(1) with Kendall's correction 93.8, 93.8
/// and 92.0, which φ = 0.9 behind as much noise brings to 65.7.
///
/// **What it can't see.** A correlation that outlasts the run, a trend, two regimes of which the run saw one. Samples
/// of a distribution with rare, far outliers have the usual trouble of all means: those that did not come up do not
/// count.
pub fn mean_interval(samples: &[f64]) -> Option<MeanInterval> {
    Some(Posterior::of(samples)?.interval())
}

/// What is known of a mean after seeing samples: a mixture of Student's distributions around it.
pub(super) struct Posterior {
    /// The arithmetic mean.
    pub(super) mean: f64,
    /// The parts of the mixture; none if all samples are equal.
    pub(super) beliefs: Vec<Belief>,
    /// Degrees of freedom of each part.
    pub(super) freedom: f64,
    n: f64,
    /// By how much the samples' variance exceeds that of the blocks that the beliefs are about.
    blocked: f64,
}

impl Posterior {
    /// `None` as for [`mean_interval`].
    pub(super) fn of(samples: &[f64]) -> Option<Self> {
        if samples.len() < SHORTEST || !samples.iter().all(|s| s.is_finite()) {
            return None;
        }
        let n = samples.len() as f64;
        let (mean, variance) = moments(samples);
        let mut known = Posterior { mean, beliefs: Vec::new(), freedom: n - 1.0, n, blocked: 1.0 };
        // Equal samples differ by rounding.
        if variance.sqrt() <= 1e-12 * mean.abs() || variance == 0.0 {
            return Some(known);
        }
        // What does not fill a block is left out at the start, where a run is least like itself.
        let size = samples.len().div_ceil(LONGEST);
        let blocks = samples[samples.len() % size..].chunks_exact(size);
        let blocks: Vec<f64> = blocks.map(|b| b.iter().sum::<f64>() / size as f64).collect();
        let (middle, of_blocks) = moments(&blocks);
        let scaled: Vec<f64> = blocks.iter().map(|b| (b - middle) / of_blocks.sqrt()).collect();
        known.beliefs = beliefs(&scaled);
        known.beliefs.iter_mut().for_each(|b| b.error *= of_blocks.sqrt());
        known.freedom = blocks.len() as f64 - 1.0;
        known.blocked = variance / of_blocks;
        Some(known)
    }

    pub(super) fn interval(&self) -> MeanInterval {
        let half = self.half_length();
        let share: f64 = self.beliefs.iter().map(|b| b.weight * b.share).sum();
        let effective_n = if share > 0.0 { self.blocked / share } else { self.n };
        MeanInterval {
            mean: self.mean,
            low: self.mean - half,
            high: self.mean + half,
            effective_n,
            correlation_time: self.n / effective_n,
        }
    }

    fn half_length(&self) -> f64 {
        let student = Student::new(self.freedom);
        let outside = |half: f64| self.beliefs.iter().map(|b| b.weight * student.beyond(half / b.error)).sum::<f64>();
        let (mut low, mut high) = (0.0, self.beliefs.iter().map(|b| b.error).fold(0.0, f64::max));
        while outside(high) > OUTSIDE {
            (low, high) = (high, 2.0 * high);
        }
        while high - low > 1e-6 * high {
            let middle = f64::midpoint(low, high);
            if outside(middle) > OUTSIDE { low = middle } else { high = middle }
        }
        high
    }
}

/// Mean and variance.
fn moments(samples: &[f64]) -> (f64, f64) {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    (mean, samples.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (n - 1.0))
}
