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
    /// What lanes of spans look like.
    Spans(LanesOf),
    /// One span.
    Span(SpanOf),
    /// The slowest spans of each name.
    Slowest(SlowestOf),
    /// What the slow spans of a name have that the others have not. Slow.
    Slow(SlowOf),
    /// When processes lived.
    Processes(ProcessesOf),
    /// What is at a place.
    At(AtOf),
    /// From a wait to its cause.
    Chain(ChainOf),
    /// Rows and groups.
    Table(TableOf),
    /// A flame graph.
    Flame(FlameOf),
    /// A function, instruction by instruction.
    Code(CodeOf),
    /// What changed between traces.
    Diff(DiffOf),
    /// What is called so.
    Search(SearchOf),
    /// Results of measurements.
    Plots,
}

impl Ask {
    /// The finding to which it is restricted.
    pub(crate) fn finding(&self) -> Option<&String> {
        match self {
            Ask::Use(of) => of.overlay.finding.as_ref(),
            Ask::Rows(of) => of.selection.finding.as_ref(),
            Ask::Chain(of) => of.finding.as_ref(),
            Ask::Flame(of) => of.filter.finding.as_ref(),
            _ => None,
        }
    }
}

/// What an answer is restricted to.
#[derive(Debug, Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Selection {
    /// A row's id.
    pub row: Option<String>,
    /// The name of processes.
    pub process: Option<String>,
    /// The name of threads.
    pub thread: Option<String>,
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
    /// Whether the spans of threads have rows of their own.
    #[serde(default)]
    pub spans: bool,
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

/// `span`: by its number, or by a row and a time.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct SpanOf {
    /// Its number in the table `span`: with what its time was.
    pub id: Option<u32>,
    /// A row of spans.
    pub row: Option<String>,
    /// When, in nanoseconds since the trace's start.
    pub time: Option<f64>,
    /// How far from there it may be, in nanoseconds.
    pub slack: f64,
    /// Above 0 the next one that begins after that time, below 0 the last before it.
    pub step: i8,
}

/// `slowest`
#[derive(Debug, Clone, Deserialize)]
pub struct SlowestOf {
    /// How many of each name.
    pub top: usize,
}

/// `slow`
#[derive(Debug, Clone, Deserialize)]
pub struct SlowOf {
    /// What they are called.
    pub name: String,
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

/// `chain`: by the number of the wait, or by a time and a row, or by a finding.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ChainOf {
    /// The wait's number.
    pub wait: Option<u64>,
    /// Who waits.
    pub row: Option<String>,
    /// When, in nanoseconds since the trace's start.
    pub time: Option<f64>,
    /// For what.
    pub finding: Option<String>,
}

/// `table`
#[derive(Debug, Clone, Deserialize)]
pub struct TableOf {
    /// A table, or a ready-made question.
    pub table: String,
    /// Columns to group by.
    #[serde(default)]
    pub by: Vec<String>,
    /// Measures of groups, or columns of rows.
    #[serde(default)]
    pub show: Vec<String>,
    /// Which rows.
    #[serde(default, rename = "where")]
    pub filters: Vec<String>,
    /// By what they are sorted.
    #[serde(default)]
    pub sort: Vec<String>,
    /// At most this many.
    #[serde(default)]
    pub top: Option<usize>,
    /// When.
    #[serde(default)]
    pub window: Option<Window>,
    /// Values of the first columns of `by`: rows of that group alone, by the next column.
    #[serde(default)]
    pub path: Vec<serde_json::Value>,
    /// Only the first level of the groups.
    #[serde(default)]
    pub tree: bool,
    /// Only rows of what was recorded.
    #[serde(default)]
    pub focus: bool,
    /// As text.
    #[serde(default)]
    pub csv: bool,
    /// Only what has a part in it.
    #[serde(default)]
    pub selection: Selection,
}

impl TableOf {
    /// All of a table.
    pub(crate) fn all(table: &str) -> Self {
        TableOf {
            table: table.to_owned(),
            by: Vec::new(),
            show: Vec::new(),
            filters: Vec::new(),
            sort: Vec::new(),
            top: None,
            window: None,
            path: Vec::new(),
            tree: false,
            focus: false,
            csv: false,
            selection: Selection::default(),
        }
    }
}

/// What a flame graph is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Of {
    /// What ran.
    Cpu,
    /// What waited.
    Off,
    /// Who ended waits.
    Wakers,
    /// Who held up whom.
    Blame,
}

/// `flame`
#[derive(Debug, Clone, Deserialize)]
pub struct FlameOf {
    /// Of what.
    pub of: Of,
    /// When.
    #[serde(default)]
    pub window: Option<Window>,
    /// Whose.
    #[serde(default)]
    pub filter: Selection,
    /// With the innermost function first.
    #[serde(default)]
    pub callers: bool,
    /// With the largest first, not by name.
    #[serde(default)]
    pub left_heavy: bool,
    /// Frames below this share of the whole are left out.
    #[serde(default)]
    pub min_share: f64,
    /// Compared with the same of this trace.
    #[serde(default)]
    pub against: Option<u32>,
}

/// `code`
#[derive(Debug, Clone, Deserialize)]
pub struct CodeOf {
    /// The function.
    pub function: String,
}

/// `diff`
#[derive(Debug, Clone, Deserialize)]
pub struct DiffOf {
    /// Traces.
    pub before: Vec<u32>,
    /// Traces.
    pub after: Vec<u32>,
}

/// `search`
#[derive(Debug, Clone, Deserialize)]
pub struct SearchOf {
    /// A part of a name, or a number.
    pub text: String,
    /// Hits of each kind.
    #[serde(default = "some")]
    pub limit: usize,
}

const fn some() -> usize {
    50
}
