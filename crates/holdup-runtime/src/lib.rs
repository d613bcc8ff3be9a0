//! Asks the language runtimes of live processes for names. No BPF, no `unsafe`: what a process says here is as hostile as all it says.
#![forbid(unsafe_code)]

pub mod jvm;
pub mod python;
