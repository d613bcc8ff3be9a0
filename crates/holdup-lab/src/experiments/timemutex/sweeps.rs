//! Which parameter is varied, and over what.

use super::body::{self, Params};
use crate::harness::case::Case;
use crate::{Error, Result};

/// Each varies one parameter; the others are as the knobs say.
pub const NAMES: &[&str] =
    &["depth", "delay", "threads", "yields", "active", "cpus", "alignment", "nice", "boost", "sleep"];

/// A case, and what its axis is.
pub type OnAxis = (String, Case);

/// Rounds with more threads than CPUs last several time slices, in nanoseconds.
const CROWDED_NS: u64 = 12_000_000;

/// The cases with their axes, and what could not be made.
///
/// # Errors
/// A lock that is none.
pub fn cases(
    base: &Params,
    locks: &[&'static str],
    sweeps: &[&str],
    cpus: usize,
) -> Result<(Vec<OnAxis>, Vec<String>)> {
    let (mut cases, mut notes) = (Vec::new(), Vec::new());
    for &sweep in sweeps {
        // The rarer questions are asked of the first two locks alone.
        let rare = matches!(sweep, "nice" | "boost" | "sleep" | "alignment" | "cpus");
        for &lock in locks.iter().take(if rare { 2 } else { locks.len() }) {
            for (x, params) in points(sweep, &Params { lock, ..base.clone() }, cpus) {
                match body::case(format!("{lock}, {sweep}"), x, &params) {
                    Ok(case) => cases.push((axis(sweep).to_owned(), finish(case, cpus))),
                    Err(Error::Platform(refused)) => notes.push(refused),
                    Err(other) => return Err(other),
                }
            }
        }
    }
    Ok((cases, notes))
}

fn finish(mut case: Case, cpus: usize) -> Case {
    if case.threads > case.cpus.unwrap_or(cpus).min(cpus) {
        case.round_ns = Some(CROWDED_NS);
    }
    case.split()
}

/// What a sweep's axis is.
pub fn axis(sweep: &str) -> &'static str {
    match sweep {
        "depth" => "nesting depth",
        "delay" => "delay while holding, ns",
        "threads" => "threads, even and odd",
        "yields" => "yield points",
        "active" => "threads allowed to be active",
        "cpus" => "CPUs for two threads",
        "alignment" => "lock's place in its cache line, bytes",
        "nice" => "niceness of a load on each CPU",
        "boost" => "0 plain, 1 priority raised inside",
        _ => "sleep inside, µs",
    }
}

fn points(sweep: &str, base: &Params, cpus: usize) -> Vec<(f64, Params)> {
    let vary = |values: &[usize], set: &dyn Fn(&mut Params, usize)| {
        let point = |&value: &usize| {
            let mut params = base.clone();
            set(&mut params, value);
            (value as f64, params)
        };
        values.iter().map(point).collect()
    };
    match sweep {
        "depth" => vary(&[1, 2, 4, 8], &|p, v| p.depth = v),
        "delay" => vary(&[0, 100, 1000, 10_000], &|p, v| p.delay_ns = v as u64),
        "threads" => vary(&around(cpus), &|p, v| p.threads = v),
        "yields" => vary(&[0, 1, 2], &|p, v| p.yields = v),
        "active" => vary(&up_to(base.threads.max(2)), &|p, v| (p.active, p.threads) = (v, p.threads.max(2))),
        "cpus" => vary(&up_to(cpus.min(4)), &|p, v| (p.cpus, p.threads) = (Some(v), 2)),
        "alignment" => vary(&[0, 16, 32, 48, 56, 60], &|p, v| p.offset = v),
        "nice" => vary(&[0, 10, 19], &|p, v| p.background = Some((cpus, v as i32))),
        "boost" => vary(&[0, 1], &|p, v| p.boost = v == 1),
        _ => vary(&[0, 50], &|p, v| p.sleep_us = v as u64),
    }
}

/// One thread, then even and odd numbers around that of the CPUs.
fn around(cpus: usize) -> Vec<usize> {
    let mut counts = vec![1, 2, 3, cpus.saturating_sub(1).max(1), cpus, cpus + 1, 2 * cpus];
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// 1, 2, 4, … and the last.
fn up_to(last: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = (0..8).map(|p| 1 << p).filter(|n| *n < last).collect();
    counts.push(last);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sweep_has_cases() {
        for sweep in NAMES {
            let (cases, notes) =
                cases(&Params { threads: 2, ..Params::default() }, &["std"], &[sweep], 2).expect("cases");
            assert!(cases.len() >= 2 && notes.is_empty(), "{sweep}");
        }
    }

    #[test]
    fn counts_around_the_cpus() {
        assert_eq!(around(2), [1, 2, 3, 4]);
        assert_eq!(around(8), [1, 2, 3, 7, 8, 9, 16]);
        assert_eq!(up_to(6), [1, 2, 4, 6]);
    }
}
