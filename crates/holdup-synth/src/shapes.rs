//! The programs: what their threads do, and what is wrong with them.

mod chain;
mod hub;
mod lock;
mod pool;

use crate::cast::{Cast, Program};
use crate::machine::Machine;
use crate::spec::{Shape, Spec};

/// Who is in the program of `spec`.
pub(crate) fn cast(spec: &Spec) -> Cast {
    match spec.shape {
        Shape::Lock => lock::cast(spec),
        Shape::Hub => hub::cast(spec),
        Shape::Chain => chain::cast(spec),
        Shape::Pool => pool::cast(spec),
    }
}

/// The program of a shape, on a machine that was made for it.
pub(crate) fn program(shape: Shape, machine: &mut Machine) -> Box<dyn Program<Machine>> {
    match shape {
        Shape::Lock => Box::new(lock::Server::new(machine)),
        Shape::Hub => Box::new(hub::Hub::new(machine)),
        Shape::Chain => Box::new(chain::Convoy::new(machine)),
        Shape::Pool => Box::new(pool::Pool::new(machine)),
    }
}
