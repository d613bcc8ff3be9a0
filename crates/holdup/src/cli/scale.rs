//! `holdup scale`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{duration, positive};

const HELP: &str = "\
Examples:
  holdup scale --threads 1,2,4,8 -- ./bench --threads {n}
  holdup scale --threads 1,2,4,8 --work 'ops: ([0-9]+)' --plot scaling.svg -- ./bench {n}
  holdup scale --threads 1,2,4 --load -- holdup load run compute.rn -t {n} -d 3s --json
  holdup scale --cpus 1,2,4 -- make -C project check
  holdup scale --env OMP_NUM_THREADS --threads 1,2,4 -- ./solver input
  sudo holdup scale --threads 1,8 --trace -- ./bench {n}

{n} in CMD stands for the count. Every run should do the same work, or tell how much it did (--work, --rate). Ctrl-C ends \
the sweep and keeps what was measured.";

/// Examples.
pub fn help() -> String {
    with_n(HELP)
}

/// Lets help show the word `{n}`, which its template takes for the end of a line: the escape that parts it is an empty style,
/// and is left out wherever there are no colours.
fn with_n(text: &str) -> String {
    text.replace("{n}", "{\x1b[0mn}")
}

/// `holdup scale`
#[derive(Debug, Args)]
pub struct Scale {
    /// Numbers of threads, such as 1,2,4; up to the number of CPUs by default
    #[arg(long, value_delimiter = ',', value_parser = positive, value_name = "N,N", conflicts_with = "cpus")]
    pub threads: Vec<usize>,
    // Not a doc comment, for its `{n}`.
    #[arg(long, help = with_n("Restrict CMD to so many CPUs instead, such as 1,2,4; the default where CMD has no {n}"))]
    #[arg(value_delimiter = ',', value_parser = positive, value_name = "N,N")]
    pub cpus: Vec<usize>,
    /// Set this environment variable to the count
    #[arg(long, value_name = "NAME")]
    pub env: Option<String>,
    /// Runs at each count, in interleaved rounds
    #[arg(long, default_value_t = 3, value_parser = positive, value_name = "N")]
    pub runs: usize,
    /// The work of a run: a regular expression whose first group is the number, in the last line that matches
    #[arg(long, value_name = "REGEX", conflicts_with = "rate")]
    pub work: Option<String>,
    /// The same, if the number is work per second
    #[arg(long, value_name = "REGEX")]
    pub rate: Option<String>,
    /// CMD is `holdup load run … --json`: its calls are the work
    #[arg(long, conflicts_with_all = ["work", "rate"])]
    pub load: bool,
    /// The most that a run may take, such as 60s
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub timeout: Option<Duration>,
    /// Let points with more busy threads than CPUs count in the law, too: for counts of clients or requests
    #[arg(long)]
    pub beyond_cpus: bool,
    /// Record a run at each count first, and say which functions, locks and lines cost the loss; needs root
    #[arg(long)]
    pub trace: bool,
    /// Keep these recordings in this folder
    #[arg(long, value_name = "DIR", requires = "trace")]
    pub keep: Option<PathBuf>,
    /// Draw points and laws into this file: .svg or .png
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub cmd: Vec<String>,
}

/// `holdup launch`
#[derive(Debug, Args)]
pub struct Launch {
    /// CPUs to run on
    #[arg(long, value_delimiter = ',', value_name = "CPU,CPU")]
    pub on: Vec<usize>,
    /// A variable of the environment
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Option<String>,
    /// The file for its standard output
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub cmd: Vec<String>,
}
