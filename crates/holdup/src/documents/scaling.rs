//! What `holdup scale --json` prints.

use holdup_analysis::diff::Facts;
use holdup_analysis::diff::scaling::Attribution;
use holdup_load::scale::Scaling;
use serde::Serialize;

/// Points, laws, and what the recorded runs say.
#[derive(Serialize, schemars::JsonSchema)]
pub struct Answer {
    /// Points and laws.
    #[serde(flatten)]
    pub scaling: Scaling,
    /// Whether Ctrl-C ended it.
    pub interrupted: bool,
    /// The recorded runs.
    pub traces: Vec<Traced>,
    /// What they say of the loss.
    pub attribution: Option<Attribution>,
}

/// One recorded run.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Traced {
    /// The count.
    pub n: usize,
    /// The recording, if it is kept.
    pub path: Option<String>,
    /// Units of work that it did.
    pub work: f64,
    /// How long it took, in seconds; recording is part of that.
    pub elapsed_s: f64,
    /// CPU seconds.
    pub cpu_s: f64,
    /// What is said of it.
    #[serde(skip)]
    pub facts: Facts,
}
