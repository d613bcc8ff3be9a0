//! Why were the cores idle? Pure functions over a [`Trace`](holdup_trace::Trace).
//!
//! 1. [`intervals`] follows every thread forward through the events: running, runnable, waiting, and who ended each
//!    wait. This is where the rules about raced wake-ups, timed re-waits, owners and losses live.
//! 2. [`blame`] sweeps backwards over the intervals with one parent pointer per thread and charges every CPU second
//!    once, to what it was waiting for.
//! 3. [`findings`] groups the charges into culprits, ranks them, and says what it saw.
//!
//! Nothing here reads files, the clock or the machine; the same trace gives the same answer.

mod about;
pub mod affinity;
pub mod annotate;
pub mod blame;
pub mod chain;
pub mod classify;
pub mod code;
pub mod contention;
pub mod diff;
pub mod explore;
pub mod findings;
pub mod focus;
mod idiom;
pub mod intervals;
mod known;
pub mod label;
pub mod lanes;
mod leaves;
mod lock_names;
mod lock_words;
pub mod quota;
pub mod replay;
pub mod report;
mod runtime;
mod schedulers;
mod segments;
pub mod servers;
pub mod spans;
pub mod spins;
mod stalls;
mod subjects;
pub mod threads;
mod turns;

pub use code::{CodeLoop, Decoded, Disassembler, Disassembly, Idiom, NoDisassembler};
pub use findings::{explain, explain_study};
pub use idiom::{IdiomFacts, IdiomKind};
pub use report::{Explanation, Options};
