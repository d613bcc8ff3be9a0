//! What holds cores up, for assistants: the Model Context Protocol over standard input and output.
//!
//! ```text
//!   client ─▶ server ─▶ tools: name, arguments ─▶ desk: opened traces ─▶ holdup-analysis
//!          ◀─ a small JSON document ◀─ shape: rounded, cut, cleaned, and what was left out ◀─┘
//! ```
//!
//! The judgement is that of `holdup explain`; nothing is computed here. How traces are opened and recorded, the caller says
//! ([`Workplace`]).
//!
//! *Invariant:* only what lies below one folder is opened ([`folder`]), and nothing is recorded unless the caller allows it.
//!
//! *Invariant:* every answer leaves through [`shape`]: what a trace calls its threads and functions is cleaned of characters that
//! act, held to a length, marked as data, and no answer is longer than [`shape::MOST_BYTES`].

#![forbid(unsafe_code)]

mod answers;
mod arguments;
mod desk;
mod folder;
mod recording;
mod server;
mod shape;
mod tools;

use std::io;
use std::path::Path;
use std::time::Duration;

use holdup_analysis::Disassembler;
use holdup_trace::Trace;

/// What the program around this offers.
pub trait Workplace: Send + Sync + 'static {
    /// Opens a trace of any format.
    ///
    /// # Errors
    /// If it cannot be read; the sentence is for the user.
    fn open(&self, path: &Path) -> holdup_trace::Result<Trace>;

    /// Reads instructions.
    fn disassembler(&self) -> &dyn Disassembler;

    /// Records `whom` for at most so long into `output`, which does not exist yet.
    ///
    /// # Errors
    /// If that fails: what the recorder said.
    fn record(&self, whom: &Whom, most: Duration, output: &Path) -> Result<(), String>;
}

/// Whom to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whom {
    /// A command with its arguments, and its children.
    Command(Vec<String>),
    /// Running processes, by number or name.
    Processes(String),
    /// The machine.
    All,
}

/// Answers until the client closes its end. Traces are those below `folder`; `may_record` offers the tool that records.
///
/// # Errors
/// If the folder cannot be looked at, or if the streams fail.
pub fn serve(workplace: impl Workplace, folder: &Path, may_record: bool) -> io::Result<()> {
    let desk = desk::Desk::new(Box::new(workplace), folder::Folder::new(folder)?, may_record);
    server::run(desk)
}
