//! Phases: four threads parse in parallel, then one of them merges alone while the others wait at a barrier.

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

fn work(id: u64, phases: &Barrier, parts: &Mutex<Vec<u64>>, deadline: Instant, done: &Mutex<bool>) {
    loop {
        let part = parse_partition(id);
        parts.lock().unwrap()[id as usize] ^= part;
        // The barrier's leader may be any thread: worker 0 merges, whoever comes last.
        phases.wait();
        if id == 0 {
            merge_partitions(&mut parts.lock().unwrap());
            *done.lock().unwrap() = Instant::now() > deadline;
        }
        phases.wait();
        if *done.lock().unwrap() {
            return;
        }
    }
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(4.0);
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    let phases = Arc::new(Barrier::new(WORKERS as usize));
    let parts = Arc::new(Mutex::new(vec![1_u64; 4096]));
    let done = Arc::new(Mutex::new(false));
    let threads: Vec<_> = (0..WORKERS)
        .map(|id| {
            let (phases, parts, done) = (phases.clone(), parts.clone(), done.clone());
            let name = if id == 0 { "merger".to_owned() } else { format!("parser-{id}") };
            thread::Builder::new().name(name).spawn(move || work(id, &phases, &parts, deadline, &done)).unwrap()
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}
