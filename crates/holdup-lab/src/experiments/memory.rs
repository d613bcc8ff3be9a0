//! How far memory is: chains of dependent loads through areas of growing size.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Result;
use crate::experiment::{Experiment, Found, Session};
use crate::harness::affinity;
use crate::harness::case::Case;
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

/// One cache line that names the next.
#[repr(align(64))]
struct Line(usize);

fn run(session: &mut Session) -> Result<Found> {
    let sizes = session.values.counts("sizes_kb");
    let here = topology::nodes().iter().find(|(_, cpus)| cpus.contains(&session.values.cpus()[0]));
    let elsewhere = topology::nodes().iter().find(|(node, _)| here.is_none_or(|(h, _)| h != node));
    let mut cases = Vec::new();
    for (i, &kib) in sizes.iter().enumerate() {
        cases.push(chase("this node", kib, chain(kib * 1024)));
        if let Some((_, cpus)) = elsewhere {
            cases.push(chase("another node", kib, chain_made_on(cpus, kib * 1024)));
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

/// A random cycle through all lines of an area (Sattolo's algorithm), so that no prefetcher sees a pattern.
fn chain(bytes: usize) -> Vec<Line> {
    let count = (bytes / size_of::<Line>()).max(2);
    let mut lines: Vec<Line> = (0..count).map(Line).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for last in (1..count).rev() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let other = (random % last as u64) as usize;
        let next = lines[last].0;
        lines[last].0 = lines[other].0;
        lines[other].0 = next;
    }
    lines
}

/// As [`chain`], written first by a thread on these CPUs, whose node then has the memory.
fn chain_made_on(cpus: &'static [usize], bytes: usize) -> Vec<Line> {
    let make = move || affinity::pin(cpus).map(|()| chain(bytes));
    // Where this process may not run there, the figure is that of this node.
    std::thread::spawn(make).join().ok().and_then(Result::ok).unwrap_or_else(|| chain(bytes))
}

fn chase(name: &str, kib: usize, lines: Vec<Line>) -> Case {
    let at = Arc::new(AtomicUsize::new(0));
    let body = move |_, n| {
        let mut here = at.load(Ordering::Relaxed);
        for _ in 0..n {
            here = lines[here].0;
        }
        at.store(here, Ordering::Relaxed);
    };
    Case::new(name, 1, body).at(kib as f64)
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
        let lines = chain(64 * 100);
        let mut here = 0;
        for step in 1..=100 {
            here = lines[here].0;
            assert_eq!(here == 0, step == 100, "back after {step} steps");
        }
    }
}
