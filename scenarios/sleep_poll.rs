//! A dispatcher looks for finished jobs every 20 ms instead of waiting for them; the workers wait for it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const WORKERS: usize = 4;

#[inline(never)]
fn run_job(seed: u64) -> u64 {
    let mut x = seed;
    for i in 0..500_000 {
        x = (x ^ (x >> 27)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(i);
    }
    x
}

fn worker(jobs: &Receiver<u64>, finished: &Mutex<Vec<(usize, u64)>>, id: usize) {
    while let Ok(seed) = jobs.recv() {
        let result = run_job(seed);
        finished.lock().unwrap().push((id, result));
    }
}

#[inline(never)]
fn poll_finished_jobs(finished: &Mutex<Vec<(usize, u64)>>) -> Vec<(usize, u64)> {
    loop {
        let ready = std::mem::take(&mut *finished.lock().unwrap());
        if !ready.is_empty() {
            return ready;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn dispatch(workers: &[Sender<u64>], finished: &Mutex<Vec<(usize, u64)>>, deadline: Instant) {
    for (id, worker) in workers.iter().enumerate() {
        worker.send(id as u64).unwrap();
    }
    while Instant::now() < deadline {
        for (id, result) in poll_finished_jobs(finished) {
            workers[id].send(result).unwrap();
        }
    }
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(4.0);
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    let finished = Arc::new(Mutex::new(Vec::new()));
    let mut senders = Vec::new();
    let mut threads = Vec::new();
    for id in 0..WORKERS {
        let (sender, jobs) = channel();
        let finished = finished.clone();
        senders.push(sender);
        let name = format!("worker-{id}");
        threads.push(thread::Builder::new().name(name).spawn(move || worker(&jobs, &finished, id)).unwrap());
    }
    let dispatcher = thread::Builder::new().name("dispatcher".to_owned());
    threads.push(dispatcher.spawn(move || dispatch(&senders, &finished, deadline)).unwrap());
    threads.into_iter().for_each(|t| t.join().unwrap());
}
