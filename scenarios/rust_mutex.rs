//! std::sync::Mutex, whose futex word names no owner: a flusher holds it for 0.3 s at a time. With `--cfg fixed` it
//! flushes a copy. Arguments: the seconds to run, or as the second the requests to serve, with a flush per 3000.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// About 0.3 s.
const PASSES: u32 = 12_000;

#[inline(never)]
fn flush_statistics(table: &mut [u64]) {
    for _ in 0..PASSES {
        for i in 1..table.len() {
            table[i] = table[i].rotate_left(5).wrapping_add(table[i - 1] ^ i as u64);
        }
    }
}

#[inline(never)]
fn serve_request(seed: u64) -> u64 {
    let mut x = seed | 1;
    for i in 0..300_000 {
        x = (x ^ (x >> 27)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i);
    }
    x
}

/// What is left to do: units, or whatever fits before a deadline.
enum Left {
    Units(AtomicI64),
    Until(Instant),
}

impl Left {
    fn next(&self) -> bool {
        match self {
            Left::Units(left) => left.fetch_sub(1, Relaxed) > 0,
            Left::Until(deadline) => Instant::now() < *deadline,
        }
    }
}

/// The work of the two roles, from the arguments.
fn plan() -> [Left; 2] {
    let argument = |n| std::env::args().nth(n);
    if let Some(requests) = argument(2).and_then(|s| s.parse::<i64>().ok()) {
        return [requests, requests / 3000].map(|units| Left::Units(AtomicI64::new(units)));
    }
    let seconds = argument(1).and_then(|s| s.parse().ok()).unwrap_or(4.0);
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    [Left::Until(deadline), Left::Until(deadline)]
}

fn main() {
    let [requests, flushes] = plan();
    let requests = Arc::new(requests);
    let table = Arc::new(Mutex::new(vec![0_u64; 1 << 14]));
    let mut threads = Vec::new();
    for id in 0..5 {
        let (table, requests) = (table.clone(), requests.clone());
        let serve = move || {
            let mut x = id;
            while requests.next() {
                x = serve_request(x);
                table.lock().unwrap()[(x & 0x3fff) as usize] += 1;
            }
        };
        threads.push(thread::Builder::new().name(format!("request-{id}")).spawn(serve).unwrap());
    }
    let flush = move || {
        while flushes.next() {
            if cfg!(fixed) {
                let mut copy = table.lock().unwrap().clone();
                flush_statistics(&mut copy);
            } else {
                flush_statistics(&mut table.lock().unwrap());
            }
            thread::sleep(Duration::from_millis(20));
        }
    };
    threads.push(thread::Builder::new().name("stats-flusher".to_owned()).spawn(flush).unwrap());
    threads.into_iter().for_each(|t| t.join().unwrap());
}
