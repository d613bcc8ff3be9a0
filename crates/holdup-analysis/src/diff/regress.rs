//! What makes CI fail: growth beyond a limit that is more than noise.

use super::items::Sides;
use super::roles::Judged;
use super::series::{Noise, Series};

/// Growth has to be this many standard deviations of noise: one in a thousand comparisons is beyond that by chance.
const SURE: f64 = 3.0;
/// For what disturbances hardly move: a hold's quartile, and the few functions that make up most of the program.
const SURE_OF_MUCH: f64 = 2.0;
/// A function with this share of the CPU time makes up much of the program.
const MUCH: f64 = 0.3;
/// A function or lock below this share of the whole cannot fail a build by itself.
const MATTERS: f64 = 0.05;

/// Everything that grew by more than `limit` (0.05 for 5 %), as sentences.
pub(super) fn found(sides: &Sides, judged: &Judged, elapsed: &Series, cpu: &Series, limit: f64) -> Vec<String> {
    let disturbed = sides.disturbance();
    let mut found = Vec::new();
    let mut check = |name: &str, series: &Series, noise: Noise, sure: f64, floor: f64| {
        let base = series.was().max(floor);
        if series.delta() > limit * base && series.is_real(noise, sure) {
            found.push(format!("{name}: +{:.1} %", 100.0 * series.delta() / base));
        }
    };
    if disturbed.is_quiet() {
        check("elapsed time", elapsed, Noise::elapsed(disturbed), SURE, 0.0);
    }
    // The locks' own code and spinning depend on when threads meet, like waits.
    let work = sides.total(|f| f.functions.values().map(|r| r.ns - r.spin_ns - r.lock_ns).sum());
    let work = if work.was() > 0.0 { &work } else { cpu };
    check("CPU time", work, Noise::cpu(disturbed, 0.0), SURE, 0.0);
    let floor = MATTERS * judged.whole;
    for (place, item) in &judged.functions {
        let share = (item.work.was() / work.was().max(1.0)).min(1.0);
        let noise = Noise::cpu(disturbed, judged.period_ns * (1.0 - share));
        let sure = if share >= MUCH { SURE_OF_MUCH } else { SURE };
        check(&format!("CPU time in `{}`", place.function), &item.work, noise, sure, floor);
    }
    for (key, item) in &judged.held {
        if disturbed.is_quiet() {
            let name = format!("waits in `{}` for `{}`", key.at, item.function);
            check(&name, &item.blame, Noise::waits(disturbed), SURE, floor);
        }
        for (by, hold) in item.holds.iter().filter(|(by, _)| !by.is_empty()) {
            if item.blame.was().max(item.blame.now()) >= floor {
                let name = format!("hold of the lock taken in `{}`, let go in `{by}`", key.at);
                check(&name, hold.steadier(), Noise::hold(disturbed), SURE_OF_MUCH, 0.0);
            }
        }
    }
    found
}
