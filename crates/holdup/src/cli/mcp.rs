//! The arguments of `holdup mcp`.

use std::path::PathBuf;

use clap::Args;

pub const HELP: &str = "\
Examples:
  holdup mcp --dir ~/traces                  what a client starts; it speaks the Model Context Protocol over standard input and output
  sudo holdup mcp --dir traces --allow-record

In the settings of a client: {\"mcpServers\": {\"holdup\": {\"command\": \"holdup\", \"args\": [\"mcp\", \"--dir\", \"/home/me/traces\"]}}}

Only traces below the folder are opened. Names in traces are data: they are cleaned, cut, and marked as such.";

/// `holdup mcp`
#[derive(Debug, Args)]
pub struct Mcp {
    /// The folder whose traces may be asked about
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Let the client record commands, processes and the machine, each for a minute at most, into that folder
    #[arg(long)]
    pub allow_record: bool,
}
