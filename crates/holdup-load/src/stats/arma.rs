//! How far the mean of a correlated series may be from the truth, under each model of a family.
//!
//! The family is ARMA(1, 1): x(t) − µ = φ (x(t−1) − µ) + e(t) + θ e(t−1), with normal e. It holds white noise (φ = −θ),
//! AR(1), MA(1), and AR(1) seen through noise. Each model of a grid gets the weight that the samples give it, with µ
//! and the deviation of e integrated out exactly (A. Zellner and G. C. Tiao, "Bayesian analysis of the regression model
//! with autocorrelated errors", 1964).

/// A model, with what was believed of it beforehand.
struct Model {
    phi: f64,
    theta: f64,
    prior: f64,
}

/// What one model says of the mean of a series.
#[derive(Debug, Clone, Copy)]
pub(super) struct Belief {
    /// How probable the model is; all together are 1.
    pub(super) weight: f64,
    /// The standard error of the mean, if the model is true.
    pub(super) error: f64,
    /// The variance of the mean as a share of that of a sample: 1 / n for independent samples.
    pub(super) share: f64,
}

/// Less probable than this beside the most probable model: left out.
const NEGLIGIBLE: f64 = 1e-6;
/// The part of the prior that a slow component behind noise gets by itself. The grid has few such models. Without them
/// an interval is too short where the noise is four times as strong; with twice as much all intervals grow.
const BEHIND_NOISE: f64 = 0.1;

/// The beliefs after seeing `samples`, whose mean is 0 and which are not all equal. O(n) for each of 293 models.
pub(super) fn beliefs(samples: &[f64]) -> Vec<Belief> {
    let judged: Vec<(f64, Belief)> = grid().iter().map(|model| judge(model, samples)).collect();
    let most = judged.iter().map(|j| j.0).fold(f64::NEG_INFINITY, f64::max);
    let weighed = judged.into_iter().map(|(ln, belief)| Belief { weight: (ln - most).exp(), ..belief });
    let mut beliefs: Vec<Belief> = weighed.filter(|b| b.weight > NEGLIGIBLE).collect();
    let all: f64 = beliefs.iter().map(|b| b.weight).sum();
    beliefs.iter_mut().for_each(|b| b.weight /= all);
    beliefs
}

/// φ and θ in even steps, φ more finely near 1, where it matters more. Beyond 0.98 the mean of a run is no figure of
/// the program.
fn grid() -> Vec<Model> {
    let steps = |first: f64, step: f64, n: u32| (0..n).map(move |i| first + step * f64::from(i));
    let phis: Vec<f64> = steps(-0.8, 0.1, 17).chain([0.9, 0.93, 0.96, 0.98]).collect();
    let thetas: Vec<f64> = steps(-0.9, 0.15, 13).collect();
    let prior = (1.0 - BEHIND_NOISE) / (phis.len() * thetas.len()) as f64;
    let even = phis.iter().flat_map(|&phi| thetas.iter().map(move |&theta| Model { phi, theta, prior }));
    let (slow, shares) = ([0.75, 0.85, 0.9, 0.95], [0.2, 0.35, 0.5, 0.65, 0.8]);
    let prior = BEHIND_NOISE / (slow.len() * shares.len()) as f64;
    let behind = slow.into_iter().flat_map(|phi| shares.map(|share| Model { prior, ..behind_noise(phi, share) }));
    even.chain(behind).collect()
}

/// AR(1) with `share` of the variance and white noise with the rest, written as ARMA(1, 1).
fn behind_noise(phi: f64, share: f64) -> Model {
    // x(t) − φ x(t−1) is a moving average with this correlation from one to the next: θ / (1 + θ²).
    let next = -phi * (1.0 - share) / (1.0 + phi * phi * (1.0 - 2.0 * share));
    let theta = if next == 0.0 { 0.0 } else { (1.0 - (1.0 - 4.0 * next * next).sqrt()) / (2.0 * next) };
    Model { phi, theta, prior: 0.0 }
}

/// The logarithm of the model's weight, up to a constant, and its belief of weight 0.
fn judge(model: &Model, samples: &[f64]) -> (f64, Belief) {
    let &Model { phi, theta, prior } = model;
    let n = samples.len() as f64;
    // Variance and next covariance of the series, in units of the variance of e.
    let variance = (1.0 + 2.0 * phi * theta + theta * theta) / (1.0 - phi * phi);
    let next = phi * variance + theta;
    // Innovations, by the recursion of P. J. Brockwell and R. A. Davis, "Time Series", 1991, §5.3: of the samples (x),
    // and of a series of ones (i), which says what µ brings.
    let (mut v, mut x, mut i) = (variance, samples[0], 1.0);
    let (mut ln_v, mut xx, mut xi, mut ii) = (v.ln(), x * x / v, x / v, 1.0 / v);
    for pair in samples.windows(2) {
        let gain = theta / v;
        x = pair[1] - phi * pair[0] - gain * x;
        i = 1.0 - phi - gain * i;
        v = 1.0 + theta * theta - gain * theta;
        ln_v += v.ln();
        xx += x * x / v;
        xi += x * i / v;
        ii += i * i / v;
    }
    let left = (xx - xi * xi / ii).max(f64::MIN_POSITIVE);
    let ln_weight = prior.ln() - 0.5 * (ln_v + ii.ln() + (n - 1.0) * left.ln());
    // The sum of (1 − k / n) φ^(k−1) over k from 1 to n − 1.
    let neighbours = (n * (1.0 - phi) - (1.0 - phi.powf(n))) / (n * (1.0 - phi).powi(2));
    let of_mean = (variance + 2.0 * next * neighbours) / n;
    let error = (left / (n - 1.0) * of_mean).sqrt();
    (ln_weight, Belief { weight: 0.0, error, share: of_mean / variance })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priors_add_up() {
        let models = grid();
        assert_eq!(models.len(), 293);
        assert!((models.iter().map(|m| m.prior).sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(models.iter().all(|m| m.phi.abs() < 1.0 && m.theta.abs() < 1.0));
    }

    /// The covariances of an AR(1) behind noise are known: share · φ^k.
    #[test]
    fn noise_in_front_is_a_moving_average() {
        for (phi, share) in [(0.9, 0.2), (0.75, 0.8)] {
            let Model { theta, .. } = behind_noise(phi, share);
            let variance = (1.0 + 2.0 * phi * theta + theta * theta) / (1.0 - phi * phi);
            let next = phi * variance + theta;
            assert!((next / variance - share * phi).abs() < 1e-12, "{phi} {share}");
        }
    }

    /// Four samples under one model, against the same by matrices: covariance C by formula, then 1ᵀC⁻¹1 and so on
    /// (numpy 2.4.6).
    #[test]
    fn innovations_agree_with_matrices() {
        let samples = [-1.5, 0.5, 2.0, -1.0];
        let model = Model { phi: 0.6, theta: 0.3, prior: 1.0 };
        let (ln_weight, belief) = judge(&model, &samples);
        assert!((ln_weight - (-3.8592232630333)).abs() < 1e-10, "{ln_weight}");
        assert!((belief.error - 2.3553998386431).abs() < 1e-10, "{}", belief.error);
        assert!((belief.share - 0.6674758620690).abs() < 1e-10, "{}", belief.share);
    }
}
