//! How much work a system does in a second, how long each piece of it takes, and how both change with threads or CPUs.
//!
//! - `holdup load`: a [`script`] makes the calls, a [`driver`] carries them, [`harness`] runs them on threads that share nothing,
//!   [`report`] says what came of it.
//! - `holdup scale`: [`sweep`] runs a command over counts of threads or CPUs, interleaved; [`law`] fits the Universal Scalability
//!   Law and Amdahl's; [`confidence`] says how far they can be trusted; [`scale`] makes the answer of all that; [`plot`] draws it.
//!
//! [`stats`] says how sure means, percentiles and differences of measurements are.
//!
//! Nothing here knows traces.

#![forbid(unsafe_code)]

pub mod confidence;
pub mod driver;
pub mod harness;
pub mod law;
pub mod plot;
pub mod report;
pub mod scale;
pub mod script;
pub mod session;
pub mod stats;
pub mod sweep;
