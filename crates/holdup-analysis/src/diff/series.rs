//! One measure on both sides, run by run, and whether its change is more than noise.

use holdup_base::stats;

/// A measure of all runs before and after, in the same unit of work.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// One value for each run before.
    pub before: Vec<f64>,
    /// One value for each run after.
    pub after: Vec<f64>,
}

/// What took CPUs away from the program, as shares of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Disturbance {
    /// Other programs.
    pub neighbours: f64,
    /// The host of a virtual machine.
    pub stolen: f64,
    /// By how much the neighbours' share differs between the sides.
    pub shift: f64,
}

/// How far apart equal runs are, as a share of the value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Standard deviation between runs, as a share of the value.
    pub relative: f64,
    /// What one event of the measure weighs, a sample's period, times the share of events that are *not* counted:
    /// counting adds their binomial noise.
    pub grain: f64,
}

/// The share of the machine that others may use before elapsed time and waits mean nothing.
const QUIET: f64 = 0.05;
/// Runs a side from which on their spread says more than a model of it.
const ENOUGH: usize = 3;
/// The p-value below which several runs count as different.
const P: f64 = 0.05;

impl Series {
    /// The values before (0) or after (1).
    pub(super) fn side_mut(&mut self, side: usize) -> &mut Vec<f64> {
        if side == 0 { &mut self.before } else { &mut self.after }
    }

    /// Adds another measure, run by run.
    pub(super) fn add(&mut self, more: &Series) {
        let side = |sum: &mut Vec<f64>, more: &[f64]| {
            sum.resize(more.len().max(sum.len()), 0.0);
            sum.iter_mut().zip(more).for_each(|(a, b)| *a += b);
        };
        side(&mut self.before, &more.before);
        side(&mut self.after, &more.after);
    }

    /// Multiplies both sides by factors of their own.
    pub(super) fn scale(&mut self, before: f64, after: f64) {
        self.before.iter_mut().for_each(|value| *value *= before);
        self.after.iter_mut().for_each(|value| *value *= after);
    }

    /// The typical run before.
    pub fn was(&self) -> f64 {
        middle(&self.before)
    }

    /// The typical run after.
    pub fn now(&self) -> f64 {
        middle(&self.after)
    }

    /// After less before.
    pub fn delta(&self) -> f64 {
        self.now() - self.was()
    }

    /// The change in units of its standard deviation: the larger of what `noise` expects and what the runs show.
    pub fn z(&self, noise: Noise) -> f64 {
        let side = |values: &[f64]| {
            let value = middle(values);
            let model = (noise.relative * value).powi(2) + noise.grain * value.abs();
            let seen = if values.len() >= ENOUGH { deviation(values).powi(2) } else { 0.0 };
            // With enough runs their spread is known: half the model guards against lucky agreement.
            let variance = if values.len() >= ENOUGH { seen.max(model / 4.0) } else { model };
            variance / values.len().max(1) as f64
        };
        self.delta() / (side(&self.before) + side(&self.after)).sqrt().max(f64::MIN_POSITIVE)
    }

    /// The p-value of the Mann–Whitney U test, two-sided; `None` with a single run on either side.
    pub fn p_value(&self) -> Option<f64> {
        let several = self.before.len() > 1 && self.after.len() > 1;
        several.then(|| stats::mann_whitney(&self.before, &self.after))?.map(|test| test.p)
    }

    /// Whether the change is at least `z` standard deviations, and the runs, if there are enough, lie apart.
    pub fn is_real(&self, noise: Noise, z: f64) -> bool {
        let enough = self.before.len() >= ENOUGH && self.after.len() >= ENOUGH;
        // Few runs cannot reach P even if they do not overlap: then that must do.
        let apart =
            || self.p_value().is_none_or(|p| p <= P.max(1.01 * smallest_p(self.before.len(), self.after.len())));
        self.z(noise).abs() >= z && (!enough || apart())
    }
}

/// The median; of two values the mean; 0 of none.
pub fn middle(values: &[f64]) -> f64 {
    stats::median(values.iter().copied())
}

/// The standard deviation, from the median's absolute deviation where that is larger than zero.
fn deviation(values: &[f64]) -> f64 {
    let center = middle(values);
    let far: Vec<f64> = values.iter().map(|v| (v - center).abs()).collect();
    // For a normal distribution the median absolute deviation is 0.6745 standard deviations.
    middle(&far) / 0.6745
}

/// The p-value of runs that do not overlap at all.
fn smallest_p(n: usize, m: usize) -> f64 {
    let arrangements = (1..=n).fold(1.0, |ways, i| ways * (m + i) as f64 / i as f64);
    (2.0 / arrangements).min(1.0)
}

impl Disturbance {
    /// Whether elapsed time and waits tell of the program.
    pub(super) fn is_quiet(self) -> bool {
        self.neighbours.max(self.stolen) <= QUIET
    }
}

impl Noise {
    /// CPU time: caches, hyperthreads and clocks differ between runs, more so if neighbours were busy in only one of
    /// them; what the host takes counts as used. For `grain` see [`Noise::grain`].
    pub(super) fn cpu(by: Disturbance, grain: f64) -> Noise {
        Noise { relative: 0.015 + 0.005 * by.neighbours + 0.15 * by.shift + 0.3 * by.stolen, grain }
    }

    /// Waits depend on when threads meet.
    pub(super) fn waits(by: Disturbance) -> Noise {
        Noise { relative: 0.08 + 0.5 * by.neighbours + by.stolen, grain: 0.0 }
    }

    /// Elapsed time.
    pub(super) fn elapsed(by: Disturbance) -> Noise {
        Noise { relative: 0.02 + by.neighbours + by.stolen, grain: 0.0 }
    }

    /// Undisturbed holds.
    pub(super) fn hold(by: Disturbance) -> Noise {
        Noise { relative: 0.012 + 0.005 * by.neighbours + 0.01 * by.stolen, grain: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(before: &[f64], after: &[f64]) -> Series {
        Series { before: before.to_vec(), after: after.to_vec() }
    }

    #[test]
    fn p_values_agree_with_published_tables() {
        // All of 4 below all of 4: 2 of 70 arrangements.
        let p = series(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]).p_value().unwrap();
        assert!((p - 2.0 / 70.0).abs() < 1e-12, "{p}");
        // U = 4 of 5 and 5: p = 0.0952.
        let p = series(&[1.0, 2.0, 3.0, 5.0, 8.0], &[4.0, 6.0, 7.0, 9.0, 10.0]).p_value().unwrap();
        assert!((p - 0.0952).abs() < 1e-3, "{p}");
        assert!(series(&[1.0], &[2.0]).p_value().is_none());
    }

    #[test]
    fn equal_values_are_no_difference() {
        let same = series(&[2.0; 5], &[2.0; 5]);
        assert_eq!(same.p_value(), Some(1.0));
        assert!(!same.is_real(Noise { relative: 0.02, grain: 0.0 }, 2.0));
    }

    #[test]
    fn one_run_each_needs_more_than_the_expected_noise() {
        let noise = Noise { relative: 0.02, grain: 0.0 };
        assert!(!series(&[100.0], &[104.0]).is_real(noise, 2.0));
        assert!(series(&[100.0], &[110.0]).is_real(noise, 2.0));
        // 100 samples of weight 1 are 10 % noise by themselves.
        assert!(!series(&[100.0], &[110.0]).is_real(Noise { grain: 1.0, ..noise }, 2.0));
    }

    #[test]
    fn scattered_runs_hide_a_change_that_their_means_show() {
        let noise = Noise { relative: 0.01, grain: 0.0 };
        assert!(!series(&[90.0, 100.0, 130.0], &[95.0, 118.0, 125.0]).is_real(noise, 2.0));
        assert!(series(&[99.0, 100.0, 101.0], &[108.0, 110.0, 111.0]).is_real(noise, 2.0));
    }
}
