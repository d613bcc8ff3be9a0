//! How far a fitted law can be trusted: intervals by the bootstrap, and r².

use serde::Serialize;

use crate::law::{Law, Observation, Usl, fit};

/// A 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// A law with its intervals.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The best parameters.
    pub law: Usl,
    /// Of λ.
    pub lambda: Interval,
    /// Of σ.
    pub sigma: Interval,
    /// Of κ.
    pub kappa: Interval,
    /// Where throughput is greatest; an end is infinite where some resamples have no peak.
    pub peak: Interval,
    /// The share of the variance of throughput that the law explains.
    pub r2: f64,
}

/// Resamples behind an interval.
const RESAMPLES: usize = 999;

/// Fits `law` with intervals: residuals in units of their standard deviation are drawn again and again with
/// replacement, and the law is fitted to each such sample (B. Efron, "Bootstrap methods: another look at the
/// jackknife", 1979). The draws are the same for the same observations. `None` where [`fit`] has no answer.
pub fn fit_with_intervals(observations: &[Observation], law: Law) -> Option<Fit> {
    resampled(observations, law, RESAMPLES)
}

/// [`fit_with_intervals`] with so many resamples.
pub(crate) fn resampled(observations: &[Observation], law: Law, times: usize) -> Option<Fit> {
    let best = fit(observations, law)?;
    let resampled = resample(observations, &best, law, times);
    let interval = |of: fn(&Usl) -> f64| quantiles(resampled.iter().map(of).collect());
    Some(Fit {
        law: best,
        lambda: interval(|u| u.lambda),
        sigma: interval(|u| u.sigma),
        kappa: interval(|u| u.kappa),
        peak: interval(|u| u.peak().unwrap_or(f64::INFINITY)),
        r2: r2(observations, &best),
    })
}

fn resample(observations: &[Observation], best: &Usl, law: Law, times: usize) -> Vec<Usl> {
    // A fit takes up part of the noise: what is left is made as large again.
    let spare = observations.len().saturating_sub(law.parameters()).max(1);
    let larger = (observations.len() as f64 / spare as f64).sqrt();
    let residual = |o: &Observation| larger * (o.throughput - best.at(o.n)) * o.weight.sqrt();
    let residuals: Vec<f64> = observations.iter().map(residual).collect();
    let mut random = Random::new(0x9e37_79b9);
    let mut sample = observations.to_vec();
    let mut laws = Vec::with_capacity(times);
    for _ in 0..times {
        for (drawn, o) in sample.iter_mut().zip(observations) {
            let noise = residuals[random.below(residuals.len())] / o.weight.sqrt();
            // Nothing has a throughput of 0 or less.
            drawn.throughput = (best.at(o.n) + noise).max(0.01 * best.at(o.n));
        }
        laws.extend(fit(&sample, law));
    }
    laws
}

fn quantiles(mut values: Vec<f64>) -> Interval {
    values.sort_by(f64::total_cmp);
    let at = |q: f64| values.get(((values.len() as f64 - 1.0) * q).round() as usize).copied().unwrap_or(f64::NAN);
    Interval { low: at(0.025), high: at(0.975) }
}

fn r2(observations: &[Observation], law: &Usl) -> f64 {
    let mean = observations.iter().map(|o| o.throughput).sum::<f64>() / observations.len() as f64;
    let left: f64 = observations.iter().map(|o| (o.throughput - law.at(o.n)).powi(2)).sum();
    let whole: f64 = observations.iter().map(|o| (o.throughput - mean).powi(2)).sum();
    if whole > 0.0 { 1.0 - left / whole } else { 0.0 }
}

/// S. Vigna's SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Below `n`; biased by less than n / 2⁶⁴.
    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// Normal, with deviation 1 (Box and Muller, 1958).
    #[cfg(test)]
    pub(crate) fn normal(&mut self) -> f64 {
        let unit = |x: u64| ((x >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        let (a, b) = (unit(self.next()), unit(self.next()));
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}
