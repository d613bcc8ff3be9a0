//! std::sync::Mutex, whose futex word names no owner: a flusher holds it for 0.3 s at a time.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

#[inline(never)]
fn flush_statistics(table: &mut [u64]) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(300) {
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

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(4.0);
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    let table = Arc::new(Mutex::new(vec![0_u64; 1 << 14]));
    let mut threads = Vec::new();
    for id in 0..5 {
        let table = table.clone();
        let serve = move || {
            let mut x = id;
            while Instant::now() < deadline {
                x = serve_request(x);
                table.lock().unwrap()[(x & 0x3fff) as usize] += 1;
            }
        };
        threads.push(thread::Builder::new().name(format!("request-{id}")).spawn(serve).unwrap());
    }
    let flush = move || {
        while Instant::now() < deadline {
            flush_statistics(&mut table.lock().unwrap());
            thread::sleep(Duration::from_millis(20));
        }
    };
    threads.push(thread::Builder::new().name("stats-flusher".to_owned()).spawn(flush).unwrap());
    threads.into_iter().for_each(|t| t.join().unwrap());
}
