//! (measurements, expected law)

use super::*;
use crate::confidence::{Random, fit_with_intervals, resampled};

const DOUBLING: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

fn plain(points: &[(f64, f64)]) -> Vec<Observation> {
    points.iter().map(|&(n, throughput)| Observation { n, throughput, weight: 1.0 }).collect()
}

/// Runs at each of `places` with `noise` as relative deviation.
fn noisy(law: &Usl, places: &[f64], runs: usize, noise: f64, random: &mut Random) -> Vec<Observation> {
    let mut all = Vec::new();
    for &n in places {
        for _ in 0..runs {
            let throughput = law.at(n) * (1.0 + noise * random.normal());
            all.push(Observation { n, throughput, weight: law.at(n).powi(-2) });
        }
    }
    all
}

fn near(value: f64, expected: f64, share: f64) -> bool {
    (value - expected).abs() <= share * expected.abs()
}

/// R's package `usl` on its data set `specsdm91`: a SPARCcenter 2000 of 16 CPUs under the SPEC SDM91 benchmark.
#[test]
fn agrees_with_r_on_specsdm91() {
    let data =
        [(1.0, 64.9), (18.0, 995.9), (36.0, 1652.4), (72.0, 1853.2), (108.0, 1828.9), (144.0, 1775.0), (216.0, 1702.2)];
    let law = fit(&plain(&data), Law::Universal).unwrap();
    assert!(near(law.lambda, 89.995_233, 1e-5), "{law:?}");
    assert!(near(law.sigma, 0.027_728_5, 1e-5), "{law:?}");
    assert!(near(law.kappa, 0.000_104_4, 1e-3), "{law:?}");
    assert_eq!(law.peak_n(), Some(97));
    assert!(near(law.lambda / law.sigma, 3245.0, 1e-3));
    let fitted: Vec<f64> = data.iter().map(|(n, _)| law.at(*n).round()).collect();
    assert_eq!(fitted, [90.0, 1078.0, 1541.0, 1850.0, 1879.0, 1822.0, 1646.0]);
}

/// The same on `raytracer`, an SGI Origin 2000 of 64 CPUs, where κ ends at its bound.
#[test]
fn agrees_with_r_on_raytracer() {
    let data = [
        (1.0, 20.0),
        (4.0, 78.0),
        (8.0, 130.0),
        (12.0, 170.0),
        (16.0, 190.0),
        (20.0, 200.0),
        (24.0, 210.0),
        (28.0, 230.0),
        (32.0, 260.0),
        (48.0, 280.0),
        (64.0, 310.0),
    ];
    let found = fit_with_intervals(&plain(&data), Law::Universal).unwrap();
    let law = found.law;
    assert!(near(law.lambda, 21.848_843, 1e-5) && near(law.sigma, 0.057_771, 1e-4), "{law:?}");
    assert_eq!((law.kappa, law.peak_n()), (0.0, None));
    // R's interval, 0.034 to 0.082, is that of an approximation which lets κ be negative.
    assert!(near(found.sigma.low, 0.034, 0.1) && found.sigma.high < 0.082, "{found:?}");
}

/// The test data of R's `usl`, made without noise.
#[test]
fn exact_data_are_recovered() {
    let data = [(1.0, 1.0), (2.0, 1.8868), (4.0, 3.0769), (6.0, 3.5294), (8.0, 3.5398), (10.0, 3.3557)];
    let law = fit(&plain(&data), Law::Universal).unwrap();
    assert!(near(law.sigma, 0.02, 0.01) && near(law.kappa, 0.02, 0.01) && near(law.lambda, 1.0, 1e-3), "{law:?}");
}

/// σ from 0.05 to 0.3 with κ from 0.001 to 0.01, 1 to 64 threads doubling, 20 runs each, 5 % noise: in 9 of 10 sweeps
/// each parameter is within a tenth. (κ = 0.01 hides a σ of 0.05: there it is 12 %.)
#[test]
fn parameters_are_recovered_within_a_tenth() {
    for (sigma, kappa) in [(0.05, 0.001), (0.1, 0.001), (0.1, 0.01), (0.3, 0.01)] {
        let truth = Usl { lambda: 1000.0, sigma, kappa };
        let within = |seed: &u64| {
            let measured = noisy(&truth, &DOUBLING, 20, 0.05, &mut Random::new(*seed));
            let law = fit(&measured, Law::Universal).unwrap();
            near(law.lambda, 1000.0, 0.1) && near(law.sigma, sigma, 0.1) && near(law.kappa, kappa, 0.1)
        };
        let good = (0..30).filter(within).count();
        assert!(good >= 27, "σ = {sigma}, κ = {kappa}: {good} of 30");
    }
}

/// Three runs at each of seven counts: the 95 % intervals hold the truth in most of 60 sweeps.
#[test]
fn intervals_cover_the_truth() {
    let truth = Usl { lambda: 1000.0, sigma: 0.1, kappa: 0.005 };
    let mut covered = [0; 3];
    for seed in 0..60 {
        let measured = noisy(&truth, &DOUBLING, 3, 0.05, &mut Random::new(seed));
        let found = resampled(&measured, Law::Universal, 199).unwrap();
        let parts = [(found.lambda, 1000.0), (found.sigma, 0.1), (found.kappa, 0.005)];
        for (count, (interval, value)) in covered.iter_mut().zip(parts) {
            *count += u32::from(interval.low <= value && value <= interval.high);
        }
    }
    assert!(covered.iter().all(|c| (52..60).contains(c)), "{covered:?} of 60");
}

#[test]
fn few_places_have_no_law() {
    let two = plain(&[(1.0, 10.0), (2.0, 19.0), (2.0, 18.0)]);
    assert!(fit(&two, Law::Universal).is_none());
    assert!(fit(&two, Law::Amdahl).is_some());
    assert!(fit(&plain(&[(1.0, 0.0), (2.0, 0.0), (3.0, 0.0)]), Law::Universal).is_none());
}

#[test]
fn a_program_that_scales_has_no_limit() {
    let law = fit(&plain(&[(1.0, 10.0), (2.0, 20.0), (4.0, 40.0), (8.0, 81.0)]), Law::Universal).unwrap();
    assert_eq!((law.sigma, law.kappa, law.peak(), law.limit()), (0.0, 0.0, None, None));
}
