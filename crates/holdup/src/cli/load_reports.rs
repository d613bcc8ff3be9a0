//! `holdup load plot` and `compare`, which take several reports.

use std::path::PathBuf;

use clap::Args;

/// `holdup load plot`
#[derive(Debug, Args)]
pub struct LoadPlot {
    /// Reports of `holdup load run -o`, six at most
    #[arg(required = true, num_args = 1..=6, value_name = "REPORT")]
    pub reports: Vec<PathBuf>,
    /// A percentile of response times; several, with commas or each with -p [default: 50,99 and the throughput]
    #[arg(short, long = "percentile", alias = "percentiles", value_delimiter = ',', value_parser = percentile, value_name = "PERCENT")]
    pub percentiles: Vec<f64>,
    /// The throughput
    #[arg(short, long)]
    pub throughput: bool,
    /// The picture: .svg or .png
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// `holdup load compare`
#[derive(Debug, Args)]
pub struct LoadCompare {
    /// Reports of `holdup load run -o`: two, or those before
    #[arg(required = true, value_name = "REPORT")]
    pub before: Vec<PathBuf>,
    /// Those after
    #[arg(long = "vs", num_args = 1.., value_name = "REPORT")]
    pub after: Vec<PathBuf>,
    /// Exit with 1 if throughput fell or the 99th percentile rose by more than this, surely
    #[arg(long, value_parser = super::diff::percent, value_name = "PERCENT")]
    pub fail_on: Option<f64>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

fn percentile(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|percent: &f64| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| "write a number from 0 to 100, such as 99.9".to_owned())
}
