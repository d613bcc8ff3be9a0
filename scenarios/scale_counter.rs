//! For `holdup scale`: N threads serve a fixed number of requests and count each in one shared counter, so that its
//! cache line goes from CPU to CPU. Arguments: the threads, millions of requests. Prints the requests.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

static SERVED: AtomicU64 = AtomicU64::new(0);

#[inline(never)]
fn count_request() {
    SERVED.fetch_add(1, Relaxed);
}

#[inline(never)]
fn serve(requests: u64) -> u64 {
    let mut x = 1_u64;
    for i in 0..requests {
        x = (x ^ (x >> 27)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i);
        count_request();
    }
    x
}

fn main() {
    let argument = |n, default| std::env::args().nth(n).and_then(|s| s.parse().ok()).unwrap_or(default);
    let (threads, millions) = (argument(1, 2), argument(2, 100));
    thread::scope(|scope| {
        for id in 0..threads {
            let share = millions * 1_000_000 / threads;
            let name = thread::Builder::new().name(format!("server-{id}"));
            name.spawn_scoped(scope, move || black_box(serve(share))).unwrap();
        }
    });
    println!("requests: {}", SERVED.load(Relaxed));
}
