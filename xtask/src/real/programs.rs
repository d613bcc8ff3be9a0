//! Builds, pipelines and runtimes.

use super::case::Case;

/// All of them, in the table's order.
pub const ALL: &[&Case] = &[];
