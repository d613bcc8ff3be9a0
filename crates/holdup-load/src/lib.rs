//! How throughput grows with threads or CPUs.
//!
//! 1. [`sweep`] runs a command over counts of threads or CPUs, interleaved, and measures it.
//! 2. [`law`] fits the Universal Scalability Law and Amdahl's; [`confidence`] says how far they can be trusted.
//! 3. [`scale`] makes the answer of both: points, law, advice.
//! 4. [`plot`] draws it.
//!
//! Nothing here knows traces.

#![forbid(unsafe_code)]

pub mod confidence;
pub mod law;
pub mod plot;
pub mod scale;
pub mod sweep;
