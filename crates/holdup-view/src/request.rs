//! What can be asked.

use serde::Deserialize;

use crate::window::Window;
use crate::{Error, Result};

/// A question with what its host needs to know.
#[derive(Debug, Clone, Deserialize)]
pub struct Question {
    /// Of which trace.
    #[serde(default)]
    pub trace: u32,
    /// Which part of the page asks: a newer question of the same one takes the place of an older one. Empty for none.
    #[serde(default)]
    pub gesture: String,
    /// How new it is.
    #[serde(default)]
    pub turn: u64,
    /// The question.
    #[serde(flatten)]
    pub ask: Ask,
}

impl Question {
    /// As the page sends it.
    ///
    /// # Errors
    /// If it is no question.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        serde_json::from_slice(bytes).map_err(|e| Error::Question(format!("this is no question of the page: {e}")))
    }
}

/// The questions.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase")]
pub enum Ask {
    /// What the trace is.
    Summary,
    /// What held the CPUs up: `holdup.explain/1`. Slow for the first time.
    Explain,
    /// What the CPUs did over time.
    Use(UseOf),
    /// Which lanes there are.
    Rows(RowsOf),
    /// What lanes look like.
    Lanes(LanesOf),
    /// When processes lived.
    Processes(ProcessesOf),
    /// What is at a place.
    At(AtOf),
}

/// What an answer is restricted to.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Selection {
    /// A row's id.
    pub row: Option<String>,
    /// The name of processes.
    pub process: Option<String>,
    /// A finding's id.
    pub finding: Option<String>,
    /// A lock's key.
    pub lock: Option<String>,
    /// A function.
    pub function: Option<String>,
}

impl Selection {
    /// Whether it selects nothing.
    pub fn is_empty(&self) -> bool {
        *self == Selection::default()
    }
}

/// `use`
#[derive(Debug, Clone, Deserialize)]
pub struct UseOf {
    /// When.
    pub window: Window,
    /// Pixels.
    pub px: usize,
    /// Whose CPU use is laid over it.
    #[serde(default)]
    pub overlay: Selection,
}

/// What kind of lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One for each CPU.
    Cpu,
    /// One for each thread, in groups.
    #[default]
    Thread,
}

/// `rows`
#[derive(Debug, Clone, Deserialize)]
pub struct RowsOf {
    /// What kind.
    #[serde(default)]
    pub lanes: Kind,
    /// Groups that are open.
    #[serde(default)]
    pub open: Vec<String>,
    /// Only what has this in its name.
    #[serde(default)]
    pub search: String,
    /// How many to leave out before.
    #[serde(default)]
    pub offset: usize,
    /// How many.
    pub limit: usize,
    /// Only what has a part in it.
    #[serde(default)]
    pub selection: Selection,
    /// A row whose groups are to be opened.
    #[serde(default)]
    pub reveal: Option<String>,
}

/// `lanes`
#[derive(Debug, Clone, Deserialize)]
pub struct LanesOf {
    /// When.
    pub window: Window,
    /// Pixels.
    pub px: usize,
    /// Rows.
    pub ids: Vec<String>,
}

/// `processes`
#[derive(Debug, Clone, Deserialize)]
pub struct ProcessesOf {
    /// When.
    pub window: Window,
    /// How many to leave out before.
    #[serde(default)]
    pub offset: usize,
    /// How many.
    pub limit: usize,
}

/// `at`
#[derive(Debug, Clone, Deserialize)]
pub struct AtOf {
    /// Where.
    pub row: String,
    /// When, in nanoseconds since the trace's start.
    pub time: f64,
}
