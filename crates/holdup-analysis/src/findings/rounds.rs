//! Rounds of a thread, and whether each takes longer than the last.
//!
//! A round lasts from the end of a thread's wait of a kind to the beginning of its next one of that kind; its other waits
//! within it are left out. A server's round is what it does between two waits for input, a writer's what it does between
//! two waits for the disk. The middle of a run is no evidence of growth, nor is a slow first round: what is asked is
//! whether the means of many consecutive stretches rise, by Kendall's τ. Where a few long rounds
//! lie between many short ones, in any proportion, the means say little: then it is the longest of each stretch.

use holdup_base::stats::median;
use holdup_trace::ThreadIdx;
use rustc_hash::FxHashMap;

use crate::classify::WaitKind;
use crate::intervals::Wait;

/// Stretches of a series at most; at least, to tell anything.
const MOST: usize = 32;
const LEAST: usize = 8;
/// Rounds of which anything is said.
const ROUNDS: u32 = 16;
/// The last eighth is so much longer than the first.
const FACTOR: f64 = 1.5;
/// Kendall's τ from which on it rises.
const STEADY: f64 = 0.8;
/// Threads of which rounds are kept.
const THREADS: usize = 1 << 16;

/// Consecutive values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    count: u32,
    sum: u64,
    longest: u64,
}

impl Stretch {
    fn of(value: u64) -> Stretch {
        Stretch { count: 1, sum: value, longest: value }
    }

    fn add(&mut self, other: Stretch) {
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.longest = self.longest.max(other.longest);
    }
}

/// Values in their order, in at most [`MOST`] stretches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Series {
    stretches: Vec<Stretch>,
    /// So many values make a stretch: 2 to this power.
    power: u32,
}

/// What grew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grown {
    /// The mean value.
    Mean,
    /// The longest of each stretch.
    Longest,
}

/// From where to where it grew, and over how many values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Growth {
    pub(super) what: Grown,
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) count: u32,
}

impl Series {
    /// Adds the next value. Amortised O(1).
    fn push(&mut self, value: u64) {
        let full = 1u32 << self.power;
        match self.stretches.last_mut() {
            Some(last) if last.count < full => last.add(Stretch::of(value)),
            _ => {
                self.stretches.push(Stretch::of(value));
                self.shorten();
            }
        }
    }

    /// Puts the values of an earlier part before its own.
    fn absorb(&mut self, mut earlier: Series) {
        while self.power < earlier.power {
            self.halve();
        }
        while earlier.power < self.power {
            earlier.halve();
        }
        earlier.stretches.append(&mut self.stretches);
        self.stretches = earlier.stretches;
        self.shorten();
    }

    /// Joins stretches until there are at most [`MOST`].
    fn shorten(&mut self) {
        while self.stretches.len() > MOST && self.power < 31 {
            self.halve();
        }
    }

    /// Two stretches become one.
    fn halve(&mut self) {
        let joined = self.stretches.chunks(2).map(|pair| {
            let mut joined = pair[0];
            pair[1..].iter().for_each(|second| joined.add(*second));
            joined
        });
        self.stretches = joined.collect();
        self.power += 1;
    }

    /// All values together.
    fn sum(&self) -> u64 {
        self.stretches.iter().fold(0, |sum, s| sum.saturating_add(s.sum))
    }

    /// Whether and how it grows; O([`MOST`]²).
    fn growth(&self) -> Option<Growth> {
        let count = self.stretches.iter().map(|s| s.count).sum();
        // What was cut off at a border is too short to have a mean of its own.
        let mut long = self.stretches.clone();
        long.retain(|s| 2 * u64::from(s.count) >= 1 << self.power);
        if count < ROUNDS || long.len() < LEAST {
            return None;
        }
        let means: Vec<f64> = long.iter().map(|s| s.sum as f64 / f64::from(s.count)).collect();
        let longest: Vec<f64> = long.iter().map(|s| s.longest as f64).collect();
        [(Grown::Mean, means), (Grown::Longest, longest)]
            .into_iter()
            .find_map(|(what, values)| rise(&values).map(|(from, to)| Growth { what, from, to, count }))
    }
}

/// The medians of the first and of the last eighth of at least [`LEAST`] values, if these rise steadily. A single one that stands out, such as
/// a slow start, changes neither them nor τ by much.
fn rise(values: &[f64]) -> Option<(f64, f64)> {
    let eighth = values.len() / 8;
    let of = |part: &[f64]| median(part.iter().copied());
    let (from, to) = (of(&values[..eighth]), of(&values[values.len() - eighth..]));
    (to >= FACTOR * from && kendall(values) >= STEADY).then_some((from, to))
}

/// Kendall's rank correlation τ of the values with their places (Kendall 1938), ties as neither.
fn kendall(values: &[f64]) -> f64 {
    let pairs = values.len() * (values.len() - 1) / 2;
    let rising =
        |(i, a): (usize, &f64)| values[i + 1..].iter().map(|b| i64::from(b > a) - i64::from(b < a)).sum::<i64>();
    values.iter().enumerate().map(rising).sum::<i64>() as f64 / pairs.max(1) as f64
}

/// Whether values rise steadily in their order.
pub(super) fn grows(values: impl Iterator<Item = u64>) -> bool {
    let mut series = Series::default();
    values.for_each(|value| series.push(value));
    series.growth().is_some_and(|growth| growth.what == Grown::Mean)
}

/// Kinds of waits.
const KINDS: usize = WaitKind::Unknown as usize + 1;

/// The clock of a thread: how long it has waited in all, and when and at which of that its last wait of a kind ended.
#[derive(Debug, Default)]
struct Clock {
    waited: u64,
    last: [Option<(u64, u64)>; KINDS],
}

/// The rounds of threads, by the kind of wait between them.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    series: FxHashMap<(ThreadIdx, WaitKind), Series>,
}

impl Rounds {
    /// From the waits of one part, of the first [`THREADS`] threads in it. What crosses its borders is left out. O(waits).
    pub(super) fn of<'a>(waits: impl Iterator<Item = &'a Wait>) -> Rounds {
        let mut rounds = Rounds::default();
        let mut clocks: FxHashMap<ThreadIdx, Clock> = FxHashMap::default();
        for wait in waits {
            if clocks.len() >= THREADS && !clocks.contains_key(&wait.thread) {
                continue;
            }
            let clock = clocks.entry(wait.thread).or_default();
            // A wait that goes on after a time-out is one wait.
            if let Some((ended, waited)) = clock.last[wait.kind as usize].take() {
                let work = wait.start.saturating_sub(ended).saturating_sub(clock.waited - waited);
                rounds.series.entry((wait.thread, wait.kind)).or_default().push(work);
            }
            clock.waited = clock.waited.saturating_add(wait.length());
            if wait.goes_on == 0 && !wait.open {
                clock.last[wait.kind as usize] = Some((wait.resumed, clock.waited));
            }
        }
        rounds
    }

    /// Adds what an earlier part tells.
    pub(super) fn absorb(&mut self, earlier: Rounds) {
        for (key, series) in earlier.series {
            self.series.entry(key).or_default().absorb(series);
        }
    }

    /// Those of a thread that grow and make up most of its work.
    pub(super) fn growing(&self, is_it: impl Fn(ThreadIdx) -> bool, least: f64) -> Option<(WaitKind, Growth)> {
        let own = self.series.iter().filter(|((thread, _), _)| is_it(*thread));
        let growing = own
            .filter(|(_, s)| s.sum() as f64 >= least)
            .filter_map(|((_, kind), s)| Some((s.sum(), *kind, s.growth()?)));
        growing.max_by_key(|(sum, kind, _)| (*sum, *kind)).map(|(_, kind, growth)| (kind, growth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: impl IntoIterator<Item = u64>) -> Series {
        let mut series = Series::default();
        values.into_iter().for_each(|v| series.push(v));
        series
    }

    /// A value between 0 and 1 that looks like chance.
    fn chance(i: u64) -> f64 {
        (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1u64 << 53) as f64
    }

    #[test]
    fn what_grows_with_its_number_is_told() {
        let growth = series((0..1000).map(|i| 100 + 10 * i)).growth().unwrap();
        assert_eq!(growth.count, 1000);
        assert!((growth.from - 600.0).abs() < 200.0 && (growth.to - 9_600.0).abs() < 200.0, "{growth:?}");
        // The first round had to read its data from disk.
        let slow_start = series((0..1000).map(|i| if i == 0 { 300_000 } else { 100 + 10 * i })).growth();
        assert!(slow_start.is_some_and(|growth| growth.from < 2_000.0), "{slow_start:?}");
        // Every tenth round is the one that matters.
        let mixed = (0..4000).map(|i| if i % 10 == 0 { 100 * i } else { 50 + (90.0 * chance(i)) as u64 });
        assert_eq!(series(mixed).growth().unwrap().what, Grown::Mean);
        // Some rounds matter, between more or fewer that do not.
        let few = (0..8000).map(|i| if chance(i / 50) * chance(i) < 0.01 { 1000 + 100 * i } else { 50 });
        let growth = series(few).growth().unwrap();
        assert!(growth.what == Grown::Longest && growth.from < 1e5 && growth.to > 7e5, "{growth:?}");
    }

    #[test]
    fn what_does_not_grow_is_not() {
        let constant = (0..1000).map(|_| 500);
        assert_eq!(series(constant).growth(), None);
        for seed in 0..200 {
            let noise = (0..997).map(|i| (1e6 * chance(1000 * seed + i)) as u64);
            assert_eq!(series(noise).growth(), None, "{seed}");
        }
        // A slow start, a step, a fall, a hill.
        assert_eq!(series((0..1000).map(|i| if i == 0 { 1 << 40 } else { 500 })).growth(), None);
        assert_eq!(series((0..1000).map(|i| if i < 500 { 100 } else { 200 })).growth(), None);
        assert_eq!(series((0..1000).rev()).growth(), None);
        assert_eq!(series((0..1000u64).map(|i| i.min(1000 - i))).growth(), None);
        // Too few to tell.
        assert_eq!(series(0..15).growth(), None);
    }

    /// In whichever parts the values come, the sum and the growth are the same.
    #[test]
    fn parts_make_one_series() {
        for cut in [1, 7, 100, 500, 990] {
            let (earlier, mut later) = (series(0..cut), series(cut..1000));
            later.absorb(earlier);
            assert_eq!(later.sum(), series(0..1000).sum());
            assert!(later.stretches.len() <= MOST);
            let growth = later.growth().unwrap();
            assert_eq!(growth.count, 1000, "{cut}");
            assert!(growth.from < 100.0 && growth.to > 900.0, "{cut}: {growth:?}");
        }
    }
}
