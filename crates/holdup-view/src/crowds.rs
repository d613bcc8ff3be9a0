//! What groups of many threads did, added up by stretches of time: a wide window then asks none of their threads.
//!
//! A group is kept with a stretch for [`RUNS_A_STRETCH`] runs of its threads, so that all groups together take less than the
//! lanes that they are made from; windows that are too narrow for its stretches touch few of its runs.

use holdup_analysis::lanes::Doing;
use holdup_trace::ThreadIdx;
use rustc_hash::FxHashMap;

use crate::base::Base;
use crate::lane::{Lane, Run, Sums};
use crate::people::{People, Row};
use crate::window::Grid;

/// Runs of its threads for which a group has one stretch. A stretch takes as much room as 13 runs, and a thread is in two groups.
const RUNS_A_STRETCH: usize = 64;
/// A group of fewer runs is added up when it is asked for: within a millisecond.
const FEWEST_RUNS: usize = 1 << 16;

/// One group.
struct Crowd {
    /// Nanoseconds in a stretch; the last is shorter.
    width: u64,
    /// Where the last one ends.
    end: u64,
    /// Nanoseconds of all threads by stretch.
    sums: Vec<Sums>,
}

/// The groups of many runs.
pub(crate) struct Crowds(FxHashMap<Row, Crowd>);

/// How a run is shared out: its state with its share, and the share of another state in which a CPU was used.
pub(crate) fn shares(run: Run) -> (usize, f32, f32) {
    let (state, share, cpu) = (run.state(), run.share(), run.run());
    // What it did besides is known only of the CPU.
    let besides = if state == Doing::Runs as usize || state == Doing::Spins as usize {
        (cpu - share).max(0.0)
    } else {
        cpu.min(1.0 - share)
    };
    (state, share, besides)
}

impl Crowds {
    /// O(runs), for each kind of group that a thread is in.
    pub(crate) fn new(people: &People, base: &Base) -> Self {
        let buckets = base.usage.busy.len();
        let mut crowds = FxHashMap::default();
        let mut add = |row: Row, threads: &mut dyn Iterator<Item = ThreadIdx>| {
            let lanes: Vec<&Lane> = threads.filter_map(|t| base.lanes.get(t.index())).collect();
            let runs: usize = lanes.iter().map(|lane| lane.runs()).sum();
            if lanes.len() > 1 && runs >= FEWEST_RUNS {
                crowds.insert(row, Crowd::new(&lanes, buckets, base.width, runs / RUNS_A_STRETCH));
            }
        };
        for (p, program) in people.programs.iter().enumerate() {
            add(Row::Program(p), &mut program.names.iter().flat_map(|n| n.threads.iter().copied()));
            // A program of one kind of threads has no row for them.
            for (n, names) in program.names.iter().enumerate().filter(|_| program.names.len() > 1) {
                add(Row::Names(p, n), &mut names.threads.iter().copied());
            }
        }
        Crowds(crowds)
    }

    /// Adds up what the group did; `false` if it is not kept, or not as finely as the window's pixels.
    pub(crate) fn add(&self, row: Row, grid: Grid, pixels: &mut [Sums]) -> bool {
        let Some(crowd) = self.0.get(&row).filter(|crowd| grid.width() >= crowd.width as f64) else { return false };
        crowd.add(grid, pixels);
        true
    }

    /// Bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        self.0.values().map(|crowd| crowd.sums.len() * size_of::<Sums>()).sum()
    }
}

impl Crowd {
    /// Of lanes of so many buckets of `width` nanoseconds; with at most `most` stretches.
    fn new(lanes: &[&Lane], buckets: usize, width: u64, most: usize) -> Self {
        let each = buckets.div_ceil(most.max(1)).next_power_of_two();
        let mut adder = Adder::new(buckets.div_ceil(each), each);
        for lane in lanes {
            for (run, from, to) in lane.within(0, buckets) {
                let (state, share, besides) = shares(run);
                adder.add(from, to, state, share);
                if besides > 0.0 {
                    adder.add(from, to, Doing::Runs as usize, besides);
                }
            }
        }
        Crowd { width: width * each as u64, end: width * buckets as u64, sums: adder.finish(width) }
    }

    fn add(&self, grid: Grid, pixels: &mut [Sums]) {
        let (first, behind) = ((grid.from / self.width) as usize, grid.to.div_ceil(self.width) as usize);
        for (i, sums) in self.sums.iter().enumerate().take(behind).skip(first) {
            let from = i as u64 * self.width;
            let to = (from + self.width).min(self.end);
            grid.each(from, to, |px, ns| {
                let share = ns / (to - from) as f32;
                pixels[px].iter_mut().zip(sums).for_each(|(to, sum)| *to += sum * share);
            });
        }
    }
}

/// Adds up runs in buckets. What fills stretches as a whole is written down where it begins and ends, so that a thread that
/// sleeps through all of them costs as much as one that sleeps through two.
struct Adder {
    /// Buckets in a stretch.
    each: usize,
    /// By stretch and state, in buckets: what lies there alone.
    here: Vec<[f64; Doing::COUNT]>,
    /// What begins there, less what ends there, of all that fills stretches.
    from_here: Vec<[f64; Doing::COUNT]>,
}

impl Adder {
    fn new(stretches: usize, each: usize) -> Self {
        let nothing = || vec![[0.0; Doing::COUNT]; stretches];
        Adder { each, here: nothing(), from_here: nothing() }
    }

    #[inline]
    fn add(&mut self, from: usize, to: usize, state: usize, share: f32) {
        let (share, each) = (f64::from(share), self.each);
        let (first, last) = (from / each, (to - 1) / each);
        if first == last {
            self.here[first][state] += (to - from) as f64 * share;
            return;
        }
        self.here[first][state] += ((first + 1) * each - from) as f64 * share;
        self.here[last][state] += (to - last * each) as f64 * share;
        if last > first + 1 {
            self.from_here[first + 1][state] += each as f64 * share;
            self.from_here[last][state] -= each as f64 * share;
        }
    }

    /// In nanoseconds.
    fn finish(self, width: u64) -> Vec<Sums> {
        let mut whole = [0.0; Doing::COUNT];
        let stretches = self.here.iter().zip(&self.from_here);
        stretches
            .map(|(here, from_here)| {
                whole.iter_mut().zip(from_here).for_each(|(sum, change)| *sum += change);
                std::array::from_fn(|state| ((here[state] + whole[state]) * width as f64) as f32)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::Maker;
    use crate::lanes::add_lane;

    const WIDTH: u64 = 10;
    const BUCKETS: usize = 1000;

    fn lanes() -> Vec<Lane> {
        let mut seed = 1u64;
        let mut next = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        let doing = [Doing::Runs, Doing::Lock, Doing::Spins, Doing::Home];
        let mut lane = |longest: u64| {
            let (mut maker, mut now) = (Maker::new(), next(50));
            while now + 1 < BUCKETS as u64 * WIDTH {
                let to = (now + 1 + next(longest)).min(BUCKETS as u64 * WIDTH);
                maker.add(now, to, doing[next(4) as usize], WIDTH);
                now = to;
            }
            maker.finish(WIDTH)
        };
        (0..30).map(|i| lane(if i % 3 == 0 { 4000 } else { 25 })).collect()
    }

    #[test]
    fn a_group_is_the_sum_of_its_threads() {
        let lanes = lanes();
        let all: Vec<&Lane> = lanes.iter().collect();
        for (most, stretches) in [(1000, 1000), (100, 63), (3, 2)] {
            let crowd = Crowd::new(&all, BUCKETS, WIDTH, most);
            assert_eq!(crowd.sums.len(), stretches);
            // Windows that end within stretches, too, as long as those lie within one pixel.
            for (from, to) in [(0, BUCKETS as u64 * WIDTH), (0, crowd.width), (crowd.width, 2 * crowd.width)] {
                let grid = Grid { from, to: to.min(BUCKETS as u64 * WIDTH), px: 1 };
                let (mut sums, mut wanted) = (vec![[0.0; Doing::COUNT]; 1], vec![[0.0; Doing::COUNT]; 1]);
                crowd.add(grid, &mut sums);
                lanes.iter().for_each(|lane| add_lane(lane, WIDTH, grid, &mut wanted));
                for (state, (got, wanted)) in sums[0].iter().zip(&wanted[0]).enumerate() {
                    assert!((got - wanted).abs() <= 0.001 * wanted + 0.5, "{most} {from} {state}: {got} {wanted}");
                }
            }
        }
    }
}
