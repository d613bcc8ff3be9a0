//! What a run of the lab says. The document is `holdup.lab/1`.

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::result::Outcome;

/// The name and version of the document.
pub const SCHEMA: &str = "holdup.lab/1";

/// All experiments of one run of the lab.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// Where it ran.
    pub machine: Machine,
    /// Whether the short parameters were used.
    pub quick: bool,
    /// What was found.
    pub experiments: Vec<Outcome>,
}
