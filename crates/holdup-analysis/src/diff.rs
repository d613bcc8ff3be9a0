//! Two traces, or two sets, side by side: what changed, and which change is the cause of the others.
//!
//! 1. [`facts`] reduces each run to names and nanoseconds.
//! 2. [`series`] lays a measure of all runs side by side and tells change from noise.
//! 3. [`functions`] and [`items`] match what both sides have in common: functions, locks, places that wait.
//! 4. [`roles`] tells causes from symptoms: a wait is a symptom of what it ends at, spinning is one of a longer hold.
//! 5. [`report`] is the answer.
//!
//! [`scaling`] asks the same of few and of many threads: what of a unit of work costs more, and by which law.

mod change;
pub mod facts;
mod functions;
mod items;
mod regress;
pub mod report;
mod roles;
pub mod scaling;
pub mod series;

pub use facts::Facts;
pub use report::{Change, Diff, DiffOptions, diff, folded};
