//! Phases: four threads parse in parallel, then one of them merges alone while the others wait at a barrier. With
//! `--cfg fixed` each merges a quarter. Arguments: the seconds to run, or as the second the phases to do.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const WORKERS: u64 = 4;

/// About `rounds` nanoseconds of arithmetic.
fn mix(mut x: u64, rounds: u64) -> u64 {
    for i in 0..rounds {
        x = (x ^ (x >> 27)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i);
    }
    x
}

#[inline(never)]
fn parse_partition(seed: u64) -> u64 {
    mix(seed, 20_000_000)
}

#[inline(never)]
fn merge_partitions(parts: &mut [u64]) {
    for _ in 0..40_000 {
        for i in 1..parts.len() {
            parts[i] = parts[i].rotate_left(7) ^ parts[i - 1].wrapping_mul(31);
        }
    }
}

/// When the phases end.
#[derive(Clone, Copy)]
enum Until {
    Deadline(Instant),
    Phases(u64),
}

impl Until {
    /// From the arguments: seconds, or phases after them.
    fn from_arguments() -> Self {
        let argument = |n| std::env::args().nth(n);
        match argument(2).and_then(|s| s.parse().ok()) {
            Some(phases) => Until::Phases(phases),
            None => {
                let seconds = argument(1).and_then(|s| s.parse().ok()).unwrap_or(4.0);
                Until::Deadline(Instant::now() + Duration::from_secs_f64(seconds))
            }
        }
    }

    fn reached(self, phase: u64) -> bool {
        match self {
            Until::Deadline(deadline) => Instant::now() > deadline,
            Until::Phases(phases) => phase >= phases,
        }
    }
}

/// The partitions that worker `id` merges.
fn to_merge(id: u64) -> std::ops::Range<usize> {
    match id {
        _ if cfg!(fixed) => id as usize..id as usize + 1,
        0 => 0..WORKERS as usize,
        _ => 0..0,
    }
}

fn work(id: u64, phases: &Barrier, parts: &[Mutex<Vec<u64>>], until: Until, done: &AtomicBool) {
    for phase in 1.. {
        parts[id as usize].lock().unwrap()[0] ^= parse_partition(id);
        // The barrier's leader may be any thread: worker 0 merges, whoever comes last.
        phases.wait();
        to_merge(id).for_each(|i| merge_partitions(&mut parts[i].lock().unwrap()));
        if id == 0 {
            done.store(until.reached(phase), Relaxed);
        }
        phases.wait();
        if done.load(Relaxed) {
            return;
        }
    }
}

fn main() {
    let until = Until::from_arguments();
    let phases = Arc::new(Barrier::new(WORKERS as usize));
    let parts: Arc<Vec<_>> = Arc::new((0..WORKERS).map(|_| Mutex::new(vec![1_u64; 1024])).collect());
    let done = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..WORKERS)
        .map(|id| {
            let (phases, parts, done) = (phases.clone(), parts.clone(), done.clone());
            let name = if id == 0 { "merger".to_owned() } else { format!("parser-{id}") };
            thread::Builder::new().name(name).spawn(move || work(id, &phases, &parts, until, &done)).unwrap()
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}
