//! What runs while other threads have nothing to do: serial parts, one that works while the others wait for it, uneven shares.
//!
//! With n threads there are n places at work. One that nobody fills (no thread runs there, could run, or waits for a lock, a
//! disk, a time or the world outside) is lost, and charged to what runs meanwhile:
//!
//! ```text
//!   thread 1   load_model ██████ work ████████      2 threads: while `load_model` runs, one place is lost.
//!   thread 2                     work ████████      1 thread: none is.
//! ```

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::diff::facts::{Chain, Facts, Place};
use crate::diff::items::Sides;
use crate::diff::series::{Disturbance, Series};

/// A function that runs alone for less than this share of its time is not what others lack.
pub(super) const MOSTLY: f64 = 0.5;

/// Thread time lost while a chain of functions ran.
pub(super) type Lost = BTreeMap<Chain, Series>;

/// Places at work that nobody filled, by what ran meanwhile, for both numbers of threads. O(chains).
pub(super) fn lost(sides: &Sides, n: [usize; 2]) -> Lost {
    sides.collect_by_side(|side, facts, add| {
        let free = |at: &(usize, Chain)| n[side].saturating_sub(at.0) as f64;
        let all = facts.at_work.iter().filter(|(at, _)| at.0 < n[side]);
        all.for_each(|(at, time)| add(at.1.clone(), free(at) * time.elapsed_ns));
    })
}

/// Takes out what a disturbance explains: threads whose CPUs were taken from them are done later than the others, and run
/// the last part alone. What mostly runs alone is no such end. O(chains).
pub(super) fn settle(lost: &mut Lost, sides: &Sides, n: [usize; 2], by: Disturbance) {
    let alone = alone(sides.after, n[1]);
    let is_end = |chain: &Chain| chain.places().all(|place| alone.get(&place).is_none_or(|share| *share < MOSTLY));
    let ends: f64 = lost.iter().filter(|(chain, _)| is_end(chain)).map(|(_, series)| series.now()).sum();
    let could = sides.total(|f| n[1] as f64 * f.elapsed_ns).now() * (by.neighbours + by.stolen);
    if !by.is_quiet() && ends <= could {
        lost.retain(|chain, _| !is_end(chain));
    }
}

/// The share of each function's CPU time, at the larger number, in which places at work were free.
pub(super) fn alone(runs: &[Facts], n: usize) -> BTreeMap<Place, f64> {
    let mut times: BTreeMap<Place, [f64; 2]> = BTreeMap::new();
    for ((threads, chain), time) in runs.iter().flat_map(|facts| &facts.at_work) {
        for place in chain.places() {
            let [free, all] = times.entry(place).or_default();
            *free += if *threads < n { time.ran_ns } else { 0.0 };
            *all += time.ran_ns;
        }
    }
    times.into_iter().map(|(place, [free, all])| (place, free / all.max(1.0))).collect()
}

impl Chain {
    pub(super) fn has(&self, place: &Place) -> bool {
        self.process == place.process && self.functions.contains(&place.function)
    }

    pub(super) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.functions
            .iter()
            .map(|function: &Rc<str>| Place { process: self.process.clone(), function: function.clone() })
    }
}
