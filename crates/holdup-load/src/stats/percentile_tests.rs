//! Whether intervals of percentiles keep their promise, on simulated runs.

use hdrhistogram::Histogram;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::StandardNormal;

use super::percentile::{PercentileInterval, Slices, percentile_interval};

/// Calls of each slice.
const CALLS: usize = 200;
/// The deviation of the logarithm of a slice's level, beside the 1 of its calls.
const LEVEL: f64 = 0.5;

/// Latencies about 1000, log-normal in each slice, around a level with φ from slice to slice.
fn simulated(n: usize, phi: f64, seed: u64) -> Slices {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut normal = || -> f64 { random.sample(StandardNormal) };
    let mut level = normal();
    let mut slices = Slices::new();
    for _ in 0..n {
        level = phi * level + (1.0 - phi * phi).sqrt() * normal();
        let mut histogram = Histogram::<u64>::new(2).expect("two digits");
        for _ in 0..CALLS {
            let value = 1000.0 * (LEVEL * level + normal()).exp();
            histogram.record(value as u64 + 1).expect("a histogram that grows");
        }
        slices.push(histogram.iter_recorded().map(|at| (at.value_iterated_to(), at.count_since_last_iteration())));
    }
    slices
}

/// The share of runs whose interval has the true percentile, in percent; `z` is that of the normal distribution.
fn coverage(n: usize, phi: f64, (percent, z): (f64, f64), runs: u64) -> f64 {
    let truth = 1000.0 * ((1.0 + LEVEL * LEVEL).sqrt() * z).exp();
    let covered = |seed: &u64| {
        let found = percentile_interval(&simulated(n, phi, *seed), percent).expect("enough slices");
        found.low as f64 <= truth && found.high.is_none_or(|high| truth <= high as f64)
    };
    100.0 * (0..runs).filter(covered).count() as f64 / runs as f64
}

const MEDIAN: (f64, f64) = (50.0, 0.0);
const P99: (f64, f64) = (99.0, 2.326_347_874);

#[test]
fn intervals_of_percentiles_keep_their_promise() {
    for (n, phi, percentile) in [(30, 0.0, MEDIAN), (30, 0.6, MEDIAN), (30, 0.6, P99), (60, 0.6, P99)] {
        let share = coverage(n, phi, percentile, 100);
        assert!((90.0..=100.0).contains(&share), "{n} slices, φ {phi}, {percentile:?}: {share} %");
    }
}

#[test]
#[ignore = "the whole table of the documentation takes minutes in a debug build"]
fn the_documented_table() {
    let table = [
        (20, 0.0, [98.0, 97.5]),
        (20, 0.6, [99.0, 99.0]),
        (60, 0.0, [97.5, 95.0]),
        (60, 0.6, [97.0, 96.5]),
        (60, 0.9, [98.5, 92.5]),
        (300, 0.6, [95.5, 93.0]),
        (300, 0.9, [98.0, 90.5]),
    ];
    for (n, phi, expected) in table {
        let found = [MEDIAN, P99].map(|percentile| coverage(n, phi, percentile, 200));
        assert!(found.iter().zip(expected).all(|(f, e)| (f - e).abs() <= 1.0), "{n} slices, φ {phi}: {found:?}");
    }
}

#[test]
fn slices_that_are_alike_leave_no_doubt() {
    let mut slices = Slices::new();
    (0..20).for_each(|_| slices.push([(10, 50), (20, 40), (30, 10)]));
    let at = |percent| percentile_interval(&slices, percent).expect("calls");
    assert_eq!(at(50.0), PercentileInterval { value: 10, low: 10, high: Some(10) });
    assert_eq!(at(50.1).value, 20);
    assert_eq!(at(99.0), PercentileInterval { value: 30, low: 30, high: Some(30) });
}

#[test]
fn a_tail_of_one_slice_is_not_bounded_from_above() {
    let mut slices = Slices::new();
    (0..19).for_each(|_| slices.push([(10, 100)]));
    slices.push([(10, 20), (5000, 80)]);
    let found = percentile_interval(&slices, 99.0).expect("calls");
    assert_eq!((found.value, found.high), (5000, None));
    // Without that slice, all calls took 10: the median is not in doubt.
    assert_eq!(percentile_interval(&slices, 50.0), Some(PercentileInterval { value: 10, low: 10, high: Some(10) }));
}

#[test]
fn what_has_no_percentile() {
    let mut slices = Slices::new();
    assert_eq!(percentile_interval(&slices, 50.0), None);
    (0..20).for_each(|_| slices.push([]));
    assert_eq!(percentile_interval(&slices, 50.0), None);
    (0..20).for_each(|_| slices.push([(1, 1)]));
    assert_eq!([0.0, 100.0, f64::NAN].map(|p| percentile_interval(&slices, p)), [None; 3]);
    assert_eq!(percentile_interval(&slices, 50.0).map(|p| p.value), Some(1));
}
