//! Questions to a data set of many traces, and the way traces take to where it is kept.
//!
//! ```text
//!   folder or object store ─▶ tables ─ sql/views ─▶ traces of the chosen days ─ sql/*.sql ─▶ rows
//!                                                    rows by host ─▶ what changed, who differs
//!   data set in a folder ─ ship ─▶ data set elsewhere
//! ```
//!
//! What a data set holds is told by `holdup_export::dataset`. The questions are SQL that Apache Spark takes, too, word for word
//! (docs/fleet.md); what SQL can't say well, tests of significance, is made from their rows here.
//!
//! *Invariant:* an answer rests on whole numbers, and its order is complete: every engine gives the same rows.

#![forbid(unsafe_code)]

mod changes;
mod engine;
mod error;
mod files;
mod peers;
mod question;
mod rows;
mod ship;
mod store;
mod when;

pub use changes::{Change, Changes, HostShares, Significance};
pub use engine::{Chosen, Engine, Wanted};
pub use error::{Error, Result};
pub use peers::Different;
pub use question::Question;
pub use rows::{Cell, Rows};
pub use ship::{Manner, Shipped, ship};
pub use store::Place;
pub use when::{Since, changes};
