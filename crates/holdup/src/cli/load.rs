//! `holdup load`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use holdup_base::numbers;
use holdup_load::harness::Length;

use super::load_reports::{LoadCompare, LoadPlot};
use super::{duration, positive};

/// Examples.
pub const HELP: &str = "\
Examples:
  holdup load schema read.rn cql://127.0.0.1:9042
  holdup load load read.rn cql://127.0.0.1:9042 --threads 2
  holdup load run read.rn cql://127.0.0.1:9042 --rate 500 -d 60s -o read.json --plot read.svg
  holdup load run compute.rn --threads 4      a script that needs no server
  holdup load compare before.json after.json

A workload is a Rune script with functions `schema`, `erase`, `prepare`, `load` and `run`, and any others for --function. \
ADDRESS is cql://, postgres://, http:// or redis://; a bare host is CQL.";

const RUN_HELP: &str = "\
Examples:
  holdup load run read.rn 127.0.0.1 -d 60s --rate 5000 --concurrency 64
  holdup load run mix.rn 127.0.0.1 -f read:3 -f write:1 -P rows=1000000 -o mix.json
  holdup load run page.rn http://127.0.0.1:8080 --threads 2 --plot page.png
  holdup load run page.rn http://127.0.0.1:8080 --vs http://127.0.0.1:8081 -d 10s --repeats 5

With --rate, calls are due at fixed times whatever the server does, and response times run from there; what was due and \
not served is counted. Without it, each slot calls again as soon as it can. Ctrl-C ends the run and keeps what was \
measured. The exit code is 1 if errors ended the run.";

/// `holdup load …`
#[derive(Debug, Subcommand)]
pub enum Load {
    /// Call the script's `schema` once
    #[command(after_help = "Example:\n  holdup load schema read.rn cql://127.0.0.1:9042")]
    Schema(Box<Target>),
    /// Call `prepare` and `erase`, then `load` for each row
    #[command(
        name = "load",
        after_help = "Example:\n  holdup load load read.rn cql://127.0.0.1:9042 -P rows=100000 --threads 2"
    )]
    Rows(Box<LoadRows>),
    /// Call `run`, or other functions, for a time or a number of cycles, and measure
    #[command(after_help = RUN_HELP)]
    Run(Box<LoadRun>),
    /// Name the functions and parameters of a workload, or the reports in a folder
    #[command(
        after_help = "Examples:\n  holdup load list read.rn\n  holdup load list results/ --tag nightly --recursive"
    )]
    List(LoadList),
    /// Show a report again
    #[command(after_help = "Example:\n  holdup load show read.json --plot read.svg")]
    Show {
        /// A report of `holdup load run -o`
        report: PathBuf,
        /// Draw it into this file: .svg or .png
        #[arg(long, value_name = "FILE")]
        plot: Option<PathBuf>,
        /// Write its response times as an HdrHistogram interval log
        #[arg(long, value_name = "FILE")]
        hdr_log: Option<PathBuf>,
        /// Compare it with this report of an earlier run
        #[arg(short, long, value_name = "REPORT", conflicts_with = "json")]
        baseline: Option<PathBuf>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Draw several reports into one picture: throughput and percentiles over time
    #[command(after_help = "Examples:\n  holdup load plot before.json after.json -o both.svg\n  \
                            holdup load plot a.json b.json c.json -p 50,99,99.9 -o tails.png")]
    Plot(LoadPlot),
    /// Compare reports: before and after, one or several of each
    #[command(after_help = "Examples:\n  holdup load compare before.json after.json\n  \
                            holdup load compare a1.json a2.json a3.json --vs b1.json b2.json b3.json")]
    Compare(LoadCompare),
}

/// A workload and a server.
#[derive(Debug, Args, Clone)]
pub struct Target {
    /// The script
    #[arg(value_name = "WORKLOAD")]
    pub workload: PathBuf,
    /// The server, such as cql://127.0.0.1:9042
    #[arg(value_name = "ADDRESS")]
    pub address: Option<String>,
    /// A parameter of the script
    #[arg(short = 'P', long = "param", value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// How long an attempt at a statement may take
    #[arg(long, default_value = "5s", value_parser = duration, value_name = "TIME")]
    pub timeout: Duration,
    /// Attempts after the first, for errors that may be over soon
    #[arg(long, default_value_t = 3, value_name = "N")]
    pub retries: u32,
    /// The pause before the second attempt; it doubles each time, up to the second time here
    #[arg(long, alias = "retry-delay", default_value = "100ms,5s", value_parser = pauses, value_name = "TIME[,MOST]")]
    pub retry_pause: Pauses,
    /// Try again after errors of any kind, also those that trying again should not mend
    #[arg(long)]
    pub retry_on_all_errors: bool,
    /// What the script may use.
    #[command(flatten)]
    pub limits: ScriptLimits,
    /// How to connect.
    #[command(flatten)]
    pub connection: Connection,
}

/// What a script may use of the machine.
#[derive(Debug, Args, Clone)]
pub struct ScriptLimits {
    /// Let the script read any file, not only those in its folder
    #[arg(long, help_heading = "Script")]
    pub allow_fs: bool,
    /// CPU time that the script may take without waiting for the server
    #[arg(long, help_heading = "Script", default_value = "10s", value_parser = script_time, value_name = "TIME")]
    pub script_time: Duration,
    /// Memory that the script may hold, in each thread
    #[arg(long, help_heading = "Script", default_value = "256M", value_parser = size, value_name = "SIZE")]
    pub script_memory: usize,
}

/// How to connect.
#[derive(Debug, Args, Clone)]
pub struct Connection {
    /// Connections of each thread
    #[arg(long, help_heading = "Connection", default_value_t = 1, value_parser = positive, value_name = "N")]
    pub connections: usize,
    /// How long connecting may take
    #[arg(long, help_heading = "Connection", default_value = "10s", value_parser = duration, value_name = "TIME")]
    pub connect_timeout: Duration,
    /// The user; its password is read from the environment variable HOLDUP_PASSWORD
    #[arg(long, help_heading = "Connection", value_name = "NAME")]
    pub user: Option<String>,
    /// CQL: the consistency, such as LOCAL_QUORUM
    #[arg(long, help_heading = "Connection", value_name = "LEVEL")]
    pub consistency: Option<String>,
    /// CQL: the datacenter that is asked, and no other
    #[arg(long, help_heading = "Connection", value_name = "NAME")]
    pub datacenter: Option<String>,
    /// CQL: rows in a page
    #[arg(long, help_heading = "Connection", value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pub page_size: Option<i32>,
    /// Encrypt, as https:// and rediss:// and each of the following do
    #[arg(long, help_heading = "Connection")]
    pub tls: bool,
    /// Certificates to trust, PEM
    #[arg(long, help_heading = "Connection", value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// This client's certificate, PEM
    #[arg(long, help_heading = "Connection", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its key, PEM
    #[arg(long, help_heading = "Connection", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Accept any certificate
    #[arg(long, help_heading = "Connection")]
    pub tls_insecure: bool,
}

/// How many at once.
#[derive(Debug, Args, Clone)]
pub struct Width {
    /// Threads; each has its own connections and its own copy of the script
    #[arg(short, long, default_value_t = 1, value_parser = positive, value_name = "N")]
    pub threads: usize,
    /// Calls under way at most, for each thread [default: 128; 1 without a server]
    #[arg(short = 'p', long, value_parser = positive, value_name = "N")]
    pub concurrency: Option<usize>,
    /// Keep each thread on a CPU of its own
    #[arg(long)]
    pub pin: bool,
    /// End the run when nothing but errors has come for so long
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    pub give_up: Duration,
}

/// `holdup load list`
#[derive(Debug, Args)]
pub struct LoadList {
    /// A workload or a folder
    #[arg(default_value = ".", value_name = "WORKLOAD|DIR")]
    pub path: PathBuf,
    /// Only reports of this workload: its path, or its file's name
    #[arg(long, value_name = "WORKLOAD")]
    pub workload: Option<String>,
    /// Only reports of this function, alone or in a mix
    #[arg(short, long, value_name = "NAME")]
    pub function: Option<String>,
    /// Only reports with this word; with several, those that have them all
    #[arg(long = "tag", value_delimiter = ',', value_name = "WORD")]
    pub tags: Vec<String>,
    /// Look into folders within the folder, too
    #[arg(short, long)]
    pub recursive: bool,
    /// What the script may use.
    #[command(flatten)]
    pub limits: ScriptLimits,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// `holdup load load`
#[derive(Debug, Args)]
pub struct LoadRows {
    /// What and where to.
    #[command(flatten)]
    pub target: Target,
    /// How many at once.
    #[command(flatten)]
    pub width: Width,
    /// Rows due a second, all threads together; as many as can be without it
    #[arg(short, long, value_parser = rate, value_name = "CALLS/S")]
    pub rate: Option<f64>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// `holdup load run`
#[derive(Clone, Debug, Args)]
pub struct LoadRun {
    /// What and where to.
    #[command(flatten)]
    pub target: Target,
    /// How many at once.
    #[command(flatten)]
    pub width: Width,
    /// Calls due a second, all threads together; as many as can be without it
    #[arg(short, long, value_parser = rate, value_name = "CALLS/S")]
    pub rate: Option<f64>,
    /// Let the rate swing like a sine, by this share of itself: 0.5 is from half to one and a half of --rate
    #[arg(long, value_parser = share, value_name = "SHARE", requires = "rate")]
    pub rate_sine_amplitude: Option<f64>,
    /// From one crest of the rate to the next [default: 60s]
    #[arg(long, value_parser = duration, value_name = "TIME", requires = "rate_sine_amplitude")]
    pub rate_sine_period: Option<Duration>,
    /// How long to measure: a time such as 60s, or a number of cycles
    #[arg(short, long, default_value = "60s", value_parser = length, value_name = "TIME|CYCLES")]
    pub duration: Length,
    /// How long to run before that: a time or a number of cycles
    #[arg(short, long, default_value = "1s", value_parser = length, value_name = "TIME|CYCLES")]
    pub warmup: Length,
    /// The function to call, with its weight; several, with commas or each with -f, make a mix [default: run]
    #[arg(short, long, alias = "functions", value_delimiter = ',', value_name = "NAME[:WEIGHT]")]
    pub function: Vec<String>,
    /// The time slice of the series [default: a fiftieth of the run, at most 1s]
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub sampling: Option<Duration>,
    /// Run against this server in turns with ADDRESS, and compare the two
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["plot", "hdr_log"])]
    pub vs: Option<String>,
    /// Rounds of these turns
    #[arg(long, default_value_t = 5, value_parser = positive, value_name = "N", requires = "vs")]
    pub repeats: usize,
    /// Write the report to this file, as JSON; in a folder, it gets a name of workload, rate and time; with --vs, a file for each run
    #[arg(short, long, value_name = "FILE|DIR")]
    pub output: Option<PathBuf>,
    /// Compare with this report of an earlier run
    #[arg(short, long, value_name = "REPORT", conflicts_with_all = ["vs", "json"])]
    pub baseline: Option<PathBuf>,
    /// The number of the first cycle; with it, several generators take parts of one set of cycles
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub start_cycle: u64,
    /// Cycles begin again from the first before this number
    #[arg(long, default_value_t = i64::MAX as u64, value_name = "N")]
    pub end_cycle: u64,
    /// A word to tell the report from others; several, with commas or each with --tag
    #[arg(long = "tag", value_delimiter = ',', value_name = "WORD")]
    pub tags: Vec<String>,
    /// Draw throughput and latency over time into this file: .svg or .png
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Record this machine meanwhile into FILE [default: load.holdup], and tell what the server did with its slowest requests
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "load.holdup",
          conflicts_with_all = ["vs", "json"])]
    pub trace: Option<PathBuf>,
    /// Mark each call, so that a recorder with --span marker knows it; --trace does so by itself
    #[arg(long)]
    pub mark: bool,
    /// Write response times as an HdrHistogram interval log
    #[arg(long, value_name = "FILE")]
    pub hdr_log: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// How long to wait between attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// Before the second.
    pub first: Duration,
    /// At most.
    pub most: Duration,
}

/// `100ms,5s`; one time alone is the pause before each attempt.
fn pauses(text: &str) -> Result<Pauses, String> {
    let (first, most) = text.split_once(',').unwrap_or((text, text));
    let pauses = Pauses { first: duration(first)?, most: duration(most)? };
    if pauses.first > pauses.most { Err("the first pause is longer than the longest".to_owned()) } else { Ok(pauses) }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "write a number above 0 and up to 1, such as 0.5".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "write a number of calls a second, such as 500".to_owned())?;
    if rate.is_finite() && (1e-3..=1e9).contains(&rate) {
        Ok(rate)
    } else {
        Err("it should be from 0.001 to 1e9".to_owned())
    }
}

fn script_time(text: &str) -> Result<Duration, String> {
    duration(text)
        .and_then(|time| if time.is_zero() { Err("it should be more than nothing".to_owned()) } else { Ok(time) })
}

/// Bytes, such as 256M, 1.5GiB or 4096.
pub(super) fn size(text: &str) -> Result<usize, String> {
    let (number, unit) = numbers::split_unit(text);
    let scale = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 1.0,
        "k" | "K" => 1024.0,
        "M" => 1_048_576.0,
        "G" => 1_073_741_824.0,
        "T" => 1_099_511_627_776.0,
        _ => return Err(format!("unknown unit {unit:?}; use K, M, G or T")),
    };
    let number: f64 = number.parse().map_err(|_| format!("{text:?} is not a size; write 256M or 1G"))?;
    let bytes = number * scale;
    // The engine itself takes some megabytes.
    if bytes < 16.0 * 1_048_576.0 { Err("16M is the least".to_owned()) } else { Ok(bytes as usize) }
}

/// A time, or a plain number of cycles.
fn length(text: &str) -> Result<Length, String> {
    let digits = text.replace('_', "");
    match digits.parse::<u64>() {
        Ok(cycles) if cycles < u64::MAX => Ok(Length::Cycles(cycles)),
        _ => duration(text).map(Length::Time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_have_a_most() {
        let ms = Duration::from_millis;
        assert_eq!(pauses("100ms,5s"), Ok(Pauses { first: ms(100), most: ms(5000) }));
        assert_eq!(pauses("200ms"), Ok(Pauses { first: ms(200), most: ms(200) }));
        assert!(pauses("5s,1s").is_err() && pauses("1s,").is_err() && pauses("").is_err());
    }

    #[test]
    fn sizes_have_units_and_a_least_one() {
        assert_eq!(size("256M"), Ok(256 << 20));
        assert_eq!(size("1.5GiB"), Ok(3 << 29));
        assert_eq!(size("33554432"), Ok(32 << 20));
        assert!(size("1M").is_err_and(|why| why.contains("16M")));
        assert!(size("5 apples").is_err_and(|why| why.contains("apples")));
        assert!(size("M").is_err() && script_time("0s").is_err() && script_time("1ms").is_ok());
    }
}
