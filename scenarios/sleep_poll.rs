//! A dispatcher looks for finished jobs every 20 ms instead of waiting for them; the workers wait for it. With
//! `--cfg fixed` it waits on a condition. Arguments: the seconds to run, or as the second the jobs to do.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
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

#[derive(Default)]
struct Finished {
    jobs: Mutex<Vec<(usize, u64)>>,
    some: Condvar,
}

fn worker(jobs: &Receiver<u64>, finished: &Finished, id: usize) {
    while let Ok(seed) = jobs.recv() {
        let result = run_job(seed);
        finished.jobs.lock().unwrap().push((id, result));
        finished.some.notify_one();
    }
}

#[inline(never)]
fn poll_finished_jobs(finished: &Finished) -> Vec<(usize, u64)> {
    if cfg!(fixed) {
        let ready = finished.some.wait_while(finished.jobs.lock().unwrap(), |jobs| jobs.is_empty());
        return std::mem::take(&mut *ready.unwrap());
    }
    loop {
        let ready = std::mem::take(&mut *finished.jobs.lock().unwrap());
        if !ready.is_empty() {
            return ready;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn dispatch(workers: &[Sender<u64>], finished: &Finished, over: impl Fn(usize) -> bool) {
    for (id, worker) in workers.iter().enumerate() {
        worker.send(id as u64).unwrap();
    }
    let mut done = 0;
    while !over(done) {
        for (id, result) in poll_finished_jobs(finished) {
            done += 1;
            workers[id].send(result).unwrap();
        }
    }
}

fn main() {
    let argument = |n| std::env::args().nth(n);
    let seconds = argument(1).and_then(|s| s.parse().ok()).unwrap_or(4.0);
    let jobs: Option<usize> = argument(2).and_then(|s| s.parse().ok());
    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    let over = move |done| jobs.map_or_else(|| Instant::now() > deadline, |jobs| done >= jobs);
    let finished = Arc::new(Finished::default());
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
    threads.push(dispatcher.spawn(move || dispatch(&senders, &finished, over)).unwrap());
    threads.into_iter().for_each(|t| t.join().unwrap());
}
