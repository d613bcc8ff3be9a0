//! `holdup lab` and `holdup check`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use holdup_lab::reproduce::Change;

/// Examples of the lab.
pub const HELP: &str = "\
Examples:
  holdup lab list
  holdup lab run --quick                 all experiments, in under a minute
  holdup lab run counters --threads 1,2,4 -o counters.json --plots .
  holdup lab run send-delay --set pause_ns=43
  holdup lab compare here.json there.json
  holdup lab reproduce build.holdup      the lock of its first finding, and what could be done";

const REPRODUCE_HELP: &str = "\
Examples:
  holdup lab reproduce build.holdup
  holdup lab reproduce build.holdup --lock f2 --focus server
  holdup lab reproduce build.holdup --try hold=0.1 --try outside --try partition=8

Threads as in the recording use one lock as they did there: as many, with the same holds, the same work and waits between. How often
the lock was taken without anybody noticing is in no recording: it is fitted, so that as much is waited here as there. Then the same
work is done with each change, in turns. CHANGE is hold=SHARE, outside, partition=N, gate=N, lock=KIND or threads=SHARE.";

/// `holdup lab …`
#[derive(Debug, Subcommand)]
pub enum Lab {
    /// Name the experiments and their knobs
    #[command(after_help = "Example:\n  holdup lab list")]
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Run experiments
    #[command(after_help = HELP)]
    Run(LabRun),
    /// Use a lock as a recording used it, and try what could be done about it
    #[command(after_help = REPRODUCE_HELP)]
    Reproduce(Reproduce),
    /// Compare two results: two machines, two kernels, before and after
    #[command(after_help = "Example:\n  holdup lab compare here.json there.json")]
    Compare {
        /// A result of `holdup lab run -o`
        before: PathBuf,
        /// Another
        after: PathBuf,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

/// `holdup lab run`
#[derive(Debug, Args)]
pub struct LabRun {
    /// Which experiments; all if none is named
    #[arg(value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,
    /// Short parameters: all experiments in under a minute
    #[arg(long)]
    pub quick: bool,
    /// Write the result to this file, as JSON
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Set a knob: name=value, or experiment.name=value
    #[arg(long, value_name = "KNOB=VALUE")]
    pub set: Vec<String>,
    /// Numbers of threads, such as 1,2,4
    #[arg(long, value_name = "N,N")]
    pub threads: Option<String>,
    /// CPUs to run on, such as 0,1
    #[arg(long, value_name = "N,N")]
    pub cpus: Option<String>,
    /// Draw a plot of each experiment into this folder, as SVG and PNG
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
}

/// `holdup lab reproduce`
#[derive(Debug, Args)]
pub struct Reproduce {
    /// The trace; - for standard input
    pub trace: PathBuf,
    /// The finding of `explain` that is about the lock [default: the first about a lock]
    #[arg(long, value_name = "FINDING", default_value = "", hide_default_value = true)]
    pub lock: String,
    /// Only this process (name or pid) and its children
    #[arg(long, value_name = "PROC")]
    pub focus: Option<String>,
    /// Try this; several times for several [default: what may help]
    #[arg(long = "try", value_name = "CHANGE", value_parser = change)]
    pub changes: Vec<Change>,
    /// Rounds: each change once in each
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// How long one round of the case as recorded takes, about
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = super::duration)]
    pub length: Duration,
    /// Write the report to this file, as JSON
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

fn change(text: &str) -> Result<Change, String> {
    Change::parse(text).map_err(|e| e.to_string())
}

/// Examples of the check.
pub const CHECK_HELP: &str = "\
Examples:
  holdup check
  holdup check --only pause,steal,pressure --json

The exit code is 1 if an answer is bad.";

/// `holdup check`
#[derive(Debug, Args)]
pub struct Check {
    /// Only these checks, such as pause,clock
    #[arg(long, value_delimiter = ',', value_name = "NAME,NAME")]
    pub only: Vec<String>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}
