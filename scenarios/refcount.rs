//! Two threads clone and drop the same `Arc` for every request: its count is one cache line for both. With
//! `--cfg fixed` each has an `Arc` of its own. Argument: thousands of requests.

use std::hint::black_box;
use std::sync::Arc;
use std::thread;

#[inline(never)]
fn borrow_settings(settings: &Arc<[u64; 64]>, requests: u64) -> u64 {
    let mut sum = 0_u64;
    for request in 0..requests {
        let mine = black_box(Arc::clone(settings));
        sum = sum.rotate_left(3) ^ mine[(request & 63) as usize];
    }
    sum
}

fn serve(settings: &Arc<[u64; 64]>, thousands: u64) {
    for _ in 0..thousands {
        black_box(borrow_settings(settings, 1000));
    }
}

fn main() {
    let thousands = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(60_000);
    let shared = Arc::new([7; 64]);
    let threads: Vec<_> = (0..2)
        .map(|id| {
            let settings = if cfg!(fixed) { Arc::new([7; 64]) } else { Arc::clone(&shared) };
            thread::Builder::new().name(format!("server-{id}")).spawn(move || serve(&settings, thousands)).unwrap()
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}
