//! Threads that wait, parked, for a round of work, start it together, and report it together.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, Thread};

use super::{affinity, clock};

/// How long a worker spins for the others before it lets other threads run.
const PATIENCE_NS: u64 = 50_000;
/// Between the last arrival and the start, so that all see the start before it comes.
const LEAD_NS: u64 = 5_000;

/// What each worker of a round does: its number among the round's workers, and the start line that they share.
pub type Job<T> = Arc<dyn Fn(usize, &StartLine) -> T + Send + Sync>;

/// Where the workers of one round wait for each other.
pub struct StartLine {
    workers: usize,
    arrived: AtomicUsize,
    start: AtomicU64,
}

impl StartLine {
    fn new(workers: usize) -> Self {
        StartLine { workers, arrived: AtomicUsize::new(0), start: AtomicU64::new(0) }
    }

    /// Waits until all are here. Returns the time of the start, a few microseconds from now.
    pub fn arrive(&self) -> u64 {
        let here = clock::now_ns();
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.workers {
            self.start.store(clock::now_ns() + LEAD_NS, Ordering::Release);
        }
        loop {
            match self.start.load(Ordering::Acquire) {
                0 if clock::now_ns() - here > PATIENCE_NS => std::thread::yield_now(),
                0 => std::hint::spin_loop(),
                start => return start,
            }
        }
    }

    /// Waits for the time that [`StartLine::arrive`] returned.
    pub fn wait_until(start: u64) {
        while clock::now_ns() < start {
            std::hint::spin_loop();
        }
    }
}

struct Round<T> {
    job: Job<T>,
    line: StartLine,
    cpus: Vec<usize>,
    results: Mutex<Vec<Option<T>>>,
    left: AtomicUsize,
    controller: Thread,
}

/// Where a worker gets its rounds, and its thread.
type Worker<T> = (Sender<Arc<Round<T>>>, JoinHandle<()>);

/// Threads that live as long as the experiment. The controller is parked while they work: a polling one would take
/// the CPU of one of them.
pub struct Pool<T> {
    cpus: Vec<usize>,
    workers: Vec<Worker<T>>,
}

impl<T: Send + 'static> Pool<T> {
    /// A pool that starts its threads when a round first needs them.
    pub fn new(cpus: Vec<usize>) -> Self {
        Pool { cpus, workers: Vec::new() }
    }

    /// A pool on the same CPUs with threads of its own.
    pub fn like_this(&self) -> Self {
        Pool::new(self.cpus.clone())
    }

    /// How many CPUs the workers may use.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Runs one round with this many workers on the pool's first `cpus` CPUs; the results are in the workers' order.
    /// Each has a CPU of its own while there are enough; more threads than CPUs share all of them.
    ///
    /// # Panics
    /// If a worker panicked.
    pub fn round_on(&mut self, cpus: usize, workers: usize, job: Job<T>) -> Vec<T> {
        let cpus = self.cpus[..cpus.clamp(1, self.cpus.len())].to_vec();
        while self.workers.len() < workers {
            self.workers.push(spawn(self.workers.len()));
        }
        let round = Arc::new(Round {
            job,
            line: StartLine::new(workers),
            cpus,
            results: Mutex::new((0..workers).map(|_| None).collect()),
            left: AtomicUsize::new(workers),
            controller: std::thread::current(),
        });
        for (sender, _) in &self.workers[..workers] {
            sender.send(Arc::clone(&round)).expect("a worker lives as long as its pool");
        }
        while round.left.load(Ordering::Acquire) > 0 {
            std::thread::park();
        }
        let mut results = round.results.lock().expect("workers do not panic holding the results");
        results.drain(..).map(|r| r.expect("a worker of the lab panicked")).collect()
    }
}

impl<T: Send + 'static> Pool<T> {
    /// As [`Pool::round_on`] all CPUs.
    pub fn round(&mut self, workers: usize, job: Job<T>) -> Vec<T> {
        self.round_on(self.cpus.len(), workers, job)
    }
}

impl<T> Drop for Pool<T> {
    fn drop(&mut self) {
        for (sender, handle) in self.workers.drain(..) {
            drop(sender);
            // A panic of the worker was reported by its round.
            let _ = handle.join();
        }
    }
}

/// Counts the worker out, also if its job panicked: the controller must not wait for ever.
struct CountOut<'a, T>(&'a Round<T>);

impl<T> Drop for CountOut<'_, T> {
    fn drop(&mut self) {
        if self.0.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.controller.unpark();
        }
    }
}

fn spawn<T: Send + 'static>(who: usize) -> Worker<T> {
    let (sender, rounds) = channel::<Arc<Round<T>>>();
    let work = move || {
        let mut pinned = Vec::new();
        for round in rounds {
            let _out = CountOut(&round);
            pin(&round, who, &mut pinned);
            let result = (round.job)(who, &round.line);
            round.results.lock().expect("workers do not panic holding the results")[who] = Some(result);
        }
    };
    let builder = std::thread::Builder::new().name(format!("lab-worker-{who}"));
    (sender, builder.spawn(work).expect("the system has room for a thread"))
}

fn pin<T>(round: &Round<T>, who: usize, pinned: &mut Vec<usize>) {
    let alone = round.line.workers <= round.cpus.len();
    let wanted = if alone { vec![round.cpus[who]] } else { round.cpus.clone() };
    if *pinned != wanted {
        // The knobs were checked; if a CPU went away since, the kernel's own choice is the next best.
        let _ = affinity::pin(&wanted);
        *pinned = wanted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_workers_start_together_and_report_in_order() {
        let mut pool = Pool::new(affinity::allowed());
        for workers in [1, 3, 2] {
            let results = pool.round(workers, Arc::new(|who, line| (who, line.arrive())));
            assert_eq!(results.len(), workers);
            assert!(results.iter().enumerate().all(|(i, (who, start))| i == *who && *start == results[0].1));
        }
    }

    #[test]
    #[should_panic(expected = "a worker of the lab panicked")]
    fn a_panic_in_a_worker_is_told() {
        Pool::new(affinity::allowed()).round(1, Arc::new(|_, _| assert_eq!(1, 2, "planned")));
    }
}
