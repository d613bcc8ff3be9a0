//! The arguments of `holdup report` and `holdup cut`.

use std::path::PathBuf;

use clap::Args;

use super::window;

pub const REPORT_HELP: &str = "\
Examples:
  holdup report build.holdup -o build.html
  holdup report build.holdup -o build.html --redact          without command lines, paths and the host's name
  holdup report day.holdup -o stall.html --window 3600..3605
  holdup report -o drop.html                                 a page on which a trace is dropped; it never leaves the browser

The file opens from disk, asks no network, and is at most 5 MB long, to be attached to a bug report. Of a recording that is too long \
for that it holds the stretches in which the most was held up, says so, and keeps what is said of the whole.";

pub const CUT_HELP: &str = "\
Examples:
  holdup cut day.holdup --window 3600..3605 -o stall.holdup
  holdup cut day.holdup --redact -o public.holdup            all of it, without command lines, paths and the host's name

Every thread begins as it was: a wait that began before the window goes on in it.";

/// `holdup report`
#[derive(Debug, Args)]
pub struct Report {
    /// The trace; none for a page on which one is dropped
    pub trace: Option<PathBuf>,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Only this part, in seconds since the trace's start
    #[arg(long, value_name = "A..B", value_parser = window)]
    pub window: Option<(f64, f64)>,
    /// Without command lines, paths and the host's name
    #[arg(long)]
    pub redact: bool,
}

/// `holdup cut`
#[derive(Debug, Args)]
pub struct Cut {
    /// The trace
    pub trace: PathBuf,
    /// The .holdup file to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Only this part, in seconds since the trace's start
    #[arg(long, value_name = "A..B", value_parser = window)]
    pub window: Option<(f64, f64)>,
    /// Without command lines, paths and the host's name
    #[arg(long)]
    pub redact: bool,
}
