//! The programs: what their threads do, and what is wrong with them.

mod chain;
mod hub;
mod lock;
mod pool;

use crate::Spec;
use crate::cast::{Cast, Program};
use crate::machine::Machine;

/// Which program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A server: requests of several kinds come through dispatchers to a pool. Planted: a thread that holds a lock while
    /// it scans, again and again, so that in the end all requests queue for it.
    Lock,
    /// All threads get their work from one dispatcher, which works, waits for the disk, and waits for clients.
    Hub,
    /// All threads pass one lock to each other in the order in which they came.
    Chain,
    /// Servers that mostly wait for requests from outside: nobody is to blame.
    Pool,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Shape; 4] = [Shape::Lock, Shape::Hub, Shape::Chain, Shape::Pool];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Shape::Lock => "lock",
            Shape::Hub => "hub",
            Shape::Chain => "chain",
            Shape::Pool => "pool",
        }
    }

    /// The shape of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }

    pub(crate) fn cast(self, spec: &Spec) -> Cast {
        match self {
            Shape::Lock => lock::cast(spec),
            Shape::Hub => hub::cast(spec),
            Shape::Chain => chain::cast(spec),
            Shape::Pool => pool::cast(spec),
        }
    }

    pub(crate) fn program(self, machine: &mut Machine) -> Box<dyn Program> {
        match self {
            Shape::Lock => Box::new(lock::Server::new(machine)),
            Shape::Hub => Box::new(hub::Hub::new(machine)),
            Shape::Chain => Box::new(chain::Convoy::new(machine)),
            Shape::Pool => Box::new(pool::Pool::new(machine)),
        }
    }
}
