//! Workers that read requests and count each in one counter. With `--cfg fixed` that is a `PerCpuCounter`.
//! Argument: thousands of requests for each worker. `docs/fix-a-counter.md` has its story.
//!
//! ```sh
//! cargo rustc --release -p holdup-sync --example hot_counter                  # as it was
//! cargo rustc --release -p holdup-sync --example hot_counter -- --cfg fixed   # repaired
//! ```

use std::hint::black_box;
#[cfg(not(fixed))]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

#[cfg(fixed)]
use holdup_sync::PerCpuCounter;

#[derive(Default)]
struct Server {
    #[cfg(not(fixed))]
    requests: AtomicU64,
    #[cfg(fixed)]
    requests: PerCpuCounter,
}

impl Server {
    #[inline(never)]
    fn count_request(&self) {
        #[cfg(not(fixed))]
        self.requests.fetch_add(1, Relaxed);
        #[cfg(fixed)]
        self.requests.add(1);
    }

    fn total(&self) -> u64 {
        #[cfg(not(fixed))]
        return self.requests.load(Relaxed);
        #[cfg(fixed)]
        self.requests.sum()
    }

    fn serve(&self, thousands: u64) {
        for request in 0..thousands * 1000 {
            black_box(route(black_box(REQUESTS[request as usize % REQUESTS.len()])));
            self.count_request();
        }
    }
}

const REQUESTS: [&str; 4] = ["GET /users/4711", "PUT /users/4711", "GET /orders/9", "GET /health"];

/// The number of the page that a request is for, by its name (FNV-1a).
#[inline(never)]
fn route(request: &str) -> u64 {
    let page = request.bytes().skip(5).take_while(|c| *c != b'/');
    page.fold(0xcbf2_9ce4_8422_2325, |hash, c| (hash ^ u64::from(c)).wrapping_mul(0x0100_0000_01b3))
}

fn main() {
    let thousands = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(40_000);
    let server = Server::default();
    thread::scope(|scope| {
        for id in 0..2 {
            let builder = thread::Builder::new().name(format!("worker-{id}"));
            builder.spawn_scoped(scope, || server.serve(thousands)).expect("room for a thread");
        }
    });
    println!("{} requests", server.total());
}
