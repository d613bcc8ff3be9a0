//! What the page asks of an opened trace, and the answers, as bytes.
//!
//! A [`Model`] holds a trace that was followed once. [`Model::ask`] answers one question of the page: it opens no file, reads
//! no clock and waits for nothing, so that the same code runs behind holdup's server and as WebAssembly in a report.
//!
//! ```text
//!   Trace ─▶ Timeline ─▶ base: lanes of threads and CPUs by buckets of time, use of the CPUs   (once, when it is opened)
//!                    └─▶ explanation, charges by bucket                                        (once, when it is asked for)
//!   question ─▶ wide window: from the base    narrow window: from the parts of the trace that it touches
//! ```
//!
//! Memory is bounded: the base takes at most some 200 MB ([`base`]), a few parts of the trace are kept for the next question.

#![forbid(unsafe_code)]

mod answer;
mod at;
mod base;
mod cancel;
mod chains;
mod cpus;
mod crowds;
mod disassembler;
mod documents;
mod error;
mod explained;
mod flame;
mod framing;
mod gallery;
mod lane;
mod lanes;
mod memo;
mod model;
mod parts;
mod people;
mod plots;
mod processes;
mod request;
mod rows;
mod search;
mod span;
mod spans;
mod study;
mod summary;
mod table;
mod usage;
mod window;

pub use answer::Answer;
pub use cancel::Cancel;
pub use disassembler::Machine;
pub use error::{Error, Result};
pub use gallery::{Gallery, Item};
pub use model::{Model, Pace, Sources};
pub use plots::Plots;
pub use request::{Ask, Question};
