//! The arguments of `holdup view`.

use std::path::PathBuf;

use clap::Args;

pub const HELP: &str = "\
Examples:
  holdup view build.holdup
  holdup view before.holdup after.holdup      two traces side by side
  holdup view perf.data --port 7000 --no-open
  holdup view scale.json                      a result of holdup lab, scale, load or fleet

The page is served to this machine alone, at an address that holds a secret; Ctrl-C ends it. To look at it from another machine, \
run the printed ssh line there.";

/// `holdup view`
#[derive(Debug, Args)]
pub struct View {
    /// The traces
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// Where to listen; any free port if not given
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port: u16,
    /// Only print the address
    #[arg(long)]
    pub no_open: bool,
}
