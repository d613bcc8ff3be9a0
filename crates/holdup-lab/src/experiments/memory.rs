//! How far memory is: chains of dependent loads through areas of growing size.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::Result;
use crate::experiment::{Experiment, Found, Session};
use crate::harness::affinity;
use crate::harness::case::Case;
use crate::harness::random::Random;
use crate::knobs::{CPUS, Kind, Knob, ROUND_US, ROUNDS};
use crate::result::{Outcome, Series, Verdict};
use crate::topology;

/// Latency of L1, L2, L3, memory, and memory of another NUMA node.
pub const EXPERIMENT: Experiment = Experiment {
    name: "memory",
    about: "latency of the caches and of memory, also of another NUMA node's, by the size of the data",
    axis: "size, KiB",
    knobs: &[SIZES_KB, CPUS, ROUNDS, ROUND_US],
    run,
};

const SIZES_KB: Knob = Knob {
    name: "sizes_kb",
    about: "sizes of the data in KiB",
    kind: Kind::Counts { min: 4.0, max: 4_194_304.0 },
    quick: "16,256,8192,131072",
    full: "16,32,64,256,512,1024,4096,8192,16384,32768,65536,131072,524288",
};

/// One cache line that names the next by its address, as lists and trees do: computing it from an index would be part of
/// each load's latency.
#[repr(align(64))]
struct Line(AtomicPtr<Line>);

/// A cycle through all lines of an area.
struct Chain {
    lines: Vec<Line>,
    /// Where the last loads have come to.
    at: AtomicPtr<Line>,
}

/// The last-level cache where the kernel does not tell its size, in bytes.
const CACHE: usize = 32 << 20;
/// Of chains that no cache holds, rounds are this long in nanoseconds, and fewer: getting ready takes longer than they do.
const LONG_NS: u64 = 5_000_000;

/// Caches that forget at random hold all of a chain only after it was followed so many times.
const SETTLED: usize = 5;

fn run(session: &mut Session) -> Result<Found> {
    let sizes = session.values.counts("sizes_kb");
    let here = topology::nodes().iter().find(|(_, cpus)| cpus.contains(&session.values.cpus()[0]));
    let elsewhere = topology::nodes().iter().find(|(node, _)| here.is_none_or(|(h, _)| h != node));
    let cache = topology::last_cache(session.values.cpus()[0]).unwrap_or(CACHE);
    let mut cases = Vec::new();
    for (i, &kib) in sizes.iter().enumerate() {
        cases.push(chase("this node", kib, cache, Chain::new(kib * 1024)));
        if let Some((_, cpus)) = elsewhere {
            cases.push(chase("another node", kib, cache, Chain::made_on(cpus, kib * 1024)));
        }
        (session.tick)(0.3 * i as f64 / sizes.len() as f64);
    }
    let ladder = session.measure(cases);
    let series = ladder.time_per_op();
    let mut notes = ladder.notes();
    if elsewhere.is_none() {
        notes.push("there is one NUMA node: no remote memory to measure".to_owned());
    }
    let verdict = verdict(&series);
    Ok(Found { series, notes, verdict })
}

impl Chain {
    /// A random cycle through all lines of an area (Sattolo's algorithm), so that no prefetcher sees a pattern.
    fn new(bytes: usize) -> Chain {
        let count = (bytes / size_of::<Line>()).max(2);
        let mut next: Vec<u32> = (0..count as u32).collect();
        let mut random = Random::new(0);
        for last in (1..count).rev() {
            next.swap(last, (random.number() % last as u64) as usize);
        }
        let mut lines: Vec<Line> = (0..count).map(|_| Line(AtomicPtr::default())).collect();
        let start = lines.as_mut_ptr();
        for (line, next) in lines.iter_mut().zip(next) {
            *line.0.get_mut() = start.wrapping_add(next as usize);
        }
        Chain { lines, at: AtomicPtr::new(start) }
    }

    /// As [`Chain::new`], written first by a thread on these CPUs, whose node then has the memory.
    fn made_on(cpus: &'static [usize], bytes: usize) -> Chain {
        let make = move || affinity::pin(cpus).map(|()| Chain::new(bytes));
        // Where this process may not run there, the figure is that of this node.
        std::thread::spawn(make).join().ok().and_then(Result::ok).unwrap_or_else(|| Chain::new(bytes))
    }

    /// Makes so many loads, each of which needs the one before.
    fn follow(&self, loads: u64) {
        let mut here = self.at.load(Ordering::Relaxed);
        for _ in 0..loads {
            // SAFETY: all addresses are those of `lines`, which lives as long as `self` and is never changed.
            here = unsafe { (*here).0.load(Ordering::Relaxed) };
        }
        self.at.store(here, Ordering::Relaxed);
    }

    fn bytes(&self) -> usize {
        self.lines.len() * size_of::<Line>()
    }
}

/// A case whose rounds find the caches as a program that uses nothing else would: the chain is followed once around
/// before each (several times if the caches may hold all of it), or for as many lines as the caches hold twice. Without that each round would find what the rounds of other
/// sizes have left, and time nothing but misses.
fn chase(name: &str, kib: usize, cache: usize, chain: Chain) -> Case {
    let chain = Arc::new(chain);
    let prepared = Arc::clone(&chain);
    let size = chain.bytes();
    let times = if size > cache / 4 { 1 } else { SETTLED };
    let warm = times * size.min(2 * cache) / size_of::<Line>();
    let case = Case::new(name, 1, move |_, n| chain.follow(n)).at(kib as f64);
    let mut case = case.prepared(move |_| prepared.follow(warm as u64));
    if size > cache / 4 {
        case.round_ns = Some(LONG_NS);
    }
    case
}

fn verdict(series: &[Series]) -> Verdict {
    let Some(points) = series.first().map(|s| &s.points).filter(|p| p.len() > 1) else {
        return Verdict::without_clean_rounds();
    };
    let (near, far) = (points[0].median, points[points.len() - 1].median);
    let remote = Outcome::median_in(series, "another node", points[points.len() - 1].x);
    let remote = remote.map_or(String::new(), |ns| format!(", {ns:.0} ns on another NUMA node"));
    Verdict {
        reproduced: far > 5.0 * near,
        because: format!(
            "a dependent load takes {near:.1} ns from {} KiB and {far:.0} ns from {:.0} MiB{remote}; misses of the address \
             translation are in it",
            points[0].x,
            points[points.len() - 1].x / 1024.0
        ),
        advice: "keep what is used together on the same lines, and each node's data on that node".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_is_one_cycle() {
        let chain = Chain::new(64 * 100);
        let start = chain.at.load(Ordering::Relaxed);
        for step in 1..=100 {
            chain.follow(1);
            assert_eq!(chain.at.load(Ordering::Relaxed) == start, step == 100, "back after {step} steps");
        }
    }
}
