//! Threads that get all their work from one dispatcher.
//!
//! Planted: `hub` hands out the work of a round piece by piece, reads a segment from the disk, merges, and waits for
//! clients. Whoever has no work waits for it all that time.

use std::collections::VecDeque;

use holdup_trace::LockId;

use crate::cast::{Cast, Crew, Next, Place, Program, Who, calls};
use crate::code::kernel;
use crate::machine::Machine;
use crate::spec::{Planted, Spec, Truth};

/// How long handing out the work of a round takes, in nanoseconds.
const ROUND: u64 = 800_000;

const fn runs(user: &'static [&'static str]) -> Place {
    Place { process: 0, syscall: calls::NONE, kernel: kernel::NONE, user }
}

const fn waits(syscall: i16, kernel: &'static [&'static str], user: &'static [&'static str]) -> Place {
    Place { process: 0, syscall, kernel, user }
}

const ROUTES: usize = 0;
const SIGNALS: usize = 1;
const LOADS: usize = 2;
const MERGES: usize = 3;
const POLLS: usize = 4;
const IDLES: usize = 5;
const WORKS: usize = 6;

const PLACES: [Place; 7] = [
    runs(&["route_batch", "hub_main", "start_thread", "clone3"]),
    runs(&["pthread_cond_signal", "route_batch", "hub_main", "start_thread", "clone3"]),
    waits(calls::PREAD, kernel::READ_DISK, &["pread64", "load_segment", "hub_main", "start_thread", "clone3"]),
    runs(&["merge_results", "hub_main", "start_thread", "clone3"]),
    waits(calls::POLL, kernel::POLL, &["epoll_wait", "hub_main", "start_thread", "clone3"]),
    waits(
        calls::FUTEX,
        kernel::FUTEX,
        &["__futex_abstimed_wait", "pthread_cond_wait", "take_task", "worker_main", "start_thread", "clone3"],
    ),
    runs(&["handle_task", "worker_main", "start_thread", "clone3"]),
];

pub(super) fn cast(spec: &Spec) -> Cast {
    let crews =
        vec![Crew { name: "hub", process: 0, count: 1 }, Crew { name: "worker", process: 0, count: spec.threads - 2 }];
    Cast { processes: &["synthd"], crews, places: &PLACES }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// So many pieces are still to be handed out.
    Routes(u64),
    Loads,
    Merges,
    Polls,
}

/// The dispatcher and those that wait for it.
#[derive(Debug)]
pub(super) struct Hub {
    hub: Who,
    stage: Stage,
    /// Pieces of work in a round.
    pieces: u64,
    free: VecDeque<Who>,
    /// Whether a worker has done its piece.
    done: Vec<bool>,
    ran_ns: u64,
    rounds: u64,
}

impl Hub {
    pub(super) fn new(machine: &mut Machine) -> Self {
        let hub = machine.first();
        machine.timer(hub, 100_000);
        Hub {
            hub,
            stage: Stage::Polls,
            pieces: u64::from(2 * machine.cpus()),
            free: (hub + 1..machine.threads()).collect(),
            done: vec![false; machine.threads() as usize],
            ran_ns: 0,
            rounds: 0,
        }
    }

    fn hub(&mut self, machine: &mut Machine) -> Next {
        match self.stage {
            Stage::Polls => {
                self.rounds += 1;
                self.stage = Stage::Routes(self.pieces);
                self.route(machine)
            }
            Stage::Routes(left) => {
                if let Some(worker) = self.free.pop_front() {
                    machine.wake(self.hub, worker, SIGNALS);
                }
                self.stage = Stage::Routes(left - 1);
                if left > 1 {
                    return self.route(machine);
                }
                let ns = machine.random.within(200_000, 400_000);
                machine.disk(self.hub, ns);
                self.stage = Stage::Loads;
                Next::Block(LOADS, LockId::NONE)
            }
            Stage::Loads => {
                self.stage = Stage::Merges;
                Next::Run(machine.random.within(80_000, 160_000), MERGES)
            }
            Stage::Merges => {
                self.stage = Stage::Polls;
                let ns = machine.random.within(100_000, 300_000);
                machine.alarm(ns, 0);
                Next::Block(POLLS, LockId::NONE)
            }
        }
    }

    fn route(&mut self, machine: &mut Machine) -> Next {
        let each = ROUND / self.pieces;
        let ns = machine.random.within(each / 2, each * 3 / 2);
        self.ran_ns += ns;
        Next::Run(ns, ROUTES)
    }
}

impl Program<Machine> for Hub {
    fn step(&mut self, machine: &mut Machine, who: Who) -> Next {
        if who == self.hub {
            return self.hub(machine);
        }
        let done = &mut self.done[who as usize];
        *done = !*done;
        if *done {
            return Next::Run(machine.random.within(100_000, 300_000), WORKS);
        }
        self.free.push_back(who);
        Next::Block(IDLES, machine.words[0])
    }

    fn alarm(&mut self, machine: &mut Machine, _: u32) {
        machine.packet(self.hub);
    }

    fn truth(&self, machine: &Machine) -> Truth {
        Truth {
            kind: Some(Planted::Serial),
            thread: "hub".to_owned(),
            tid: machine.tid(self.hub),
            process: "synthd".to_owned(),
            pid: machine.pid(0),
            function: "route_batch".to_owned(),
            lock: None,
            held_ns: self.ran_ns,
            phases: self.rounds,
        }
    }
}
