//! The arguments of `holdup top`.

use std::time::Duration;

use clap::Args;

use super::duration;

pub const HELP: &str = "\
Examples:
  sudo holdup top
  sudo holdup top -p postgres --over 5s
  sudo holdup top --once --json          one document, as holdup explain prints it

Each page speaks of the seconds before it. Keys: q ends it, space holds a page,
arrows or 1-9 choose a cause, s sorts the threads.";

/// `holdup top`
#[derive(Debug, Args)]
pub struct Top {
    /// Focus on these processes and their children, by number or name
    #[arg(short, long, value_name = "PID|NAME,…", value_delimiter = ',')]
    pub pid: Vec<String>,
    /// Over how long each page looks, such as 2s
    #[arg(long, default_value = "2s", value_parser = duration, value_name = "TIME")]
    pub over: Duration,
    /// One page, then end
    #[arg(long)]
    pub once: bool,
    /// With --once: print as JSON
    #[arg(long)]
    pub json: bool,
    /// How many causes to show, with --json
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub top: usize,
}
