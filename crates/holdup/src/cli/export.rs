//! The arguments of `holdup export`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use holdup_export::{Format, Kind};

use super::window;

pub const HELP: &str = "\
Examples:
  holdup export build.holdup --format parquet -o build                         a folder: build/switch.parquet, …
  holdup export build.holdup --format speedscope -o build.speedscope.json      drop it on speedscope.app
  holdup export build.holdup --format firefox -o build.json                    drop it on profiler.firefox.com
  holdup export build.holdup --format json -o build.json                       what was found, and each thread's time
  holdup export build.holdup --format folded -o cpu.folded                     for flamegraph.pl or inferno
  holdup export build.holdup --format folded --stacks off-cpu --per-thread -o waits.folded
  holdup export build.holdup --format parquet --dataset fleet                  its rows into a data set of many traces
  holdup export build.holdup --format ndjson -o /dev/stdout | grep '^{\"table\":\"switch\"'   every switch
  grep -v '^idle;' waits.folded | inferno-flamegraph > waits.svg               without those that had nothing to do";

/// `holdup export`
#[derive(Debug, Args)]
pub struct Export {
    /// The trace; - for standard input
    pub trace: PathBuf,
    /// In which format
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub format: Format,
    /// What to write
    #[arg(short, long, value_name = "OUT", required_unless_present = "dataset", conflicts_with = "dataset")]
    pub output: Option<PathBuf>,
    /// Of parquet: add what was found to a data set of many traces, for `holdup fleet`: a folder, or s3://BUCKET/PATH
    #[arg(long, value_name = "DIR|URL")]
    pub dataset: Option<String>,
    /// Into the data set: what to say of this trace, such as a release
    #[arg(long, value_name = "TEXT", requires = "dataset", default_value = "", hide_default_value = true)]
    pub label: String,
    /// Into the data set: the recording itself, too
    #[arg(long, requires = "dataset")]
    pub with_recording: bool,
    /// Of stacks (folded, speedscope): on-cpu, off-cpu, wakers, blame [default: on-cpu in folded, all in speedscope]
    #[arg(long, value_name = "KIND,…", value_delimiter = ',', value_parser = kinds(), hide_possible_values = true)]
    pub stacks: Vec<Kind>,
    /// Of stacks: each thread for itself
    #[arg(long)]
    pub per_thread: bool,
    /// Only this part, in seconds since the trace's start
    #[arg(long, value_name = "A..B", value_parser = window)]
    pub window: Option<(f64, f64)>,
    /// Only this process (name or pid) and its children can be held up, and only their stacks count
    #[arg(long, value_name = "PROC")]
    pub focus: Option<String>,
    /// Without command lines, paths and the host's name
    #[arg(long)]
    pub redact: bool,
}

fn formats() -> impl TypedValueParser<Value = Format> {
    let named = Format::ALL.iter().map(|f| PossibleValue::new(f.name()).help(f.help()));
    PossibleValuesParser::new(named)
        .map(|word| Format::ALL.iter().copied().find(|f| f.name() == word).expect("clap allows no other word"))
}

fn kinds() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::ALL.iter().map(|k| k.name()))
        .map(|word| Kind::ALL.iter().copied().find(|k| k.name() == word).expect("clap allows no other word"))
}
