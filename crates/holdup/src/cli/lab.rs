//! `holdup lab` and `holdup check`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Examples of the lab.
pub const HELP: &str = "\
Examples:
  holdup lab list
  holdup lab run --quick                 all experiments, in under a minute
  holdup lab run counters --threads 1,2,4 -o counters.json --plots .
  holdup lab run send-delay --set pause_ns=43
  holdup lab compare here.json there.json";

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
