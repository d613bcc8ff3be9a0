//! Medians, quantiles and spreads of rounds.

pub use holdup_base::stats::{median, quantile_of_sorted, sorted};

/// Low and high of a point are at least this share away from its median. Two runs of one program never lie closer: the
/// kernel places memory elsewhere and the clock rate follows the temperature.
pub const FLOOR: f64 = 0.03;

/// A median and where a further round may be expected.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The 2.5 % quantile of the rounds, at least [`FLOOR`] below the median.
    pub low: f64,
    /// The 97.5 % quantile, at least [`FLOOR`] above.
    pub high: f64,
}

/// Summarises rounds. The interval is that of the rounds, not that of their mean: rounds of one run share what the
/// next run will not, so an interval of the mean would promise too much.
pub fn spread(values: impl IntoIterator<Item = f64>) -> Spread {
    let values = sorted(values);
    let median = quantile_of_sorted(&values, 0.5);
    let floor = median.abs() * FLOOR;
    Spread {
        median,
        low: quantile_of_sorted(&values, 0.025).min(median - floor),
        high: quantile_of_sorted(&values, 0.975).max(median + floor),
    }
}

/// Jain's index of how evenly `shares` are spread: 1 if all are equal, 1/n if one has all (Jain, Chiu, Hawe 1984).
pub fn fairness(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(s, q), v| (s + v, q + v * v));
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_have_a_floor_and_drop_nonsense() {
        let same = spread([100.0, 100.0, f64::NAN]);
        assert_eq!((same.median, same.low, same.high), (100.0, 97.0, 103.0));
        let wide = spread((0..=100).map(f64::from));
        assert_eq!((wide.median, wide.low, wide.high), (50.0, 2.5, 97.5));
    }

    #[test]
    fn fairness_of_known_shares() {
        assert_eq!(fairness(&[5.0, 5.0]), 1.0);
        assert_eq!(fairness(&[5.0, 0.0]), 0.5);
        assert_eq!(fairness(&[0.0, 0.0]), 1.0);
    }
}
