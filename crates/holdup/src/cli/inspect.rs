//! Arguments of the commands that look at one wait, one function, the threads.

use std::path::PathBuf;
use std::time::Duration;

pub use crate::text::threads::ThreadOrder;
use clap::{ArgGroup, Args};

pub const CHAIN_HELP: &str = "\
Examples:
  holdup chain build.holdup --at 1.5                     the longest wait at that time
  holdup chain build.holdup --at 1500ms --thread cc1
  holdup chain build.holdup --wait 184
  holdup chain build.holdup --at 1.5 --follow --top 40   the hand-overs of its lock, in time order

Each hop names who readied the one before, how long it had waited itself, how long it was ready before it ran, and what \
it did until then. The numbers of waits are the column `id` of `holdup table TRACE waits`.";

pub const DISASM_HELP: &str = "\
Examples:
  holdup disasm build.holdup find_free_block
  holdup disasm build.holdup 'ut_delay|rw_lock' --all
  holdup disasm build.holdup find_free_block --json

FUNCTION is a whole name, else the end of one, else a part, else a regular expression; of several functions the one \
with most samples is shown.";

pub const THREADS_HELP: &str = "\
Examples:
  holdup threads build.holdup
  holdup threads build.holdup --sort waited --top 10
  holdup threads 4711                                    a running process

A number that is no file's name is a process id.";

/// `holdup chain`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("start").required(true).args(["at", "wait", "span"])))]
pub struct Chain {
    /// The trace; - for standard input
    pub trace: PathBuf,
    /// The wait that is open at this time since the trace's start, such as 1.5 or 1500ms
    #[arg(long, value_parser = super::duration, value_name = "TIME")]
    pub at: Option<Duration>,
    /// Of this thread, by tid or name; else the longest wait of the focus
    #[arg(long, value_name = "THREAD", requires = "at")]
    pub thread: Option<String>,
    /// The wait with this number
    #[arg(long, value_name = "ID")]
    pub wait: Option<u64>,
    /// The span with this number: what its time was, piece by piece
    #[arg(long, value_name = "ID", conflicts_with_all = ["follow", "focus"])]
    pub span: Option<u64>,
    /// Only this process (name or pid) and its children
    #[arg(long, value_name = "PROC")]
    pub focus: Option<String>,
    /// List the hand-overs of the wait's lock in time order
    #[arg(long)]
    pub follow: bool,
    /// How many hops, and how many hand-overs, to show
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = super::positive)]
    pub top: usize,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// `holdup disasm`
#[derive(Debug, Args)]
pub struct Disasm {
    /// The trace; - for standard input
    pub trace: PathBuf,
    /// The function
    pub function: String,
    /// Show instructions far from any sample, too
    #[arg(long)]
    pub all: bool,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// `holdup threads`
#[derive(Debug, Args)]
pub struct Threads {
    /// The trace, or the number of a running process; - for standard input
    #[arg(value_name = "TRACE|PID")]
    pub subject: PathBuf,
    /// Only this process (name or pid) and its children
    #[arg(long, value_name = "PROC")]
    pub focus: Option<String>,
    /// All threads, in focus or not
    #[arg(long, conflicts_with = "focus")]
    pub all: bool,
    /// What comes first
    #[arg(long, value_enum, default_value = "ran", value_name = "COL")]
    pub sort: ThreadOrder,
    /// How many threads to show
    #[arg(long, default_value_t = 40, value_name = "N", value_parser = super::positive)]
    pub top: usize,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}
