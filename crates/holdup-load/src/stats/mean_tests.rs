//! Whether intervals of means keep their promise, on simulated runs.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::StandardNormal;

use super::mean::{MeanInterval, SHORTEST, mean_interval};

/// A stationary series whose true mean is 0 for every seed.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// φ from each sample to the next.
    Correlated(f64),
    /// The sum of so many neighbouring draws.
    Moving(usize),
    /// A correlated part with this φ and this share of the variance, and white noise.
    BehindNoise(f64, f64),
    /// Dips of exponential depth in a tenth of the samples of a correlated series with this φ.
    Dips(f64),
}

fn normal(random: &mut SmallRng) -> f64 {
    random.sample(StandardNormal)
}

fn correlated(random: &mut SmallRng, phi: f64, n: usize) -> Vec<f64> {
    let mut last = normal(random);
    let step = |_| {
        let sample = last;
        last = phi * last + (1.0 - phi * phi).sqrt() * normal(random);
        sample
    };
    (0..n).map(step).collect()
}

fn series(kind: Kind, n: usize, seed: u64) -> Vec<f64> {
    let mut random = SmallRng::seed_from_u64(seed);
    match kind {
        Kind::Correlated(phi) => correlated(&mut random, phi, n),
        Kind::Moving(over) => {
            let draws: Vec<f64> = (0..n + over - 1).map(|_| normal(&mut random)).collect();
            draws.windows(over).map(|w| w.iter().sum()).collect()
        }
        Kind::BehindNoise(phi, share) => {
            let slow = correlated(&mut random, phi, n);
            slow.iter().map(|s| share.sqrt() * s + (1.0 - share).sqrt() * normal(&mut random)).collect()
        }
        Kind::Dips(phi) => {
            let level = correlated(&mut random, phi, n);
            let dip =
                |random: &mut SmallRng| if random.random_bool(0.1) { 3.0 * random.random::<f64>().ln() } else { 0.0 };
            level.iter().map(|l| l + dip(&mut random) + 0.3).collect()
        }
    }
}

/// The share of runs whose interval has the true mean in it, in percent.
fn coverage(kind: Kind, n: usize, runs: u64) -> f64 {
    let covered = |seed: &u64| {
        // A level and a scale as those of throughput.
        let samples: Vec<f64> = series(kind, n, *seed).iter().map(|s| 50_000.0 + 2_000.0 * s).collect();
        let interval = mean_interval(&samples).expect("enough samples");
        interval.low <= 50_000.0 && 50_000.0 <= interval.high
    };
    100.0 * (0..runs).filter(covered).count() as f64 / runs as f64
}

const KINDS: [Kind; 10] = [
    Kind::Correlated(0.0),
    Kind::Correlated(0.3),
    Kind::Correlated(0.6),
    Kind::Correlated(0.9),
    Kind::Moving(2),
    Kind::Moving(4),
    Kind::BehindNoise(0.6, 0.5),
    Kind::BehindNoise(0.9, 0.5),
    Kind::BehindNoise(0.9, 0.2),
    Kind::Dips(0.6),
];

fn keeps_its_promise(n: usize) {
    for kind in KINDS {
        let share = coverage(kind, n, 200);
        assert!((90.0..=99.0).contains(&share), "{kind:?}, {n} samples: {share} %");
    }
}

#[test]
fn sixty_seconds_in_seconds_keep_the_promise() {
    keeps_its_promise(60);
}

#[test]
fn sixty_seconds_in_tenths_keep_the_promise() {
    keeps_its_promise(600);
}

/// Independent samples have their usual interval, a little longer for the doubt about their correlation.
#[test]
fn without_correlation_the_interval_is_nearly_the_usual_one() {
    let lengths = (0..50).map(|seed| {
        let samples = series(Kind::Correlated(0.0), 300, seed);
        let found = mean_interval(&samples).expect("enough samples");
        let mean = samples.iter().sum::<f64>() / 300.0;
        let variance = samples.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / 299.0;
        assert_eq!(found.mean, mean);
        // 1.968: Student's 97.5 % quantile for 299 degrees of freedom.
        (found.high - found.low) / (2.0 * 1.968 * (variance / 300.0).sqrt())
    });
    let mut lengths: Vec<f64> = lengths.collect();
    lengths.sort_by(f64::total_cmp);
    assert!((0.95..1.15).contains(&lengths[25]), "median {}", lengths[25]);
}

/// An AR(1) has the correlation time (1 + φ) / (1 − φ).
#[test]
fn correlation_times_of_known_series() {
    for (phi, expected) in [(0.0, 1.0), (0.6, 4.0), (0.8, 9.0)] {
        let times = (0..20).map(|seed| {
            let found = mean_interval(&series(Kind::Correlated(phi), 2000, seed)).expect("enough samples");
            assert!((found.correlation_time * found.effective_n - 2000.0).abs() < 1e-6);
            found.correlation_time
        });
        let mean = times.sum::<f64>() / 20.0;
        assert!((mean / expected - 1.0).abs() < 0.25, "φ {phi}: {mean}, not {expected}");
    }
}

#[test]
fn what_has_no_interval_and_what_has_no_doubt() {
    assert_eq!(mean_interval(&[1.0; SHORTEST - 1]), None);
    assert_eq!(mean_interval(&[[1.0; 20].as_slice(), &[f64::NAN]].concat()), None);
    assert_eq!(mean_interval(&[[1.0; 20].as_slice(), &[f64::INFINITY]].concat()), None);
    let equal = MeanInterval { mean: 7.0, low: 7.0, high: 7.0, effective_n: 20.0, correlation_time: 1.0 };
    assert_eq!(mean_interval(&[7.0; 20]), Some(equal));
    let zero = mean_interval(&[0.0; 20]).expect("enough samples");
    assert_eq!((zero.low, zero.high), (0.0, 0.0));
}

#[test]
fn units_do_not_matter() {
    let samples = series(Kind::Correlated(0.6), 60, 1);
    let one = mean_interval(&samples).expect("enough samples");
    let scaled: Vec<f64> = samples.iter().map(|s| 1e6 + 1e3 * s).collect();
    let other = mean_interval(&scaled).expect("enough samples");
    assert!((other.low - (1e6 + 1e3 * one.low)).abs() < 1e-3, "{other:?}");
    assert!((other.effective_n - one.effective_n).abs() < 1e-6);
}

#[test]
#[ignore = "the whole table of the documentation takes minutes in a debug build"]
fn the_documented_tables() {
    let check = |kind: Kind, n: usize, expected: f64| {
        let found = coverage(kind, n, 1000);
        assert!((found - expected).abs() <= 0.3, "{kind:?}, {n} samples: {found} %, not {expected}");
    };
    let by_length = [
        (10, [99.0, 98.4, 97.1, 94.6, 88.4, 80.6]),
        (20, [98.3, 98.6, 98.5, 97.0, 93.6, 85.9]),
        (60, [96.5, 97.5, 96.5, 96.8, 96.4, 93.7]),
        (300, [95.4, 94.7, 94.9, 94.8, 96.9, 96.1]),
        (600, [96.1, 96.3, 95.8, 95.2, 95.1, 97.7]),
    ];
    for (n, row) in by_length {
        [0.0, 0.3, 0.6, 0.8, 0.9, 0.95].iter().zip(row).for_each(|(phi, e)| check(Kind::Correlated(*phi), n, e));
    }
    let by_kind = [
        [99.1, 95.0, 95.0],
        [98.8, 97.3, 98.1],
        [98.3, 98.1, 95.7],
        [89.7, 92.1, 95.0],
        [93.4, 91.1, 94.7],
        [97.9, 97.2, 95.9],
    ];
    for (kind, row) in KINDS[4..].iter().zip(by_kind) {
        [20, 60, 300].iter().zip(row).for_each(|(n, e)| check(*kind, *n, e));
    }
}
