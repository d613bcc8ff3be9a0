//! Servers that mostly wait for requests.
//!
//! Planted: nothing. Requests come from outside, each to a server of its own; one in twenty is passed on to a store, another
//! process, and answered with its reply. There may be many more threads than CPUs, and there is little to do.

use std::collections::VecDeque;

use holdup_trace::LockId;

use crate::cast::{Cast, Crew, Next, Place, Program, Who, calls};
use crate::code::kernel;
use crate::machine::Machine;
use crate::spec::{Spec, Truth};

/// How busy the CPUs are, in percent, if there are enough threads for that.
const BUSY: u64 = 25;
/// What a request costs on average, in nanoseconds.
const COST: u64 = 110_000;
/// No client thinks for less, in nanoseconds.
const LEAST_THINK: u64 = 1_000_000;
/// One request in so many goes to the store.
const STORED: u64 = 20;

const POLLS: usize = 0;
const ANSWERS: usize = 1;
const ASKS: usize = 2;
const SENDS: usize = 3;
const AWAITS: usize = 4;
const LISTENS: usize = 5;
const FETCHES: usize = 6;
const REPLIES: usize = 7;

const fn place(process: usize, syscall: i16, kernel: &'static [&'static str], user: &'static [&'static str]) -> Place {
    Place { process, syscall, kernel, user }
}

const PLACES: [Place; 8] = [
    place(0, calls::POLL, kernel::POLL, &["epoll_wait", "next_request", "server_main", "start_thread", "clone3"]),
    place(0, calls::NONE, kernel::NONE, &["answer_request", "server_main", "start_thread", "clone3"]),
    place(0, calls::NONE, kernel::NONE, &["ask_store", "server_main", "start_thread", "clone3"]),
    place(0, calls::NONE, kernel::NONE, &["send", "ask_store", "server_main", "start_thread", "clone3"]),
    place(0, calls::RECEIVE, kernel::RECEIVE, &["recv", "ask_store", "server_main", "start_thread", "clone3"]),
    place(1, calls::RECEIVE, kernel::RECEIVE, &["recv", "store_main", "start_thread", "clone3"]),
    place(1, calls::NONE, kernel::NONE, &["fetch_record", "store_main", "start_thread", "clone3"]),
    place(1, calls::NONE, kernel::NONE, &["send", "store_main", "start_thread", "clone3"]),
];

/// Threads of the store, which serve any server.
fn stores(threads: u32) -> u32 {
    (threads - 2) / 8
}

pub(super) fn cast(spec: &Spec) -> Cast {
    let stores = stores(spec.threads);
    let crews = vec![
        Crew { name: "server", process: 0, count: spec.threads - 2 - stores },
        Crew { name: "store", process: 1, count: stores },
    ];
    Cast { processes: &["synthd", "stored"], crews, places: &PLACES }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Waits for a request.
    Polls,
    /// Is about to ask the store.
    Asks,
    /// Waits for the store, or was told by it.
    Awaits,
    /// Is done with its request.
    Answers,
}

/// Servers and a store.
#[derive(Debug)]
pub(super) struct Pool {
    first_server: Who,
    first_store: Who,
    stages: Vec<Stage>,
    free: VecDeque<Who>,
    /// For whom each thread of the store works, and whether it has worked already.
    orders: Vec<Option<(Who, bool)>>,
    /// From an answer to the next request to the same server on average, in nanoseconds.
    think: u64,
}

impl Pool {
    pub(super) fn new(machine: &mut Machine) -> Self {
        let stores = stores(machine.threads());
        let (first_server, first_store) = (machine.first(), machine.threads() - stores);
        let servers = first_store - first_server;
        let think = (u64::from(servers) * COST * 100 / (BUSY * u64::from(machine.cpus()))).max(LEAST_THINK);
        for server in 0..servers {
            let ns = machine.random.below(think);
            machine.alarm(ns, first_server + server);
        }
        Pool {
            first_server,
            first_store,
            stages: vec![Stage::Polls; servers as usize],
            free: (first_store..machine.threads()).collect(),
            orders: vec![None; stores as usize],
            think,
        }
    }

    fn server(&mut self, machine: &mut Machine, who: Who) -> Next {
        let at = (who - self.first_server) as usize;
        let (stage, next) = match self.stages[at] {
            Stage::Polls if machine.random.below(STORED) == 0 => {
                (Stage::Asks, Next::Run(machine.random.within(5_000, 10_000), ASKS))
            }
            Stage::Asks => match self.free.pop_front() {
                Some(store) => {
                    self.orders[(store - self.first_store) as usize] = Some((who, false));
                    machine.wake(who, store, SENDS);
                    (Stage::Awaits, Next::Block(AWAITS, LockId::NONE))
                }
                // The store is busy: the answer is an old one.
                None => (Stage::Awaits, Next::Run(1_000, ASKS)),
            },
            Stage::Polls | Stage::Awaits => {
                (Stage::Answers, Next::Run(machine.random.within(50_000, 150_000), ANSWERS))
            }
            Stage::Answers => {
                let ns = machine.random.within(self.think / 2, self.think * 3 / 2);
                machine.alarm(ns, who);
                (Stage::Polls, Next::Block(POLLS, LockId::NONE))
            }
        };
        self.stages[at] = stage;
        next
    }

    fn store(&mut self, machine: &mut Machine, who: Who) -> Next {
        let order = &mut self.orders[(who - self.first_store) as usize];
        match order.take() {
            Some((server, false)) => {
                *order = Some((server, true));
                return Next::Run(machine.random.within(30_000, 90_000), FETCHES);
            }
            Some((server, true)) => machine.wake(who, server, REPLIES),
            None => {}
        }
        self.free.push_back(who);
        Next::Block(LISTENS, LockId::NONE)
    }
}

impl Program<Machine> for Pool {
    fn step(&mut self, machine: &mut Machine, who: Who) -> Next {
        if who >= self.first_store { self.store(machine, who) } else { self.server(machine, who) }
    }

    fn alarm(&mut self, machine: &mut Machine, what: u32) {
        machine.packet(what);
    }

    fn truth(&self, _: &Machine) -> Truth {
        Truth::default()
    }
}
