//! Interleaved rounds: each case once, then all again, so that a disturbance hits all alike.

use super::case::{Case, Work};
use super::pool::Pool;
use super::{clock, stats};
use crate::result::{Costs, Point, Waits};

/// A batch is as many operations as take this long: reading the clock after each costs about 0.1 %.
const BATCH_NS: u64 = 20_000;
/// How many rounds are tried, at most, for each clean one wanted.
const TRIES: usize = 4;

/// A case with rounds of its own length gets so many times fewer of them.
const FEWER: usize = 5;
/// On a loaded machine rounds take longer: after so many times the planned length no further one is tried.
const PATIENCE: u64 = 4;

/// How long and how often.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    /// Length of a round in nanoseconds.
    pub round_ns: u64,
    /// Clean rounds wanted for each case.
    pub rounds: usize,
}

/// Rounds that each case gets, however slow the machine.
const MIN_ROUNDS: usize = 2;

impl Schedule {
    /// Clean rounds wanted for a case.
    fn wanted(&self, case: &Case) -> usize {
        if case.round_ns.is_some() { self.rounds.div_ceil(FEWER) } else { self.rounds }
    }

    /// Planned length of all rounds in nanoseconds.
    fn length(&self, cases: &[Case]) -> u64 {
        cases.iter().map(|c| self.wanted(c) as u64 * c.round_ns.unwrap_or(self.round_ns)).sum()
    }
}

/// Length of the round that splits CPU time into user and kernel mode: as long as a case's other rounds together, but
/// from 10 to 25 ticks of a kernel that has 250 a second.
const SPLIT_NS: (u64, u64) = (40_000_000, 100_000_000);
/// From one tick to the next, where a kernel has 250 a second.
const TICK_NS: f64 = 4e6;

/// The rounds of one case.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Of each round, the workers that count.
    pub rounds: Vec<Vec<Work>>,
    lost: Vec<u64>,
    /// More workers than CPUs: they preempt each other, and that is part of what is measured.
    pub crowded: bool,
    /// The share of CPU time in kernel mode, where it was asked for.
    in_kernel: Option<Share>,
}

/// A share of CPU time, seen at some ticks.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    of_all: f64,
    /// Another split may differ by so much: two standard deviations of a share of that many ticks, and one tick.
    unsure: f64,
}

impl Share {
    fn of(part: f64, all: f64) -> Share {
        let (share, ticks) = (part / all.max(1.0), (all / TICK_NS).max(1.0));
        Share { of_all: share, unsure: 2.0 * (share * (1.0 - share) / ticks).sqrt() + 1.0 / ticks }
    }
}

/// Measures all cases, round by round. `tick` is told how much of the work is done, from 0 to 1.
pub fn measure(
    pool: &mut Pool<Work>,
    cases: &mut [Case],
    schedule: Schedule,
    mut tick: impl FnMut(f64),
) -> Vec<Measured> {
    let crowded = |case: &Case| case.moving || case.threads > case.cpus.unwrap_or(pool.cpus()).min(pool.cpus());
    let mut all: Vec<Measured> =
        cases.iter().map(|case| Measured { crowded: crowded(case), ..Measured::default() }).collect();
    let mut apart: Vec<Option<Pool<Work>>> = cases.iter().map(|case| case.apart.then(|| pool.like_this())).collect();
    let mut preparing = 0;
    for (case, apart) in cases.iter_mut().zip(&mut apart) {
        let begin = clock::now_ns();
        let length = schedule.round_ns.max(1_000_000);
        let warm_up = case.warm_up(length, BATCH_NS);
        let works = apart.as_mut().unwrap_or(pool).round_on(case.cpus.unwrap_or(usize::MAX), case.threads, warm_up);
        case.batch = works.iter().map(|w| w.batch.max(1)).min().unwrap_or(1);
        if case.prepare.is_some() {
            preparing += schedule.wanted(case) as u64 * (clock::now_ns() - begin).saturating_sub(length);
        }
    }
    let end = clock::now_ns() + 1_000_000_000 + PATIENCE * (schedule.length(cases) + preparing);
    for turn in 0..schedule.rounds * TRIES {
        let mut unfinished = false;
        for ((case, measured), apart) in cases.iter().zip(&mut all).zip(&mut apart) {
            if measured.clean() < schedule.wanted(case) && (turn < MIN_ROUNDS || clock::now_ns() < end) {
                measured.add_round(apart.as_mut().unwrap_or(pool), case, schedule.round_ns);
                unfinished = true;
            }
        }
        if !unfinished {
            break;
        }
        tick(turn as f64 / schedule.rounds as f64);
    }
    for (case, measured) in cases.iter().zip(&mut all).filter(|(case, _)| case.split) {
        let length = schedule.wanted(case) as u64 * case.round_ns.unwrap_or(schedule.round_ns);
        measured.in_kernel = Some(share_in_kernel(pool, case, length.clamp(SPLIT_NS.0, SPLIT_NS.1)));
    }
    all
}

/// In new threads: the kernel splits a thread's CPU time by all the ticks that it ever saw.
fn share_in_kernel(pool: &Pool<Work>, case: &Case, length_ns: u64) -> Share {
    let works = pool.like_this().round_on(case.cpus.unwrap_or(usize::MAX), case.threads, case.round(length_ns));
    let counted = &works[..works.len() - case.company];
    let (user, system) = (total(counted, |w| w.usage.user), total(counted, |w| w.usage.system));
    Share::of(system, user + system)
}

impl Measured {
    /// From rounds made elsewhere.
    pub fn from_rounds(rounds: Vec<Vec<Work>>, crowded: bool) -> Self {
        Measured { lost: vec![0; rounds.len()], rounds, crowded, in_kernel: None }
    }

    fn add_round(&mut self, pool: &mut Pool<Work>, case: &Case, length_ns: u64) {
        let before = case.value.as_ref().map_or(0, |value| value());
        let length_ns = case.round_ns.unwrap_or(length_ns);
        let mut works = pool.round_on(case.cpus.unwrap_or(usize::MAX), case.threads, case.round(length_ns));
        works.truncate(case.threads - case.company);
        let ops: u64 = works.iter().map(|w| w.ops).sum();
        let after = case.value.as_ref().map_or(ops, |value| value());
        self.lost.push(ops.saturating_sub(after.wrapping_sub(before)));
        self.rounds.push(works);
    }

    fn is_clean(&self, round: &[Work]) -> bool {
        self.crowded || round.iter().all(|w| w.usage.undisturbed(w.elapsed / 20))
    }

    /// How many rounds no worker was preempted in.
    pub fn clean(&self) -> usize {
        self.rounds.iter().filter(|r| self.is_clean(r)).count()
    }

    fn clean_rounds(&self) -> impl Iterator<Item = &Vec<Work>> {
        self.rounds.iter().filter(|r| self.is_clean(r))
    }

    /// Nanoseconds for each operation of a thread; `None` without a clean round. With more threads than CPUs it is the
    /// CPU time: elapsed time would be the scheduler's.
    pub fn point(&self, x: f64) -> Option<Point> {
        let time = |w: &Work| if self.crowded { w.cpu } else { w.elapsed };
        self.point_of(x, |round| total(round, time) / total(round, |w| w.ops))
    }

    /// CPU time for each operation in user or in kernel mode; `None` where it was not split.
    pub fn split_point(&self, x: f64, in_kernel: bool) -> Option<Point> {
        let Share { of_all, unsure } = self.in_kernel?;
        let share = if in_kernel { of_all } else { 1.0 - of_all };
        let cpu = self.point_of(x, |round| total(round, |w| w.cpu) / total(round, |w| w.ops).max(1.0))?;
        Some(Point {
            median: cpu.median * share,
            low: (cpu.low * share).min(cpu.median * (share - unsure).max(0.0)),
            high: (cpu.high * share).max(cpu.median * (share + unsure).min(1.0)),
            costs: None,
            waits: None,
            ..cpu
        })
    }

    /// The share of updates that were lost, in percent.
    pub fn lost_point(&self, x: f64) -> Option<Point> {
        let rounds = self.rounds.iter().zip(&self.lost).filter(|(r, _)| self.is_clean(r));
        let shares = rounds.map(|(round, lost)| 100.0 * *lost as f64 / total(round, |w| w.ops).max(1.0));
        (self.clean() > 0).then(|| self.plain(x, shares))
    }

    /// Any figure of a round, with the costs of an operation beside it.
    pub fn point_of(&self, x: f64, figure: impl Fn(&[Work]) -> f64) -> Option<Point> {
        let mut point = (self.clean() > 0).then(|| self.plain(x, self.clean_rounds().map(|r| figure(r))))?;
        point.costs = Some(self.costs());
        point.waits = self.waits();
        Some(point)
    }

    fn plain(&self, x: f64, values: impl Iterator<Item = f64>) -> Point {
        let clean = if self.crowded { 0 } else { self.clean() };
        Point { n: self.rounds.len(), clean, crowded: self.crowded, ..Point::of(x, values) }
    }

    fn costs(&self) -> Costs {
        let all: Vec<&Work> = self.clean_rounds().flatten().collect();
        let sum = |figure: fn(&Work) -> u64| all.iter().map(|w| figure(w) as f64).sum::<f64>();
        let ops = sum(|w| w.ops).max(1.0);
        let cpu_ns = sum(|w| w.cpu) / ops;
        Costs {
            cpu_ns,
            user_ns: self.in_kernel.map(|share| cpu_ns * (1.0 - share.of_all)),
            system_ns: self.in_kernel.map(|share| cpu_ns * share.of_all),
            elapsed_ns: sum(|w| w.elapsed) / ops,
            switches: sum(|w| w.usage.voluntary) / ops,
            preemptions: sum(|w| w.usage.involuntary) / ops,
            throughput: stats::median(self.clean_rounds().map(|r| rate(r))),
            fairness: stats::median(self.clean_rounds().map(|r| even(r))),
        }
    }

    fn waits(&self) -> Option<Waits> {
        let waits = stats::sorted(self.clean_rounds().flatten().flat_map(|w| &w.waits).map(|&w| w as f64));
        let at = |q| stats::quantile_of_sorted(&waits, q);
        (!waits.is_empty()).then(|| Waits { p50_ns: at(0.5), p99_ns: at(0.99), max_ns: at(1.0), n: waits.len() })
    }
}

fn total(round: &[Work], figure: impl Fn(&Work) -> u64) -> f64 {
    round.iter().map(|w| figure(w) as f64).sum()
}

/// Operations per second of all workers together.
fn rate(round: &[Work]) -> f64 {
    round.iter().map(|w| w.ops as f64 / (w.elapsed as f64 / 1e9)).sum()
}

fn even(round: &[Work]) -> f64 {
    let shares: Vec<f64> = round.iter().map(|w| w.ops as f64 / w.elapsed as f64).collect();
    stats::fairness(&shares)
}

impl Point {
    /// A point from the values of clean rounds.
    pub fn of(x: f64, values: impl IntoIterator<Item = f64>) -> Point {
        let values: Vec<f64> = values.into_iter().collect();
        let stats::Spread { median, low, high } = stats::spread(values.iter().copied());
        Point { x, median, low, high, n: values.len(), clean: values.len(), ..Point::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::affinity;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn every_operation_is_counted_and_lost_ones_are_told() {
        let counter = Arc::new(AtomicU64::new(0));
        let (add, read) = (Arc::clone(&counter), Arc::clone(&counter));
        let honest = Case::new("all", 2, move |_, n| (0..n).for_each(|_| _ = add.fetch_add(1, Ordering::Relaxed)));
        let none = Case::new("none", 1, |_, n| _ = std::hint::black_box(n)).counting(|| 0);
        let mut cases = [honest.counting(move || read.load(Ordering::Relaxed)), none];
        let mut pool = Pool::new(affinity::allowed());
        let measured = measure(&mut pool, &mut cases, Schedule { round_ns: 200_000, rounds: 3 }, |_| {});
        assert!(measured[0].lost.iter().all(|&lost| lost == 0));
        // Also of rounds that do not count, which on a busy machine may be all of them, and are tried again.
        let none = &measured[1];
        let all_lost =
            |(round, lost): (&Vec<Work>, &u64)| *lost > 0 && *lost == round.iter().map(|w| w.ops).sum::<u64>();
        assert!(none.rounds.len() >= 3 && none.rounds.iter().zip(&none.lost).all(all_lost), "{:?}", none.lost);
        let rounds = vec![vec![Work { ops: 10, elapsed: 1000, ..Work::default() }]];
        let some = Measured { lost: vec![4], rounds, ..Measured::default() };
        assert_eq!(some.lost_point(1.0).map(|p| p.median), Some(40.0));
    }

    #[test]
    fn a_split_tells_how_sure_it_is() {
        let half = Share::of(40e6, 80e6);
        assert_eq!(half.of_all, 0.5);
        assert!((half.unsure - (1.0 / 20f64.sqrt() + 0.05)).abs() < 1e-9);
        assert_eq!(Share::of(0.0, 0.0).of_all, 0.0);
        let rounds = vec![vec![Work { ops: 10, cpu: 1000, elapsed: 1000, ..Work::default() }]];
        let measured = Measured { lost: vec![0], rounds, in_kernel: Some(half), ..Measured::default() };
        let kernel = measured.split_point(1.0, true).expect("a split");
        assert!(kernel.median == 50.0 && kernel.low < 25.0 && kernel.high > 75.0);
    }

    #[test]
    fn preempted_rounds_do_not_count() {
        let work = |elapsed, involuntary| {
            let usage = crate::harness::usage::Usage { involuntary, ..Default::default() };
            vec![Work { ops: 10, elapsed, usage, ..Work::default() }]
        };
        let rounds = vec![work(100, 0), work(90_000, 1), work(100, 0)];
        let measured = Measured { lost: vec![0; 3], rounds, ..Measured::default() };
        let point = measured.point(1.0).expect("two clean rounds");
        assert_eq!((point.median, point.n, point.clean), (10.0, 3, 2));
        let none = Measured { rounds: vec![work(1, 1)], ..Measured::default() };
        assert!(none.point(1.0).is_none());
    }
}
