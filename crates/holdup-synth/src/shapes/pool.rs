//! Clients of one process and servers of another, that mostly sleep.
//!
//! Planted: nothing. A client thinks, asks its server, and waits for the answer; a server waits for the next request. There are
//! many more threads than CPUs, and little to do.

use holdup_trace::LockId;

use crate::cast::{Cast, Crew, Next, Place, Program, Who, calls};
use crate::code::kernel;
use crate::machine::Machine;
use crate::{Spec, Truth};

/// How busy the CPUs are, in percent, if there are enough threads for that.
const BUSY: u64 = 25;
/// What a request costs on average, client and server together, in nanoseconds.
const COST: u64 = 140_000;
/// Nobody thinks for less, in nanoseconds.
const LEAST_THINK: u64 = 1_000_000;

const THINKS: usize = 0;
const ASKS: usize = 1;
const SENDS: usize = 2;
const AWAITS: usize = 3;
const POLLS: usize = 4;
const ANSWERS: usize = 5;
const REPLIES: usize = 6;

const PLACES: [Place; 7] = [
    Place {
        process: 1,
        syscall: calls::SLEEP,
        kernel: kernel::SLEEP,
        user: &["clock_nanosleep", "think", "client_main", "start_thread", "clone3"],
    },
    Place {
        process: 1,
        syscall: calls::NONE,
        kernel: kernel::NONE,
        user: &["send_request", "client_main", "start_thread", "clone3"],
    },
    Place {
        process: 1,
        syscall: calls::NONE,
        kernel: kernel::NONE,
        user: &["send", "send_request", "client_main", "start_thread", "clone3"],
    },
    Place {
        process: 1,
        syscall: calls::RECEIVE,
        kernel: kernel::RECEIVE,
        user: &["recv", "read_reply", "client_main", "start_thread", "clone3"],
    },
    Place {
        process: 0,
        syscall: calls::POLL,
        kernel: kernel::POLL,
        user: &["epoll_wait", "next_request", "server_main", "start_thread", "clone3"],
    },
    Place {
        process: 0,
        syscall: calls::NONE,
        kernel: kernel::NONE,
        user: &["answer_request", "server_main", "start_thread", "clone3"],
    },
    Place {
        process: 0,
        syscall: calls::NONE,
        kernel: kernel::NONE,
        user: &["send", "answer_request", "server_main", "start_thread", "clone3"],
    },
];

/// Pairs of a client and a server.
fn pairs(threads: u32) -> u32 {
    (threads - 2) / 2
}

pub(super) fn cast(spec: &Spec) -> Cast {
    let pairs = pairs(spec.threads);
    let crews = vec![
        Crew { name: "server", process: 0, count: spec.threads - 2 - pairs },
        Crew { name: "client", process: 1, count: pairs },
    ];
    Cast { processes: &["synthd", "clientd"], crews, places: &PLACES }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Sleeps,
    Sends,
    Awaits,
}

/// Clients and servers.
#[derive(Debug)]
pub(super) struct Pool {
    first_server: Who,
    first_client: Who,
    stages: Vec<Stage>,
    serves: Vec<bool>,
    /// How long a client thinks on average, in nanoseconds.
    think: u64,
}

impl Pool {
    pub(super) fn new(machine: &mut Machine) -> Self {
        let pairs = pairs(machine.threads());
        let first_server = machine.first();
        let first_client = machine.threads() - pairs;
        let think = (u64::from(pairs) * COST * 100 / (BUSY * u64::from(machine.cpus()))).max(LEAST_THINK);
        for client in first_client..machine.threads() {
            let ns = machine.random.below(think);
            machine.timer(client, ns);
        }
        Pool {
            first_server,
            first_client,
            stages: vec![Stage::Sleeps; pairs as usize],
            serves: vec![false; pairs as usize],
            think,
        }
    }

    fn client(&mut self, machine: &mut Machine, who: Who) -> Next {
        let at = who - self.first_client;
        let (stage, next) = match self.stages[at as usize] {
            Stage::Sleeps => (Stage::Sends, Next::Run(machine.random.within(10_000, 40_000), ASKS)),
            Stage::Sends => {
                machine.wake(who, self.first_server + at, SENDS);
                (Stage::Awaits, Next::Block(AWAITS, LockId::NONE))
            }
            Stage::Awaits => {
                let ns = machine.random.within(self.think / 2, self.think * 3 / 2);
                machine.timer(who, ns);
                (Stage::Sleeps, Next::Block(THINKS, LockId::NONE))
            }
        };
        self.stages[at as usize] = stage;
        next
    }

    fn server(&mut self, machine: &mut Machine, who: Who) -> Next {
        let at = who - self.first_server;
        let serves = &mut self.serves[at as usize];
        *serves = !*serves;
        if *serves {
            return Next::Run(machine.random.within(50_000, 150_000), ANSWERS);
        }
        machine.wake(who, self.first_client + at, REPLIES);
        Next::Block(POLLS, LockId::NONE)
    }
}

impl Program for Pool {
    fn step(&mut self, machine: &mut Machine, who: Who) -> Next {
        if who >= self.first_client { self.client(machine, who) } else { self.server(machine, who) }
    }

    fn alarm(&mut self, _: &mut Machine, _: u32) {}

    fn truth(&self, _: &Machine) -> Truth {
        Truth::default()
    }
}
