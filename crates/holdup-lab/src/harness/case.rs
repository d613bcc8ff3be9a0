//! One thing to measure, and one round of it.

use std::sync::Arc;

use super::clock;
use super::pool::{Job, StartLine};
use super::usage::Usage;

/// Operations in a batch, at most: a body may do nothing at all.
const MOST: u64 = 1 << 30;

/// Runs this many operations as this worker.
pub type Body = Arc<dyn Fn(usize, u64) + Send + Sync>;
/// Makes ready for a round what the rounds of other cases have disturbed; told the worker's number.
pub type Prepare = Arc<dyn Fn(usize) + Send + Sync>;
/// Reads the sum that the operations have built up.
pub type Value = Arc<dyn Fn() -> u64 + Send + Sync>;

/// A body of operations at one place of a sweep.
#[derive(Clone)]
pub struct Case {
    /// The series that it belongs to.
    pub series: String,
    /// Its place on the series' axis.
    pub x: f64,
    /// How many workers run the body at the same time.
    pub threads: usize,
    /// Whether one operation of each batch is timed, for the tail of the waits.
    pub sampled: bool,
    /// Whether CPU time is split into user and kernel mode, by one longer round in threads of its own.
    pub split: bool,
    /// The last so many workers are only there to keep the others company; their operations do not count.
    pub company: usize,
    /// How many CPUs the workers may use, if not all of the experiment's.
    pub cpus: Option<usize>,
    /// Length of a round in nanoseconds, if not that of the experiment.
    pub round_ns: Option<u64>,
    /// Whether its workers change what other cases would inherit (their niceness): it gets threads of its own.
    pub apart: bool,
    /// Whether its workers move between CPUs by themselves: rounds in which they lost theirs count, too.
    pub moving: bool,
    /// How many operations one call of the body for one stands for.
    pub each: u64,
    pub(super) prepare: Option<Prepare>,
    pub(super) body: Body,
    pub(super) value: Option<Value>,
    pub(super) batch: u64,
}

impl Case {
    /// A case at `threads` on the axis of threads. The body's loop has to be its own, so that the compiler sees it as
    /// a hand-written one.
    pub fn new(series: impl Into<String>, threads: usize, body: impl Fn(usize, u64) + Send + Sync + 'static) -> Self {
        let (series, body) = (series.into(), Arc::new(body));
        Case {
            series,
            x: threads as f64,
            threads,
            sampled: false,
            split: false,
            company: 0,
            cpus: None,
            round_ns: None,
            apart: false,
            moving: false,
            each: 1,
            prepare: None,
            body,
            value: None,
            batch: 1,
        }
    }

    /// Places the case elsewhere than at its number of threads.
    pub fn at(mut self, x: f64) -> Self {
        self.x = x;
        self
    }

    /// Times one operation of each batch.
    pub fn sampled(mut self) -> Self {
        self.sampled = true;
        self
    }

    /// Runs `prepare` in each worker before each round, untimed: rounds of other cases lie between two of this one, and
    /// what they left in the caches is none of its figures.
    pub fn prepared(mut self, prepare: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.prepare = Some(Arc::new(prepare));
        self
    }

    /// The body's loop does so many operations for each one that it is told.
    pub fn each(mut self, operations: u64) -> Self {
        self.each = operations;
        self
    }

    /// Splits CPU time into user and kernel mode. The kernel counts by ticks: this takes a round of at least ten of them.
    pub fn split(mut self) -> Self {
        self.split = true;
        self
    }

    /// Each operation adds one to what `value` reads; the difference is counted as lost updates.
    pub fn counting(mut self, value: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.value = Some(Arc::new(value));
        self
    }

    /// The work of a round that grows its batch until one takes `batch_ns`.
    pub(super) fn warm_up(&self, length_ns: u64, batch_ns: u64) -> Job<Work> {
        let (body, prepare, each) = (Arc::clone(&self.body), self.prepare.clone(), self.each);
        Arc::new(move |who, line| {
            prepare.iter().for_each(|prepare| prepare(who));
            let mut batch = 1;
            run(line, length_ns, |work| {
                let start = clock::now_ns();
                body(who, batch);
                work.ops += batch * each;
                work.batch = batch;
                if clock::now_ns() - start < batch_ns / 2 && batch < MOST {
                    batch *= 2;
                }
            })
        })
    }

    /// The work of a measured round.
    pub(super) fn round(&self, length_ns: u64) -> Job<Work> {
        let (body, batch, each) = (Arc::clone(&self.body), self.batch, self.each);
        let prepare = self.prepare.clone();
        if !self.sampled {
            return Arc::new(move |who, line| {
                prepare.iter().for_each(|prepare| prepare(who));
                run(line, length_ns, |work| {
                    body(who, batch);
                    work.ops += batch * each;
                })
            });
        }
        let cost = clock::cost_ns();
        Arc::new(move |who, line| {
            prepare.iter().for_each(|prepare| prepare(who));
            run(line, length_ns, |work| {
                let start = clock::now_ns();
                body(who, 1);
                work.waits.push((clock::now_ns() - start).saturating_sub(cost));
                body(who, batch);
                work.ops += (batch + 1) * each;
            })
        })
    }
}

/// What one worker did in one round.
#[derive(Debug, Clone, Default)]
pub struct Work {
    /// Operations done.
    pub ops: u64,
    /// From the common start to the end of its last batch, in nanoseconds.
    pub elapsed: u64,
    /// Its CPU time meanwhile, in nanoseconds.
    pub cpu: u64,
    /// What the kernel counted meanwhile.
    pub usage: Usage,
    /// Lengths of single operations, in nanoseconds; the clock's own cost is taken off.
    pub waits: Vec<u64>,
    pub(super) batch: u64,
}

/// Repeats `step` from the common start for this long.
fn run(line: &StartLine, length_ns: u64, mut step: impl FnMut(&mut Work)) -> Work {
    run_once(line, |work| {
        let start = clock::now_ns();
        loop {
            step(work);
            if clock::now_ns() >= start + length_ns {
                break;
            }
        }
    })
}

/// Runs `work` from the common start, and counts what it costs.
pub fn run_once(line: &StartLine, body: impl FnOnce(&mut Work)) -> Work {
    let mut work = Work { waits: Vec::with_capacity(256), ..Work::default() };
    let start = line.arrive();
    let usage = Usage::of_thread();
    StartLine::wait_until(start);
    let cpu = clock::thread_cpu_ns();
    let begin = clock::now_ns();
    body(&mut work);
    work.elapsed = clock::now_ns() - begin;
    work.cpu = clock::thread_cpu_ns() - cpu;
    work.usage = Usage::of_thread().since(usage);
    work
}
