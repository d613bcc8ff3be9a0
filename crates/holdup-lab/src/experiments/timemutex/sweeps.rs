//! Which parameter is varied, and over what.

use super::body::{self, Params};
use crate::harness::case::Case;
use crate::{Error, Result};

/// Each varies one parameter; the others are as the knobs say.
pub const NAMES: &[&str] = &[
    "depth",
    "nested",
    "delay",
    "random",
    "outside",
    "malloc",
    "threads",
    "yields",
    "points",
    "active",
    "loop",
    "background",
    "cpus",
    "alignment",
    "nice",
    "boost",
    "sleep",
    "grid",
];

/// A case, and what its axis is.
pub type OnAxis = (String, Case);

/// Rounds with more threads than CPUs last several time slices, in nanoseconds.
const CROWDED_NS: u64 = 12_000_000;

/// What all sweeps share.
pub struct Base {
    /// The parameters that a sweep does not vary.
    pub params: Params,
    /// Numbers of threads to sweep over.
    pub threads: Vec<usize>,
    /// CPUs of the experiment.
    pub cpus: usize,
}

/// The cases with their axes, and what could not be made.
///
/// # Errors
/// A lock that is none.
pub fn cases(base: &Base, locks: &[&'static str], sweeps: &[&str]) -> Result<(Vec<OnAxis>, Vec<String>)> {
    let (mut cases, mut notes) = (Vec::new(), Vec::new());
    for &sweep in sweeps {
        // The rarer questions are asked of the first two locks alone.
        let common = ["depth", "delay", "threads", "yields", "points", "active", "loop"];
        for &lock in locks.iter().take(if common.contains(&sweep) { locks.len() } else { 2 }) {
            let mine = Params { lock, ..base.params.clone() };
            for (name, x, params) in named_points(sweep, base, &mine) {
                match body::case(format!("{lock}, {name}"), x, &params) {
                    Ok(case) => cases.push((axis(sweep).to_owned(), finish(case, base.cpus))),
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
        "depth" => "nesting depth (0: no lock)",
        "nested" => "different locks, one inside the other",
        "delay" => "delay while holding, ns",
        "random" => "mean of a random delay while holding, ns",
        "outside" => "work after each release, ns",
        "malloc" => "memory allocated and freed while holding, bytes",
        "threads" => "threads, even and odd",
        "yields" => "yields after each release",
        "points" => "sleep points: 0 none, 1 while holding, 2 after, 3 both",
        "active" => "threads allowed to be active",
        "loop" => "threads allowed to be in their work loop",
        "background" => "niceness of the tested threads, beside a load on each CPU",
        "cpus" => "CPUs for two threads",
        "alignment" => "lock's place in its cache line, bytes",
        "nice" => "niceness of a load on each CPU",
        "boost" => "0 plain, 1 priority raised inside",
        "grid" => "delay while holding, ns, by depth, in fore- and background",
        _ => "sleep inside, µs",
    }
}

/// Series, place and parameters of each case of a sweep.
fn named_points(sweep: &str, base: &Base, params: &Params) -> Vec<(String, f64, Params)> {
    if sweep == "grid" {
        return grid(params, base.cpus);
    }
    points(sweep, base, params).into_iter().map(|(x, params)| (sweep.to_owned(), x, params)).collect()
}

fn points(sweep: &str, base: &Base, params: &Params) -> Vec<(f64, Params)> {
    let vary = |values: &[usize], set: &dyn Fn(&mut Params, usize)| {
        let point = |&value: &usize| {
            let mut params = params.clone();
            set(&mut params, value);
            (value as f64, params)
        };
        values.iter().map(point).collect()
    };
    let cpus = base.cpus;
    let some = up_to(params.threads.max(2));
    match sweep {
        "depth" => vary(&[0, 1, 2, 4, 8], &|p, v| p.depth = v),
        "nested" => vary(&[1, 2], &|p, v| p.nested = v == 2),
        "delay" => vary(&[0, 100, 1000, 10_000, 100_000], &|p, v| p.delay_ns = v as u64),
        "random" => vary(&[100, 1000, 10_000], &|p, v| (p.delay_ns, p.random) = (v as u64, true)),
        "outside" => vary(&[0, 100, 1000, 10_000], &|p, v| p.outside_ns = v as u64),
        "malloc" => vary(&[0, 64, 1024, 65_536], &|p, v| p.malloc = v),
        "threads" => vary(&base.threads, &|p, v| p.threads = v),
        "yields" => vary(&[0, 1, 2], &|p, v| p.yields = v),
        "points" => vary(&[0, 1, 2, 3], &|p, v| p.points = v),
        "active" => vary(&some, &|p, v| (p.active, p.threads) = (v, p.threads.max(2))),
        "loop" => vary(&some, &|p, v| (p.active, p.around_loop, p.threads) = (v, true, p.threads.max(2))),
        "background" => vary(&[0, 5, 10], &|p, v| (p.nice, p.company) = (v as i32, Some((cpus, 0)))),
        "cpus" => vary(&up_to(cpus.min(4)), &|p, v| (p.cpus, p.threads) = (Some(v), 2)),
        "alignment" => vary(&[0, 16, 32, 48, 56, 60], &|p, v| p.offset = v),
        "nice" => vary(&[0, 10, 19], &|p, v| p.company = Some((cpus, v as i32))),
        "boost" => vary(&[0, 1], &|p, v| p.boost = v == 1),
        _ => vary(&[0, 50], &|p, v| p.sleep_us = v as u64),
    }
}

/// Niceness of what is in the background: a tenth of the weight of what is not.
const BACKGROUND: i32 = 10;

/// Depth × delay × who is niced: the tested threads, or the load beside them.
fn grid(base: &Params, cpus: usize) -> Vec<(String, f64, Params)> {
    let mut all = Vec::new();
    for (ground, nice, beside) in [("foreground", 0, BACKGROUND), ("background", BACKGROUND, 0)] {
        for depth in [1, 2, 4] {
            for delay_ns in [0, 1000, 10_000] {
                let params = Params { depth, delay_ns, nice, company: Some((cpus, beside)), ..base.clone() };
                all.push((format!("depth {depth}, {ground}"), delay_ns as f64, params));
            }
        }
    }
    all
}

/// The story's numbers of threads: all up to 8, then even and odd up to 20; fewer for a quick run.
pub fn counts(cpus: usize, quick: bool) -> Vec<usize> {
    if quick { around(cpus) } else { (1..=8).chain([9, 10, 12, 13, 16, 17, 19, 20]).collect() }
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
        let base = Base { params: Params { threads: 2, ..Params::default() }, threads: vec![1, 2, 20], cpus: 2 };
        for sweep in NAMES {
            let (cases, notes) = cases(&base, &["std"], &[sweep]).expect("cases");
            assert!(cases.len() >= 2 && notes.is_empty(), "{sweep}");
        }
        let (threads, _) = cases(&base, &["std"], &["threads"]).expect("cases");
        assert_eq!(threads.iter().map(|(_, case)| case.threads).collect::<Vec<_>>(), [1, 2, 20]);
        let (grid, _) = cases(&base, &["std"], &["grid"]).expect("cases");
        assert_eq!(grid.len(), 18);
    }

    #[test]
    fn counts_around_the_cpus() {
        assert_eq!(around(2), [1, 2, 3, 4]);
        assert_eq!(around(8), [1, 2, 3, 7, 8, 9, 16]);
        assert_eq!(counts(2, false).last(), Some(&20));
        assert_eq!(up_to(6), [1, 2, 4, 6]);
    }
}
