//! What makes CI fail: growth beyond a limit that is more than noise.

use super::items::Sides;
use super::roles::Judged;
use super::series::{Noise, Series};

/// The share of the machine that others may use before elapsed time and waits mean nothing.
pub(super) const QUIET: f64 = 0.05;
/// Growth has to be this many standard deviations of noise: one in a thousand comparisons is beyond that by chance.
const SURE: f64 = 3.0;
/// For a hold's quartile, which disturbances hardly move.
const SURE_OF_HOLD: f64 = 2.0;
/// A function or lock below this share of the whole cannot fail a build by itself.
const MATTERS: f64 = 0.05;

/// Everything that grew by more than `limit` (0.05 for 5 %), as sentences.
pub(super) fn found(sides: &Sides, judged: &Judged, elapsed: &Series, cpu: &Series, limit: f64) -> Vec<String> {
    let neighbours = sides.neighbours();
    let mut found = Vec::new();
    let mut check = |name: &str, series: &Series, noise: Noise, sure: f64, floor: f64| {
        let base = series.was().max(floor);
        if series.delta() > limit * base && series.is_real(noise, sure) {
            found.push(format!("{name}: +{:.1} %", 100.0 * series.delta() / base));
        }
    };
    if neighbours <= QUIET {
        check("elapsed time", elapsed, Noise::elapsed(neighbours), SURE, 0.0);
    }
    check("CPU time", cpu, Noise::cpu(neighbours, 0.0), SURE, 0.0);
    let floor = MATTERS * judged.whole;
    for (place, item) in &judged.functions {
        let noise = Noise::cpu(neighbours, judged.period_ns);
        check(&format!("CPU time in `{}`", place.function), &item.own, noise, SURE, floor);
    }
    for (key, item) in &judged.held {
        if neighbours <= QUIET {
            let name = format!("waits in `{}` for `{}`", key.at, item.function);
            check(&name, &item.blame, Noise::waits(neighbours), SURE, floor);
        }
        for (by, hold) in &item.holds {
            if item.blame.was().max(item.blame.now()) >= floor {
                let name = format!("hold of the lock taken in `{}`, let go in `{by}`", key.at);
                check(&name, &hold.quartile, Noise::hold(neighbours), SURE_OF_HOLD, 0.0);
            }
        }
    }
    found
}

impl Noise {
    /// CPU time: caches, hyperthreads and clocks differ between runs, more so beside busy neighbours. A sample weighs
    /// `period_ns`.
    pub(super) fn cpu(neighbours: f64, period_ns: f64) -> Noise {
        Noise { relative: 0.025 + 0.1 * neighbours, grain: period_ns }
    }

    /// Waits depend on when threads meet.
    pub(super) fn waits(neighbours: f64) -> Noise {
        Noise { relative: 0.08 + 0.5 * neighbours, grain: 0.0 }
    }

    /// Elapsed time.
    pub(super) fn elapsed(neighbours: f64) -> Noise {
        Noise { relative: 0.02 + neighbours, grain: 0.0 }
    }

    /// Undisturbed holds.
    pub(super) fn hold(neighbours: f64) -> Noise {
        Noise { relative: 0.015 + 0.01 * neighbours, grain: 0.0 }
    }
}
