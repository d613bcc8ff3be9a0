//! The arguments of `holdup fleet`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::duration;

pub const HELP: &str = "\
Examples:
  holdup export web-17.holdup --format parquet --dataset fleet    adds a trace to the data set, once
  holdup fleet report fleet                                       what holds the fleet up
  holdup fleet report s3://traces/fleet --since 2026-11-19
  holdup fleet diff fleet                                         what changed, since when, on which hosts
  holdup fleet diff fleet --at 2026-11-22
  holdup fleet example fleet --process app --function reserve     the traces that show it best
  holdup fleet ship queue s3://traces/fleet --move --patience 1h  carries what is there, whole, and once

A data set is a folder of Parquet files, here or in a store that speaks S3 (with the environment's AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL). docs/fleet.md has its tables, and the same questions on Spark.";

/// `holdup fleet`
#[derive(Debug, Subcommand)]
pub enum Fleet {
    /// What cost most CPU time over all hosts: causes, locks, places, functions, builds, kernels; and hosts that differ
    Report(FleetReport),
    /// What changed on a day, and whether that is more than chance
    Diff(FleetDiff),
    /// The traces that show a cause best
    Example(FleetExample),
    /// Carry what is in a data set in a folder to another one
    Ship(FleetShip),
}

/// Which data set, and which of its days.
#[derive(Debug, Args)]
pub struct FleetDays {
    /// The data set: a folder, or s3://BUCKET/PATH
    pub dataset: String,
    /// Only traces from this day on, in UTC
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    pub since: Option<String>,
    /// Only traces up to this day
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    pub until: Option<String>,
    /// At most so many lines of each table
    #[arg(long, default_value = "10", value_name = "N")]
    pub top: usize,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// `holdup fleet report`
#[derive(Debug, Args)]
pub struct FleetReport {
    #[command(flatten)]
    pub days: FleetDays,
}

/// `holdup fleet diff`
#[derive(Debug, Args)]
pub struct FleetDiff {
    #[command(flatten)]
    pub days: FleetDays,
    /// The first day of *after* [default: that of the last 14 on which most changed]
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    pub at: Option<String>,
}

/// `holdup fleet example`
#[derive(Debug, Args)]
pub struct FleetExample {
    #[command(flatten)]
    pub days: FleetDays,
    /// Of this process
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub process: String,
    /// In which this function is to blame, or is waited in
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub function: String,
    /// Of this kind, such as lock-held
    #[arg(long, value_name = "KIND", default_value = "", hide_default_value = true)]
    pub kind: String,
}

/// `holdup fleet ship`
#[derive(Debug, Args)]
pub struct FleetShip {
    /// The data set in a folder
    pub from: PathBuf,
    /// Where to: a folder, or s3://BUCKET/PATH
    pub to: String,
    /// Remove here what has arrived there
    #[arg(long = "move")]
    pub remove: bool,
    /// For how long to ask a store again that does not answer
    #[arg(long, default_value = "30s", value_parser = duration, value_name = "TIME")]
    pub patience: Duration,
}

/// A day as it stands in paths.
fn day(text: &str) -> Result<String, String> {
    let is_day = text.len() == 10
        && text.char_indices().all(|(i, c)| if matches!(i, 4 | 7) { c == '-' } else { c.is_ascii_digit() });
    if is_day { Ok(text.to_owned()) } else { Err("a day such as 2026-11-25 is expected".to_owned()) }
}
