//! When cycles are due in an open loop: at a steady rate, or at one that swings.

use std::f64::consts::TAU;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Length;

/// A rate that swings like a sine around its mean, from the beginning of the measured time on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Wave {
    /// How far it swings, as a share of the mean: more than 0, at most 1.
    pub amplitude: f64,
    /// From one crest to the next, in seconds. More than 0.
    pub period_s: f64,
}

impl Wave {
    /// How many cycles more than at the steady rate were due `t` seconds after its beginning, in seconds of that rate.
    ///
    /// The integral of `amplitude · sin(2π t / period)`.
    fn ahead(self, t: f64) -> f64 {
        self.amplitude * self.period_s / TAU * (1.0 - (TAU * t.max(0.0) / self.period_s).cos())
    }

    /// The rate `t` seconds after its beginning, as a multiple of the mean.
    pub(crate) fn at(self, t: f64) -> f64 {
        1.0 + self.amplitude * (TAU * t / self.period_s).sin()
    }

    /// The mean rate of so many seconds from `t` on, as a multiple of the mean of a whole period.
    pub(crate) fn over(self, t: f64, seconds: f64) -> f64 {
        if seconds > 0.0 { 1.0 + (self.ahead(t + seconds) - self.ahead(t)) / seconds } else { 1.0 }
    }
}

/// The rate of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    per_s: f64,
    wave: Option<Wave>,
    /// The end of the warm-up at this rate, in seconds.
    swings_from: f64,
}

impl Pace {
    pub(super) fn new(per_s: f64, wave: Option<Wave>, warm_up: Length) -> Pace {
        let swings_from = match warm_up {
            Length::Time(time) => time.as_secs_f64(),
            Length::Cycles(cycles) => cycles as f64 / per_s,
        };
        Pace { per_s, wave, swings_from }
    }

    /// How long after the start a cycle is due. O(1) at a steady rate, else O(log of the precision).
    pub(super) fn after(&self, cycle: u64) -> Duration {
        let steady = cycle as f64 * (1e9 / self.per_s);
        let Some(wave) = self.wave else { return Duration::from_nanos(steady as u64) };
        // It is ahead of the steady rate by nothing at least, and by half a wave's crest at most.
        let most = 2.0 * wave.amplitude * wave.period_s / TAU;
        let (mut late, cycle) = (steady / 1e9, cycle as f64);
        let mut early = (late - most).max(0.0);
        while late - early > 1e-9 {
            let middle = early + (late - early) / 2.0;
            if middle <= early || middle >= late {
                break;
            }
            if self.count(middle) < cycle { early = middle } else { late = middle }
        }
        Duration::from_secs_f64(late)
    }

    /// How many cycles are due until so long after the start.
    pub(super) fn due_until(&self, time: Duration) -> f64 {
        match self.wave {
            None => time.as_nanos() as f64 / (1e9 / self.per_s),
            Some(_) => self.count(time.as_secs_f64()),
        }
    }

    fn count(&self, t: f64) -> f64 {
        self.per_s * (t + self.wave.map_or(0.0, |wave| wave.ahead(t - self.swings_from)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_swings_is_due_more_often_at_its_crest() {
        let wave = Wave { amplitude: 0.5, period_s: 4.0 };
        let pace = Pace::new(1000.0, Some(wave), Length::Time(Duration::from_secs(2)));
        let mut of_second = [0; 10];
        for cycle in 0.. {
            let second = pace.after(cycle).as_secs() as usize;
            let Some(count) = of_second.get_mut(second) else { break };
            *count += 1;
        }
        // Steady at first; then 1000 · (1 ± 0.5 · 2/π) in each quarter of a period.
        let wanted = [1000, 1000, 1318, 1318, 682, 682, 1318, 1318, 682, 682];
        assert!(of_second.iter().zip(wanted).all(|(a, b): (&i32, i32)| a.abs_diff(b) <= 2), "{of_second:?}");
    }

    #[test]
    fn counts_and_times_agree() {
        for wave in [None, Some(Wave { amplitude: 1.0, period_s: 0.25 })] {
            let pace = Pace::new(12_345.0, wave, Length::Cycles(500));
            let mut last = Duration::ZERO;
            for cycle in (0..40_000).step_by(37) {
                let after = pace.after(cycle);
                assert!(after >= last && (pace.due_until(after) - cycle as f64).abs() < 0.01, "{cycle}: {after:?}");
                last = after;
            }
        }
        let wave = Wave { amplitude: 0.3, period_s: 2.0 };
        assert!((wave.over(0.7, 4.0) - 1.0).abs() < 1e-12 && (wave.at(0.5) - 1.3).abs() < 1e-12);
    }
}
