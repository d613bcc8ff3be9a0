//! The arguments of `holdup agent`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::duration;

pub const HELP: &str = "\
Examples:
  sudo holdup agent                                   http://127.0.0.1:9464/metrics, 2 s of each minute
  sudo holdup agent --over 5s --every 30s -p postgres
  sudo holdup agent --listen 0.0.0.0:9464 --secret-file /etc/holdup/secret

Every so often it records for a moment, explains that as `holdup explain` does, and adds it up: CPU time held up by cause,
spinning, ready, idle. Prometheus fetches it; docs/agent.md has queries, an alert and a dashboard. Ctrl-C ends it.";

/// The command that `holdup agent` starts to answer who fetches.
pub const ANSWER_METRICS: &str = "answer-metrics";

/// `holdup agent`
#[derive(Debug, Args)]
pub struct Agent {
    /// Focus on these processes and their children, by number or name
    #[arg(short, long, value_name = "PID|NAME,…", value_delimiter = ',')]
    pub pid: Vec<String>,
    /// Over how long each look is
    #[arg(long, default_value = "2s", value_parser = duration, value_name = "TIME")]
    pub over: Duration,
    /// From the beginning of one look to that of the next
    #[arg(long, default_value = "60s", value_parser = duration, value_name = "TIME")]
    pub every: Duration,
    /// Where to listen. Beyond this machine only with --secret-file
    #[arg(long, default_value = "127.0.0.1:9464", value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// A file with the secret that who fetches has to send, as `Authorization: Bearer SECRET`
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// End after so many looks
    #[arg(long, value_name = "N")]
    pub rounds: Option<u64>,
}
