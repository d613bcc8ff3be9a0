//! Tables to ask: a [`Query`] in, an [`Answer`] out, for the command line and for a user interface alike.
//!
//! ```text
//!   Trace ─ rows/* ─▶ Relation ─ filter ─▶ rows ─ group ─▶ groups ─ measure ─▶ Answer
//!           only the columns asked for       dense keys      one pass for each column
//! ```
//!
//! [`Explorer::run`] answers a question at once. [`Explorer::view`] keeps the filtered columns, so that
//! [`View::group`] can open one level after the other without reading the trace again.

mod cube;
pub mod filter;
pub mod group;
mod measure;
mod names;
mod narrow;
mod order;
mod presets;
mod query;
mod question;
pub mod relation;
mod rows;
mod selection;
mod shared;
mod stacks;
mod waits;

use holdup_trace::{ThreadIdx, Trace};

use crate::classify::Classifier;
use crate::code::{Disassembler, NoDisassembler};
use crate::focus::Focus;
use crate::intervals::Timeline;
pub use group::Stop;
pub use measure::Measure;
pub use names::resolve;
pub use narrow::{Narrow, Wanted};
pub use presets::{PRESETS, Preset};
pub use query::View;
pub use question::{Answer, Process, Query};
pub(crate) use relation::MISSING;
pub use rows::{ColumnInfo, TableKind};

/// Why there is no answer.
#[derive(Debug)]
pub enum Error {
    /// The question makes no sense; the sentence says why, and what would.
    Question(String),
    /// The trace cannot be read.
    Trace(holdup_trace::Error),
    /// [`Stop::stop`] was called.
    Stopped,
}

/// A result with this module's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Question(what) => f.write_str(what),
            Error::Trace(e) => e.fmt(f),
            Error::Stopped => f.write_str("stopped before the answer was complete"),
        }
    }
}

impl std::error::Error for Error {}

impl From<holdup_trace::Error> for Error {
    fn from(e: holdup_trace::Error) -> Self {
        Error::Trace(e)
    }
}

/// Which rows of a table are asked about at all.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    window: Option<(u64, u64)>,
    focus: Option<Focus>,
}

impl Scope {
    /// Whether a row of `thread` from `from` to `to` counts.
    fn contains(&self, thread: ThreadIdx, (from, to): (u64, u64)) -> bool {
        let inside = self.window.is_none_or(|(begin, end)| from < end && to >= begin);
        inside && self.focus.as_ref().is_none_or(|f| f.contains(thread))
    }
}

/// A trace, ready to be asked.
pub struct Explorer<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) classifier: Classifier<'a>,
    /// Gives instructions their text.
    pub(crate) disassembler: &'a dyn Disassembler,
    /// What is known of its threads already.
    timeline: Option<&'a Timeline<'a>>,
    shared: shared::Shared,
}

impl<'a> Explorer<'a> {
    /// Costs next to nothing until it is asked.
    pub fn new(trace: &'a Trace) -> Self {
        let classifier = Classifier::new(trace);
        Explorer { trace, classifier, disassembler: &NoDisassembler, timeline: None, shared: shared::Shared::default() }
    }

    /// With text for instructions.
    #[must_use]
    pub fn with_disassembler(mut self, disassembler: &'a dyn Disassembler) -> Self {
        self.disassembler = disassembler;
        self
    }

    /// With a timeline, which else is made anew for each table that needs it: for more than one question.
    #[must_use]
    pub fn with_timeline(mut self, timeline: &'a Timeline<'a>) -> Self {
        self.timeline = Some(timeline);
        self
    }

    /// What the threads did, part by part. O(events) if it has to be made.
    fn followed(&self) -> Result<Followed<'_>> {
        Ok(match self.timeline {
            Some(known) => Followed::Known(known),
            None => {
                Followed::Made(Box::new(Timeline::new(self.trace, &Focus::new(self.trace, None), &self.classifier)?))
            }
        })
    }
}

/// A timeline that is there, or was made for one table.
enum Followed<'e> {
    Known(&'e Timeline<'e>),
    Made(Box<Timeline<'e>>),
}

impl<'e> std::ops::Deref for Followed<'e> {
    type Target = Timeline<'e>;

    fn deref(&self) -> &Timeline<'e> {
        match self {
            Followed::Known(timeline) => timeline,
            Followed::Made(timeline) => timeline,
        }
    }
}
