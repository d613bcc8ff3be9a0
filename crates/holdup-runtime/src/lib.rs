//! Asks the language runtimes of live processes for names. No BPF, no `unsafe`: what a process says here is as hostile as all it says.
#![forbid(unsafe_code)]

mod frames;
pub mod interpreter;
pub mod jvm;
mod memory;
mod php;
mod python;
mod ruby;
mod v8;

pub use holdup_symbols::Held;
