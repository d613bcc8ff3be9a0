//! A convoy: threads that hand one lock to each other in the order in which they came.
//!
//! Planted: all of them need the lock of `append_entry` for a moment, and for that moment nearly all of them wait. Nobody
//! holds it for long; that it is handed to a thread that has yet to come onto a CPU is what costs.

use std::collections::VecDeque;

use crate::cast::{Cast, Crew, Next, Place, Program, Who, calls};
use crate::code::kernel;
use crate::machine::Machine;
use crate::spec::{Planted, Spec, Truth};

/// All threads have come once after so many nanoseconds.
const BEGIN: u64 = 10_000_000;

const PREPARES: usize = 0;
const HOLDS: usize = 1;
const QUEUES: usize = 2;

const PLACES: [Place; 3] = [
    Place {
        process: 0,
        syscall: calls::NONE,
        kernel: kernel::NONE,
        user: &["prepare_entry", "log_request", "writer_main", "start_thread", "clone3"],
    },
    Place {
        process: 0,
        syscall: calls::NONE,
        kernel: kernel::NONE,
        user: &["append_entry", "log_request", "writer_main", "start_thread", "clone3"],
    },
    Place {
        process: 0,
        syscall: calls::FUTEX,
        kernel: kernel::FUTEX,
        user: &[
            "__lll_lock_wait",
            "pthread_mutex_lock",
            "append_entry",
            "log_request",
            "writer_main",
            "start_thread",
            "clone3",
        ],
    },
];

pub(super) fn cast(spec: &Spec) -> Cast {
    let crews = vec![Crew { name: "writer", process: 0, count: spec.threads - 1 }];
    Cast { processes: &["synthd"], crews, places: &PLACES }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begins,
    Prepares,
    Queues,
    Holds,
}

/// The threads of the convoy.
#[derive(Debug)]
pub(super) struct Convoy {
    stages: Vec<Stage>,
    queue: VecDeque<Who>,
    taken_at: u64,
    held_ns: u64,
    turns: u64,
}

impl Convoy {
    pub(super) fn new(machine: &mut Machine) -> Self {
        for who in machine.first()..machine.threads() {
            let ns = machine.random.below(BEGIN);
            machine.timer(who, ns);
        }
        Convoy {
            stages: vec![Stage::Begins; machine.threads() as usize],
            queue: VecDeque::new(),
            taken_at: 0,
            held_ns: 0,
            turns: 0,
        }
    }

    fn hold(&mut self, machine: &mut Machine) -> (Stage, Next) {
        self.taken_at = machine.now();
        (Stage::Holds, Next::Run(machine.random.within(1_500, 3_500), HOLDS))
    }

    fn hand_on(&mut self, machine: &mut Machine, who: Who) {
        self.held_ns += machine.now() - self.taken_at;
        self.turns += 1;
        machine.holder = self.queue.pop_front();
        if let Some(next) = machine.holder {
            machine.wake(who, next, HOLDS);
        }
    }
}

impl Program<Machine> for Convoy {
    fn step(&mut self, machine: &mut Machine, who: Who) -> Next {
        let prepares =
            |machine: &mut Machine| (Stage::Prepares, Next::Run(machine.random.within(4_000, 12_000), PREPARES));
        let (stage, next) = match self.stages[who as usize] {
            Stage::Begins => prepares(machine),
            Stage::Prepares if machine.holder.is_none() => {
                machine.holder = Some(who);
                self.hold(machine)
            }
            Stage::Prepares => {
                self.queue.push_back(who);
                (Stage::Queues, Next::Block(QUEUES, machine.lock))
            }
            Stage::Queues => self.hold(machine),
            Stage::Holds => {
                self.hand_on(machine, who);
                prepares(machine)
            }
        };
        self.stages[who as usize] = stage;
        next
    }

    fn alarm(&mut self, _: &mut Machine, _: u32) {}

    fn truth(&self, machine: &Machine) -> Truth {
        Truth {
            kind: Some(Planted::Convoy),
            process: "synthd".to_owned(),
            pid: machine.pid(0),
            function: "append_entry".to_owned(),
            lock: Some(machine.lock_address()),
            held_ns: self.held_ns,
            phases: self.turns,
            ..Truth::default()
        }
    }
}
