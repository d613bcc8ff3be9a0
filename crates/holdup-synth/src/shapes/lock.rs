//! A server whose requests come through dispatchers to a pool of workers.
//!
//! Planted: `janitor` scans a bitmap every few dozen milliseconds, with the lock in its hands that a third of all
//! requests need for a moment. While it scans, ever more workers queue for the lock, until no request is left that
//! does not.

use std::collections::VecDeque;

use holdup_trace::LockId;

use crate::cast::{Cast, Crew, Next, Place, Program, Who, calls};
use crate::code::kernel;
use crate::machine::Machine;
use crate::spec::{Planted, Spec, Truth};

/// How long the janitor sleeps and scans, in nanoseconds.
const SLEEP: (u64, u64) = (22_000_000, 30_000_000);
const SCAN: (u64, u64) = (10_000_000, 14_000_000);
/// Requests that clients have on the way, for each CPU.
const IN_FLIGHT: u32 = 3;
/// From an answer to the next request of the same client, in nanoseconds.
const THINK: (u64, u64) = (100_000, 300_000);

const fn runs(user: &'static [&'static str]) -> Place {
    Place { process: 0, syscall: calls::NONE, kernel: kernel::NONE, user }
}

const fn waits(syscall: i16, kernel: &'static [&'static str], user: &'static [&'static str]) -> Place {
    Place { process: 0, syscall, kernel, user }
}

const SLEEPS: usize = 0;
const SCANS: usize = 1;
const UNLOCKS: usize = 2;
const SWEEPS: usize = 3;
const POLLS: usize = 4;
const DISPATCHES: usize = 5;
const SIGNALS: usize = 6;
const IDLES: usize = 7;
const PARSES: usize = 8;
const READS: usize = 9;
const LOOKS_UP: usize = 10;
const QUEUES: usize = 11;
const QUERIES: usize = 12;
const WRITES: usize = 13;
const FLUSHES: usize = 14;
const CLAIMS: usize = 15;

const PLACES: [Place; 16] = [
    waits(calls::SLEEP, kernel::SLEEP, &["clock_nanosleep", "janitor_main", "start_thread", "clone3"]),
    runs(&["bitmap_scan", "sweep_pages", "janitor_main", "start_thread", "clone3"]),
    runs(&["pthread_mutex_unlock", "bitmap_scan", "sweep_pages", "janitor_main", "start_thread", "clone3"]),
    runs(&["sweep_pages", "janitor_main", "start_thread", "clone3"]),
    waits(calls::POLL, kernel::POLL, &["epoll_wait", "dispatcher_main", "start_thread", "clone3"]),
    runs(&["dispatch_request", "dispatcher_main", "start_thread", "clone3"]),
    runs(&["pthread_cond_signal", "dispatch_request", "dispatcher_main", "start_thread", "clone3"]),
    waits(
        calls::FUTEX,
        kernel::FUTEX,
        &["__futex_abstimed_wait", "pthread_cond_wait", "worker_main", "start_thread", "clone3"],
    ),
    runs(&["parse_request", "worker_main", "start_thread", "clone3"]),
    runs(&["serve_read", "worker_main", "start_thread", "clone3"]),
    runs(&["lookup_catalog", "serve_query", "worker_main", "start_thread", "clone3"]),
    waits(
        calls::FUTEX,
        kernel::FUTEX,
        &[
            "__lll_lock_wait",
            "pthread_mutex_lock",
            "lookup_catalog",
            "serve_query",
            "worker_main",
            "start_thread",
            "clone3",
        ],
    ),
    runs(&["run_query", "serve_query", "worker_main", "start_thread", "clone3"]),
    runs(&["serve_write", "worker_main", "start_thread", "clone3"]),
    waits(
        calls::FDATASYNC,
        kernel::SYNC_DISK,
        &["fdatasync", "flush_page", "serve_write", "worker_main", "start_thread", "clone3"],
    ),
    waits(
        calls::FUTEX,
        kernel::FUTEX,
        &["__lll_lock_wait", "pthread_mutex_lock", "sweep_pages", "janitor_main", "start_thread", "clone3"],
    ),
];

fn dispatchers(cpus: u32, threads: u32) -> u32 {
    (cpus / 8).clamp(2, 16).min(threads / 4)
}

pub(super) fn cast(spec: &Spec) -> Cast {
    let dispatchers = dispatchers(spec.cpus.into(), spec.threads);
    let crews = vec![
        Crew { name: "janitor", process: 0, count: 1 },
        Crew { name: "dispatcher", process: 0, count: dispatchers },
        Crew { name: "worker", process: 0, count: spec.threads - dispatchers - 2 },
    ];
    Cast { processes: &["synthd"], crews, places: &PLACES }
}

/// Where a worker is in its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begins,
    Parsed,
    WantsLock,
    HasLock,
    Wrote,
    Flushed,
    Ends,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Janitor {
    Sleeps,
    Scans,
}

#[derive(Debug)]
struct Dispatcher {
    /// Requests that came in.
    inbox: u32,
    waits: bool,
    /// Whether it has looked at a request and has to find a worker.
    looked: bool,
    free: VecDeque<Who>,
}

/// The server.
#[derive(Debug)]
pub(super) struct Server {
    janitor: Who,
    janitor_does: Janitor,
    first_dispatcher: Who,
    first_worker: Who,
    dispatchers: Vec<Dispatcher>,
    stages: Vec<Stage>,
    queue: VecDeque<Who>,
    locked_at: u64,
    held_ns: u64,
    phases: u64,
}

impl Server {
    pub(super) fn new(machine: &mut Machine) -> Self {
        let janitor = machine.first();
        let (cpus, threads) = (machine.cpus(), machine.threads());
        let count = dispatchers(cpus, threads);
        let (first_dispatcher, first_worker) = (janitor + 1, janitor + 1 + count);
        let free = |d| (first_worker..threads).filter(|w| w % count == d).collect();
        let dispatchers =
            (0..count).map(|d| Dispatcher { inbox: 0, waits: true, looked: false, free: free(d) }).collect();
        machine.timer(janitor, 6_000_000);
        for client in 0..IN_FLIGHT * cpus {
            let ns = machine.random.below(1_000_000);
            machine.alarm(ns, client % count);
        }
        Server {
            janitor,
            janitor_does: Janitor::Sleeps,
            first_dispatcher,
            first_worker,
            dispatchers,
            stages: vec![Stage::Begins; (threads - first_worker) as usize],
            queue: VecDeque::new(),
            locked_at: 0,
            held_ns: 0,
            phases: 0,
        }
    }

    fn janitor(&mut self, machine: &mut Machine) -> Next {
        if self.janitor_does == Janitor::Sleeps {
            if machine.holder.is_some() {
                self.queue.push_back(self.janitor);
                return Next::Block(CLAIMS, machine.lock);
            }
            machine.holder = Some(self.janitor);
            self.locked_at = machine.now();
            self.janitor_does = Janitor::Scans;
            return Next::Run(machine.random.within(SCAN.0, SCAN.1), SCANS);
        }
        if machine.holder == Some(self.janitor) {
            self.held_ns += machine.now() - self.locked_at;
            self.phases += 1;
            self.unlock(machine, self.janitor, UNLOCKS);
            return Next::Run(20_000, SWEEPS);
        }
        self.janitor_does = Janitor::Sleeps;
        let ns = machine.random.within(SLEEP.0, SLEEP.1);
        machine.timer(self.janitor, ns);
        Next::Block(SLEEPS, LockId::NONE)
    }

    /// The lock is free, and the first in the queue may try to get it.
    fn unlock(&mut self, machine: &mut Machine, who: Who, site: usize) {
        machine.holder = None;
        if let Some(next) = self.queue.pop_front() {
            machine.wake(who, next, site);
        }
    }

    fn dispatcher(&mut self, machine: &mut Machine, who: Who) -> Next {
        let dispatcher = &mut self.dispatchers[(who - self.first_dispatcher) as usize];
        if std::mem::take(&mut dispatcher.looked)
            && let Some(worker) = dispatcher.free.pop_front()
        {
            machine.wake(who, worker, SIGNALS);
        }
        dispatcher.waits = dispatcher.inbox == 0 || dispatcher.free.is_empty();
        if dispatcher.waits {
            return Next::Block(POLLS, LockId::NONE);
        }
        dispatcher.inbox -= 1;
        dispatcher.looked = true;
        Next::Run(machine.random.within(1_500, 3_500), DISPATCHES)
    }

    fn worker(&mut self, machine: &mut Machine, who: Who) -> Next {
        let at = (who - self.first_worker) as usize;
        let (stage, next) = match self.stages[at] {
            Stage::Begins => (Stage::Parsed, Next::Run(machine.random.within(20_000, 60_000), PARSES)),
            Stage::Parsed => match machine.random.below(100) {
                0..35 => (Stage::WantsLock, Next::Run(machine.random.within(5_000, 15_000), QUERIES)),
                35..42 => (Stage::Wrote, Next::Run(machine.random.within(30_000, 90_000), WRITES)),
                _ => (Stage::Ends, Next::Run(machine.random.within(100_000, 500_000), READS)),
            },
            Stage::WantsLock if machine.holder.is_none() => {
                machine.holder = Some(who);
                (Stage::HasLock, Next::Run(machine.random.within(800, 2_000), LOOKS_UP))
            }
            Stage::WantsLock => {
                self.queue.push_back(who);
                (Stage::WantsLock, Next::Block(QUEUES, machine.lock))
            }
            Stage::HasLock => {
                self.unlock(machine, who, LOOKS_UP);
                (Stage::Ends, Next::Run(machine.random.within(100_000, 350_000), QUERIES))
            }
            Stage::Wrote => {
                let ns = machine.random.within(80_000, 250_000);
                machine.disk(who, ns);
                (Stage::Flushed, Next::Block(FLUSHES, LockId::NONE))
            }
            Stage::Flushed => (Stage::Ends, Next::Run(machine.random.within(10_000, 40_000), WRITES)),
            Stage::Ends => self.ends(machine, who),
        };
        self.stages[at] = stage;
        next
    }

    /// The answer goes out; the client thinks, and sends another request.
    fn ends(&mut self, machine: &mut Machine, who: Who) -> (Stage, Next) {
        let d = who % self.dispatchers.len() as u32;
        let ns = machine.random.within(THINK.0, THINK.1);
        // To any dispatcher: a client may have several connections.
        let to = machine.random.below(self.dispatchers.len() as u64) as u32;
        machine.alarm(ns, to);
        let dispatcher = &mut self.dispatchers[d as usize];
        if dispatcher.inbox > 0 && dispatcher.waits {
            // The pool was too small: a request waits for the next free worker.
            dispatcher.inbox -= 1;
            return (Stage::Parsed, Next::Run(machine.random.within(20_000, 60_000), PARSES));
        }
        dispatcher.free.push_back(who);
        (Stage::Begins, Next::Block(IDLES, machine.words[d as usize]))
    }
}

impl Program<Machine> for Server {
    fn step(&mut self, machine: &mut Machine, who: Who) -> Next {
        match who {
            w if w >= self.first_worker => self.worker(machine, w),
            d if d >= self.first_dispatcher => self.dispatcher(machine, d),
            _ => self.janitor(machine),
        }
    }

    fn alarm(&mut self, machine: &mut Machine, what: u32) {
        let dispatcher = &mut self.dispatchers[what as usize];
        dispatcher.inbox += 1;
        if dispatcher.waits && !dispatcher.free.is_empty() {
            dispatcher.waits = false;
            machine.packet(self.first_dispatcher + what);
        }
    }

    fn truth(&self, machine: &Machine) -> Truth {
        Truth {
            kind: Some(Planted::LockHeld),
            thread: "janitor".to_owned(),
            tid: machine.tid(self.janitor),
            process: "synthd".to_owned(),
            pid: machine.pid(0),
            function: "bitmap_scan".to_owned(),
            lock: Some(machine.lock_address()),
            held_ns: self.held_ns,
            phases: self.phases,
        }
    }
}
