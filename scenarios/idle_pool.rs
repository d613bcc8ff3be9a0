//! A server with nothing to do: an acceptor waits for connections that nobody makes, a pool waits for the acceptor.
//! Once in a while the pool does a little housekeeping. Nothing here is held up.

use std::net::TcpListener;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

#[derive(Default)]
struct Queue {
    jobs: Mutex<Vec<u64>>,
    filled: Condvar,
}

#[inline(never)]
fn housekeeping(seed: u64) -> u64 {
    let mut x = seed | 1;
    for i in 0..1_000_000 {
        x = (x ^ (x >> 27)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i);
    }
    x
}

fn pool_thread(queue: &Queue) {
    loop {
        let mut jobs = queue.jobs.lock().unwrap();
        let job = loop {
            match jobs.pop() {
                Some(job) => break job,
                None => jobs = queue.filled.wait(jobs).unwrap(),
            }
        };
        drop(jobs);
        std::hint::black_box(housekeeping(job));
    }
}

fn accept_connections(listener: &TcpListener, queue: &Queue) {
    for connection in listener.incoming() {
        drop(connection);
        queue.jobs.lock().unwrap().push(2);
        queue.filled.notify_one();
    }
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(4.0);
    let queue = Arc::new(Queue::default());
    for id in 0..8 {
        let queue = queue.clone();
        thread::Builder::new().name(format!("pool-{id}")).spawn(move || pool_thread(&queue)).unwrap();
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let for_acceptor = queue.clone();
    let acceptor = thread::Builder::new().name("acceptor".to_owned());
    acceptor.spawn(move || accept_connections(&listener, &for_acceptor)).unwrap();
    for tick in 0..(seconds * 2.0) as u64 {
        thread::sleep(Duration::from_millis(500));
        queue.jobs.lock().unwrap().push(tick);
        queue.filled.notify_one();
    }
}
