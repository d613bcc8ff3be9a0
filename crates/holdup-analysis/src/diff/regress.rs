//! What makes CI fail: growth beyond a limit that is more than noise.

use super::facts::Family;
use super::items::{HeldItem, HeldKey, Sides};
use super::roles::{Judged, time};
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
            found.push(format!("{name}: {}", growth(series)));
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
        if disturbed.is_quiet() || is_more_work_for_the_disk(key, item, floor) {
            let name = match key.family {
                Family::Disk => format!("waits for the disk in `{}`", key.at),
                _ => format!("waits in `{}` for `{}`", key.at, item.function),
            };
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

/// Whether the program turned to the disk more than twice as often, and it matters. Neighbours make waits longer, of which the model of
/// noise knows, and decide how often threads meet at a lock; they don't make a program write or flush what it did not.
fn is_more_work_for_the_disk(key: &HeldKey, item: &HeldItem, floor: f64) -> bool {
    key.family == Family::Disk && item.blame.now() >= floor && item.waits.now() > 2.0 * item.waits.was()
}

/// `0.033 s → 0.121 s, 3.7 times`. A share of what was next to nothing says nothing, so both figures are there.
fn growth(series: &Series) -> String {
    let (was, now) = (series.was(), series.now());
    let change = match now / was {
        _ if was <= 0.0 => "new".to_owned(),
        times if times >= 100.0 => "over 100 times".to_owned(),
        times if times >= 2.0 => format!("{times:.1} times"),
        times => format!("{:+.1} %", 100.0 * (times - 1.0)),
    };
    format!("{} → {}, {change}", time(was), time(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_of_what_was_there() {
        let text = |was: f64, now: f64| growth(&Series { before: vec![was], after: vec![now] });
        assert_eq!(text(33e6, 121e6), "33.0 ms → 121.0 ms, 3.7 times");
        assert_eq!(text(100e6, 153.8e6), "100.0 ms → 153.8 ms, +53.8 %");
        assert_eq!(text(0.0, 620e6), "0 ns → 620.0 ms, new");
        assert_eq!(text(1e3, 500e6), "1.0 µs → 500.0 ms, over 100 times");
    }
}
