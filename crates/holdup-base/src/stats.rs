//! Medians, quantiles and a test by ranks: pure functions of the values.

mod ranks;

use std::f64::consts::TAU;

pub use ranks::{RankTest, mann_whitney};

/// Sorts and drops what is no finite number.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The value below which the share `q` of the sorted values lies, interpolated; 0 without values.
pub fn quantile_of_sorted(values: &[f64], q: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return 0.0 };
    let place = q.clamp(0.0, 1.0) * last as f64;
    let (below, share) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(last);
    values[below] + (values[above] - values[below]) * share
}

/// The median, of two values the mean; 0 without values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile_of_sorted(&sorted(values), 0.5)
}

/// The probability of a normal value above `z`, for z ≥ 0; relative error below 1e-12.
fn normal_above(z: f64) -> f64 {
    let density = (-0.5 * z * z).exp() / TAU.sqrt();
    if z < 3.0 {
        let (mut term, mut sum, mut odd) = (z, z, 1.0);
        while term > 1e-17 * sum {
            odd += 2.0;
            term *= z * z / odd;
            sum += term;
        }
        return 0.5 - density * sum;
    }
    // Laplace's fraction, from its far end.
    let tail = (1..=200).rev().fold(z, |tail, k| z + f64::from(k) / tail);
    density / tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile_of_sorted(&values, 0.5), 2.5);
        assert_eq!(quantile_of_sorted(&values, 1.0), 4.0);
        assert_eq!(quantile_of_sorted(&[], 0.5), 0.0);
        assert_eq!(median([3.0, f64::NAN, 1.0, 2.0]), 2.0);
    }

    /// Expected: scipy 1.17.1, `norm.sf(z)`.
    #[test]
    fn tails_of_the_normal_distribution() {
        for (z, expected) in [
            (0.0, 5.0000000000000e-01),
            (0.5, 3.0853753872599e-01),
            (1.96, 2.4997895148220e-02),
            (2.99, 1.3948872354922e-03),
            (3.01, 1.3062384487695e-03),
            (6.0, 9.8658764503769e-10),
            (20.0, 2.7536241186062e-89),
        ] {
            let above = normal_above(z);
            assert!((above / expected - 1.0).abs() < 1e-10, "{z}: {above:e}, not {expected:e}");
        }
    }
}
