//! The answer of a sweep: points, the laws, what to make of them.

mod messages;

use std::collections::BTreeMap;

use holdup_base::named;
use serde::Serialize;

use crate::confidence::{Fit, Interval, fit_with_intervals};
use crate::law::{Law, Observation};
use crate::stats::median;
use crate::sweep::Run;

/// Fewer counts than this have no law of three parameters.
pub const FEWEST: usize = 4;
/// With more threads than CPUs and this share of the CPUs busy, it is the CPUs that throughput ends at.
const CROWDED: f64 = 0.8;
/// Degrees of freedom that the common variance weighs beside a point's own.
const PRIOR: f64 = 4.0;

/// The whole answer: `holdup.scale/1`.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Scaling {
    /// `holdup.scale/1`.
    pub schema: &'static str,
    /// The command, with `{n}`.
    pub command: String,
    /// What varies.
    pub axis: Axis,
    /// CPUs that the command could use.
    pub cpus: usize,
    /// By rising count.
    pub points: Vec<Point>,
    /// Whether the command seems to run for a set time: then nothing tells how much work its runs did, and no law is fitted.
    pub set_time: bool,
    /// The Universal Scalability Law; `None` with fewer than four counts that count.
    pub usl: Option<Fitted>,
    /// Amdahl's law on the same points.
    pub amdahl: Option<Fitted>,
    /// What the law says, a sentence each.
    pub findings: Vec<String>,
    /// What to do.
    pub advice: String,
    /// What the reader should know about how far this can be trusted.
    pub notes: Vec<String>,
}

named! {
    /// What a sweep varies.
    pub enum Axis {
        /// How many threads the command is told to use.
        Threads = "threads",
        /// How many CPUs it may use.
        Cpus = "cpus",
    }
}

/// All runs at one count.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Point {
    /// The count.
    pub n: usize,
    /// Units of work per second: the median of the runs.
    pub throughput: f64,
    /// The slowest run.
    pub low: f64,
    /// The fastest run.
    pub high: f64,
    /// How many runs.
    pub runs: usize,
    /// Throughput in that of the smallest count.
    pub speedup: f64,
    /// Speed-up divided by how many times the smallest count this is.
    pub efficiency: f64,
    /// The serial share that this speed-up implies (A. Karp and H. Flatt, "Measuring parallel processor performance",
    /// 1990): above 1 it got slower, below 0 it is more than linear. `None` at the smallest count.
    pub karp_flatt: Option<f64>,
    /// CPU seconds for each unit of work.
    pub cpu_s_per_unit: f64,
    /// CPUs kept busy on average.
    pub busy_cpus: f64,
    /// Seconds that a run took.
    pub elapsed_s: f64,
    /// Whether more threads than CPUs kept the CPUs busy. Such a point is no part of the law.
    pub crowded: bool,
}

/// A fitted law. Intervals are of 95 %.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Fitted {
    /// Throughput of one.
    pub lambda: f64,
    /// Contention.
    pub sigma: f64,
    /// Coherence.
    pub kappa: f64,
    /// The count with the greatest throughput; `None` where it never falls.
    pub peak_n: Option<u64>,
    /// What no count exceeds, in units per second; `None` where there is no bound.
    pub limit: Option<f64>,
    /// The share of the variance of throughput that the law explains.
    pub r2: f64,
    /// Of λ.
    pub lambda_ci95: [f64; 2],
    /// Of σ.
    pub sigma_ci95: [f64; 2],
    /// Of κ.
    pub kappa_ci95: [f64; 2],
    /// Of the peak; the upper end is `None` where it may be nowhere.
    pub peak_ci95: Option<[Option<f64>; 2]>,
}

/// What was swept.
#[derive(Debug, Clone)]
pub struct About {
    /// The command, with `{n}`.
    pub command: String,
    /// What varies.
    pub axis: Axis,
    /// CPUs that the command could use.
    pub cpus: usize,
    /// Whether points with more threads than CPUs count in the law as well.
    pub beyond_cpus: bool,
}

impl Scaling {
    /// The answer to `runs`. O(runs) but for the bootstrap.
    pub fn new(about: About, runs: &[Run]) -> Scaling {
        let mut by_count: BTreeMap<usize, Vec<&Run>> = BTreeMap::new();
        runs.iter().for_each(|run| by_count.entry(run.n).or_default().push(run));
        let points = points(&by_count, &about);
        let observations = observations(&points, &by_count);
        let set_time = about.axis == Axis::Threads && runs.iter().all(|r| r.work == 1.0) && is_set_time(&points);
        let counts = points.iter().filter(|p| !p.crowded && !set_time).count();
        let law = |law| fit_with_intervals(&observations, law).as_ref().map(Fitted::of);
        let mut scaling = Scaling {
            schema: "holdup.scale/1",
            command: about.command,
            axis: about.axis,
            cpus: about.cpus,
            set_time,
            usl: (counts >= FEWEST).then(|| law(Law::Universal)).flatten(),
            amdahl: (counts > 2).then(|| law(Law::Amdahl)).flatten(),
            points,
            findings: Vec::new(),
            advice: String::new(),
            notes: Vec::new(),
        };
        scaling.findings = messages::findings(&scaling);
        scaling.advice = messages::advice(&scaling);
        scaling.notes = messages::notes(&scaling);
        scaling
    }

    /// The points that the law is about.
    pub fn in_law(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(|p| !p.crowded)
    }
}

impl Fitted {
    fn of(fit: &Fit) -> Fitted {
        let ends = |i: Interval| [i.low, i.high];
        let finite = |v: f64| v.is_finite().then_some(v);
        Fitted {
            lambda: fit.law.lambda,
            sigma: fit.law.sigma,
            kappa: fit.law.kappa,
            peak_n: fit.law.peak_n(),
            limit: fit.law.limit(),
            r2: fit.r2,
            lambda_ci95: ends(fit.lambda),
            sigma_ci95: ends(fit.sigma),
            kappa_ci95: ends(fit.kappa),
            peak_ci95: fit.law.peak().map(|_| ends(fit.peak).map(finite)),
        }
    }

    /// Its parameters alone.
    pub fn law(&self) -> crate::law::Usl {
        crate::law::Usl { lambda: self.lambda, sigma: self.sigma, kappa: self.kappa }
    }
}

/// Runs of all counts take as long as each other to this share, though each further thread takes a CPU of its own.
const SAME_TIME: f64 = 0.02;
/// A thread has taken a CPU of its own from this share of it on.
const OWN_CPU: f64 = 0.8;

/// Whether each run took the same time while the CPU time grew with the count, as where a program runs for a set time.
fn is_set_time(points: &[Point]) -> bool {
    let counting: Vec<&Point> = points.iter().filter(|p| !p.crowded).collect();
    let [first, .., last] = counting[..] else { return false };
    let times = || counting.iter().map(|p| p.elapsed_s);
    let (least, most) = (times().fold(f64::MAX, f64::min), times().fold(0.0, f64::max));
    most - least <= SAME_TIME * least && last.busy_cpus >= OWN_CPU * first.busy_cpus * last.n as f64 / first.n as f64
}

fn points(by_count: &BTreeMap<usize, Vec<&Run>>, about: &About) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for (&n, runs) in by_count {
        let median_of = |of: &dyn Fn(&Run) -> f64| median(runs.iter().map(|r| of(r)));
        let throughput = median_of(&Run::throughput);
        let (first, one) = points.first().map_or((n, throughput), |p| (p.n, p.throughput));
        let times = n as f64 / first as f64;
        let speedup = throughput / one;
        let busy_cpus = median_of(&|r| r.cpu_s() / r.elapsed_s);
        let crowded = n > about.cpus && busy_cpus >= CROWDED * about.cpus as f64;
        points.push(Point {
            n,
            throughput,
            low: runs.iter().map(|r| r.throughput()).fold(f64::MAX, f64::min),
            high: runs.iter().map(|r| r.throughput()).fold(0.0, f64::max),
            runs: runs.len(),
            speedup,
            efficiency: speedup / times,
            karp_flatt: (times > 1.0).then(|| (1.0 / speedup - 1.0 / times) / (1.0 - 1.0 / times)),
            cpu_s_per_unit: median_of(&|r| r.cpu_s() / r.work),
            busy_cpus,
            elapsed_s: median_of(&|r| r.elapsed_s),
            crowded: crowded && !about.beyond_cpus,
        });
    }
    points
}

/// Each run, weighted by the variance at its count: its own, drawn towards that of all counts, as three runs know
/// little of it.
fn observations(points: &[Point], by_count: &BTreeMap<usize, Vec<&Run>>) -> Vec<Observation> {
    let relative = |p: &Point| -> (f64, f64) {
        let runs = &by_count[&p.n];
        let mean = runs.iter().map(|r| r.throughput()).sum::<f64>() / runs.len() as f64;
        (runs.iter().map(|r| (r.throughput() / mean - 1.0).powi(2)).sum(), runs.len() as f64 - 1.0)
    };
    let of_law: Vec<&Point> = points.iter().filter(|p| !p.crowded).collect();
    let sums: Vec<(f64, f64)> = of_law.iter().map(|p| relative(p)).collect();
    let (squares, degrees) = sums.iter().fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
    // Without repeats, or without any spread, all count alike.
    let common = if squares > 0.0 { squares / degrees } else { 1e-4 };
    let mut all = Vec::new();
    for (point, (squares, degrees)) in of_law.iter().zip(sums) {
        let variance = (squares + PRIOR * common) / (degrees + PRIOR);
        let weight = 1.0 / (variance * point.throughput * point.throughput);
        all.extend(by_count[&point.n].iter().map(|r| Observation {
            n: point.n as f64,
            throughput: r.throughput(),
            weight,
        }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::Usl;

    fn about(cpus: usize) -> About {
        About { command: "run {n}".into(), axis: Axis::Threads, cpus, beyond_cpus: false }
    }

    /// Runs of a second each, `busy` CPUs of each thread's own.
    fn runs(law: &Usl, counts: &[usize], busy: f64) -> Vec<Run> {
        let run = |n: usize, times: f64| Run {
            n,
            elapsed_s: 1.0,
            user_s: busy * n as f64,
            system_s: 0.0,
            resident: None,
            work: times * law.at(n as f64),
        };
        counts.iter().flat_map(|&n| [run(n, 0.99), run(n, 1.0), run(n, 1.01)]).collect()
    }

    #[test]
    fn a_set_time_has_no_law() {
        let seconds = |n: usize, elapsed_s: f64, busy: f64| Run {
            n,
            elapsed_s,
            user_s: busy * elapsed_s,
            system_s: 0.0,
            resident: None,
            work: 1.0,
        };
        let counts = [1, 2, 4, 8];
        let timed = Scaling::new(about(8), &counts.map(|n| seconds(n, 1.0 + 0.001 * n as f64, n as f64)));
        assert!(timed.set_time && timed.usl.is_none() && timed.amdahl.is_none());
        assert!(timed.advice.contains("--work"), "{}", timed.advice);
        let (serial, linear) =
            (counts.map(|n| seconds(n, 1.0, 1.0)), counts.map(|n| seconds(n, 1.0 / n as f64, n as f64)));
        assert!(!Scaling::new(about(8), &serial).set_time && !Scaling::new(about(8), &linear).set_time);
    }

    #[test]
    fn points_have_their_figures() {
        let law = Usl { lambda: 100.0, sigma: 0.25, kappa: 0.0 };
        let scaling = Scaling::new(about(8), &runs(&law, &[1, 2, 4], 1.0));
        let p = &scaling.points[2];
        assert_eq!((p.n, p.runs, p.crowded), (4, 3, false));
        assert!((p.speedup - 4.0 / 1.75).abs() < 1e-9 && (p.efficiency - 1.0 / 1.75).abs() < 1e-9);
        // Karp and Flatt's metric is σ where Amdahl's law holds.
        assert!((p.karp_flatt.unwrap() - 0.25).abs() < 1e-9);
        assert!(p.low < p.throughput && p.throughput < p.high);
        assert!((p.cpu_s_per_unit - 4.0 / law.at(4.0)).abs() < 1e-9);
        assert!(scaling.usl.is_none() && (scaling.amdahl.as_ref().unwrap().sigma - 0.25).abs() < 0.02);
        assert!(scaling.notes.iter().any(|n| n.contains("four")), "{:?}", scaling.notes);
    }

    #[test]
    fn a_peak_is_found_and_said() {
        let law = Usl { lambda: 100.0, sigma: 0.1, kappa: 0.02 };
        let scaling = Scaling::new(about(16), &runs(&law, &[1, 2, 4, 8, 16], 1.0));
        let usl = scaling.usl.as_ref().unwrap();
        assert_eq!(usl.peak_n, law.peak_n());
        assert!((usl.sigma - 0.1).abs() < 0.01 && (usl.kappa - 0.02).abs() < 0.002, "{usl:?}");
        assert!(usl.sigma_ci95[0] <= usl.sigma && usl.sigma <= usl.sigma_ci95[1]);
        assert!(scaling.findings.iter().any(|f| f.contains("peak at 7")), "{:?}", scaling.findings);
        assert!(scaling.advice.contains("share"), "{}", scaling.advice);
    }

    #[test]
    fn busy_threads_beyond_the_cpus_are_no_part_of_the_law() {
        let law = Usl { lambda: 100.0, sigma: 0.0, kappa: 0.0 };
        let sweep = runs(&law, &[1, 2, 3, 4, 8], 1.0);
        let crowded = Scaling::new(about(2), &sweep);
        assert_eq!(crowded.points.iter().map(|p| p.crowded).collect::<Vec<_>>(), [false, false, true, true, true]);
        assert!(crowded.usl.is_none());
        assert!(Scaling::new(About { beyond_cpus: true, ..about(2) }, &sweep).usl.is_some());
        // Clients of a server that runs elsewhere.
        assert!(Scaling::new(about(2), &runs(&law, &[1, 2, 4, 8], 0.01)).usl.is_some());
    }

    #[test]
    fn what_scales_is_told_so() {
        let law = Usl { lambda: 100.0, sigma: 0.0, kappa: 0.0 };
        let scaling = Scaling::new(about(8), &runs(&law, &[1, 2, 4, 8], 1.0));
        assert!(scaling.advice.contains("scales"), "{}", scaling.advice);
        assert_eq!(scaling.usl.unwrap().peak_n, None);
    }
}
