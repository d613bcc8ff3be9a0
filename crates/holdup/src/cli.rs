//! The command line. Names are fixed by the project's contract.

mod agent;
pub mod complete;
mod config;
pub mod diff;
mod export;
mod fleet;
mod hints;
mod inspect;
mod lab;
mod load;
mod load_reports;
mod mcp;
mod parse;
mod record;
mod report;
mod scale;
pub mod spans;
mod table;
mod top;
mod view;

use std::path::PathBuf;
use std::time::Duration;

pub use agent::{ANSWER_METRICS, Agent};
use clap::{Args, Parser, Subcommand};
pub use diff::Diff;
pub use export::Export;
pub use fleet::Fleet;
#[cfg(feature = "fleet")]
pub use fleet::{FleetDays, FleetDiff, FleetExample, FleetReport, FleetShip};
pub use hints::is_program;
use holdup_base::numbers;
pub use inspect::{Chain, Disasm, ThreadOrder, Threads};
pub use lab::{Check, Lab, LabRun, Reproduce};
pub use load::{Connection, Load, LoadList, LoadRows, LoadRun, ScriptLimits, Target, Width};
pub use load_reports::{LoadCompare, LoadPlot};
pub use mcp::Mcp;
pub use parse::parse;
pub use record::{KeepRing, Record};
pub use report::{Cut, Report};
pub use scale::{Launch, Scale};
pub use table::{Format, Table};
pub use top::Top;
pub use view::View;

/// What holds your cores up?
///
/// Records what every thread ran and waited for, and says in one page what kept the CPUs from working: which
/// thread, lock, function, source line and instruction.
#[derive(Debug, Parser)]
#[command(name = "holdup", bin_name = "holdup", version, long_version = crate::version::long(), arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Examples:\n  holdup explain -- make -j16\n  holdup record -o build.holdup -- make -j16\n  \
                        holdup explain build.holdup\n  holdup explain perf.data --json\n\n\
                        Defaults of options can stand in ~/.config/holdup.toml, for all commands or in a section for one:\n  \
                        freq = 499\n  color = \"never\"\n  [explain]\n  top = 3\n\n\
                        Exit codes: 0 done, 1 the answer is no, 2 bad usage, 3 unusable input, 4 missing privilege or platform support, 70 a mistake in holdup.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Where names are for traces that lack them: folders and servers with PDBs, as in _NT_SYMBOL_PATH
    #[arg(long, global = true, value_name = "PATH", help_heading = "For traces from elsewhere")]
    pub symbols: Option<String>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record a built-in lock convoy, explain it, and say what to try next
    #[command(after_help = "Example:\n  sudo holdup demo")]
    Demo(Demo),
    /// Record a command, a process or the whole machine
    #[command(after_help = record::HELP)]
    Record(Record),
    /// Tell what is inside a trace
    #[command(
        after_help = "Examples:\n  holdup info build.holdup\n  holdup info perf.data --json\n  holdup info --schema"
    )]
    Info(Info),
    /// Say in one page what held the cores up
    #[command(after_help = format!("{EXPLAIN_HELP}\n  {}", holdup_base::PERF))]
    Explain(Explain),
    /// Say what is hazardous about this machine: clocks, pauses, limits, noise, permissions
    #[command(after_help = lab::CHECK_HELP)]
    Check(Check),
    /// Reproduce hazards of synchronisation on this machine, with verdicts
    #[command(after_help = lab::HELP)]
    Lab {
        /// What to do in the lab
        #[command(subcommand)]
        command: Lab,
    },
    /// Drive a server, or a computation, from a script, and measure it
    #[command(after_help = load::HELP)]
    Load {
        /// What to do
        #[command(subcommand)]
        command: Load,
    },
    /// Run a command over counts of threads or CPUs: by which law it scales, and with --trace, why not better
    #[command(after_help = scale::help())]
    Scale(Scale),
    /// Compare two traces or sets of traces: what changed, and why
    #[command(after_help = diff::HELP)]
    Diff(Diff),
    /// Follow a wait to its cause, hop by hop: who readied whom, when, and what each did meanwhile
    #[command(after_help = inspect::CHAIN_HELP)]
    Chain(Chain),
    /// Show a function's samples by instruction, with source lines and loops
    #[command(after_help = inspect::DISASM_HELP)]
    Disasm(Disasm),
    /// List threads: names, which have none of their own, how much each ran and waited
    #[command(after_help = inspect::THREADS_HELP)]
    Threads(Threads),
    /// Ask for rows and groups: who waited where for how long, who ran what, who woke whom, which lock
    #[command(after_help = table::short_help(), after_long_help = table::long_help())]
    Table(Table),
    /// Look at traces in the browser: the timeline, who waits for whom, flame graphs, tables
    #[command(after_help = view::HELP)]
    View(View),
    /// Show what holds this machine up now, page after page
    #[command(after_help = top::HELP)]
    Top(Top),
    /// Serve what holds this machine up as metrics, for dashboards and alerts
    #[command(after_help = agent::HELP)]
    Agent(Agent),
    /// Write traces and the page that shows them into one file, to be shared
    #[command(after_help = report::REPORT_HELP)]
    Report(Report),
    /// Write a window of a trace as a trace of its own
    #[command(after_help = report::CUT_HELP)]
    Cut(Cut),
    /// Write a trace, or what was found in it, in the format of another tool
    #[command(after_help = export::HELP)]
    Export(Export),
    /// Ask about many hosts and days: what costs most, what changed, which trace shows it
    #[command(after_help = fleet::HELP)]
    Fleet {
        /// What to ask
        #[command(subcommand)]
        command: Fleet,
    },
    /// Answer assistants: the Model Context Protocol over standard input and output
    #[command(after_help = mcp::HELP)]
    Mcp(Mcp),
    /// Print the JSON Schema of a document that --json prints
    #[command(after_help = "Examples:\n  holdup schema             the documents\n  holdup schema explain")]
    Schema {
        /// The document: a name of the list, such as explain, or what its field `schema` says
        document: Option<String>,
    },
    /// Print a shell completion script
    #[command(after_help = "Example:\n  holdup completions bash > ~/.local/share/bash-completion/completions/holdup")]
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a folder
    #[command(after_help = "Example:\n  holdup man /usr/local/share/man/man1")]
    Man {
        /// The folder, which must exist
        folder: PathBuf,
    },
    /// Become a command on some CPUs, with a variable and a file for its output: what `holdup scale --trace` records
    #[command(hide = true)]
    Launch(Launch),
    /// Turn what a flight recorder kept into a trace, beside it
    #[command(hide = true)]
    KeepRing(KeepRing),
    /// Make a PNG image of the SVG document on standard input: what `holdup scale --plot` asks `holdup-load` for
    #[command(hide = true)]
    ToPng,
    /// Answer who fetches metrics: what `holdup agent` asks of a process without privileges
    #[command(hide = true, name = ANSWER_METRICS)]
    AnswerMetrics,
    /// The program that `holdup demo` records
    #[command(hide = true)]
    DemoProgram,
}

impl Command {
    /// Whether this command records, and needs privileges for that.
    pub fn records(&self) -> bool {
        match self {
            Command::Record(_) | Command::Demo(_) | Command::Top(_) | Command::Agent(_) | Command::KeepRing(_) => true,
            Command::Explain(args) => args.trace.is_none(),
            Command::Scale(args) => args.trace,
            Command::Mcp(args) => args.allow_record,
            _ => false,
        }
    }
}

const EXPLAIN_HELP: &str = "\
Examples:
  holdup explain -- make -j16            record and explain in one go
  holdup explain build.holdup
  holdup explain perf.data --json
  holdup explain build.holdup --window 1.5..3 --focus cc1
  holdup explain build.holdup --flame build.svg     a flame graph, beside the page

`holdup explain -- CMD` ends with CMD's exit code, as `holdup record` does. A trace of perf is made with:";

/// `holdup demo`
#[derive(Debug, Args)]
pub struct Demo {
    /// Where to keep the recording
    #[arg(short, long, default_value = "demo.holdup", value_name = "FILE")]
    pub output: PathBuf,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// What to record, and how.
#[derive(Debug, Args, Clone)]
pub struct Source {
    /// Focus on all processes: until Ctrl-C, for --duration, or while CMD runs
    #[arg(short = 'a', long = "machine", conflicts_with_all = ["pid", "cgroup"])]
    pub all: bool,
    /// Focus on these running processes and their children, by number or name, until they end, for --duration, or while CMD
    /// runs; several, or -p again
    #[arg(short, long, value_name = "PID|NAME,…", value_delimiter = ',')]
    pub pid: Vec<String>,
    /// Focus on the processes of this control group and of those below it, and their children
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// Stop after this time, such as 10s or 500ms
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub duration: Option<Duration>,
    /// CPU samples per second and CPU; 0 for none [default: what a third of the budget affords,
    /// 999 at most]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(0..=20_000))]
    pub freq: Option<u32>,
    /// The share of the machine's CPU time that recording may cost; 100% takes every stack anew
    #[arg(long, default_value = "3%", value_parser = diff::percent, value_name = "PERCENT")]
    pub budget: f64,
    /// Waits of at least this length get stacks
    #[arg(long, default_value = "20us", value_parser = duration, value_name = "TIME")]
    pub min_wait: Duration,
    /// Buffer for each CPU, in MB
    #[arg(long, default_value_t = holdup_record::BUFFER_MB, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub buffer: u32,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub cmd: Vec<String>,
}

impl Source {
    /// A command, recorded with the defaults.
    pub fn command(cmd: Vec<String>) -> Source {
        let (freq, min_wait, buffer) = (None, holdup_record::MIN_WAIT, holdup_record::BUFFER_MB);
        let budget = holdup_record::BUDGET;
        Source { all: false, pid: Vec::new(), cgroup: None, duration: None, freq, budget, min_wait, buffer, cmd }
    }

    /// These processes, or the whole machine if there are none, for so long.
    pub fn stretch(pid: &[String], over: Duration) -> Source {
        Source { all: pid.is_empty(), pid: pid.to_vec(), duration: Some(over), ..Source::command(Vec::new()) }
    }

    /// Whether it says what to record.
    pub fn is_given(&self) -> bool {
        self.all || !self.pid.is_empty() || self.cgroup.is_some() || !self.cmd.is_empty()
    }
}

/// `holdup info`
#[derive(Debug, Args)]
pub struct Info {
    /// The trace; - for standard input
    #[arg(required_unless_present = "schema")]
    pub trace: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
    /// Describe tables, columns and units
    #[arg(long)]
    pub schema: bool,
}

/// `holdup explain`
#[derive(Debug, Args)]
pub struct Explain {
    /// The trace; - for standard input
    #[arg(conflicts_with_all = ["pid", "cgroup", "cmd"])]
    pub trace: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
    /// Only this part, in seconds from the start, such as 1.5..3
    #[arg(long, value_parser = window, value_name = "A..B")]
    pub window: Option<(f64, f64)>,
    /// Only this process (name or pid; * for all) and its children can be held up
    #[arg(long, value_name = "PROC")]
    pub focus: Option<String>,
    /// Show all that is known of cause N of the page: stacks, instructions, evidence
    #[arg(long, value_name = "N", conflicts_with_all = ["json", "everything"])]
    pub why: Option<usize>,
    /// Show every cause whole, the sum of the CPU time, what was lost, and the notes
    #[arg(long = "all", id = "everything", conflicts_with = "json")]
    pub everything: bool,
    /// How many causes to show, with --json or --all
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub top: usize,
    /// Waits below this function are idle by design
    #[arg(long, value_name = "SITE")]
    pub idle: Vec<String>,
    /// Waits below this function are held up
    #[arg(long, value_name = "SITE")]
    pub work: Vec<String>,
    /// Why were the slow spans of this name slow? Spans are units of work, such as requests. A file of spans that were told elsewhere, OTLP in
    /// .json or .jsonl, or .csv, is added to the trace first; then the name may be left out
    #[arg(long, value_name = "NAME|FILE", conflicts_with_all = ["why", "everything", "window", "focus"])]
    pub spans: Vec<String>,
    /// Of these spans only those whose argument has this in it
    #[arg(long, value_name = "TEXT", requires = "spans")]
    pub argument: Option<String>,
    /// Which share of the spans is called slow
    #[arg(long, value_parser = slow, value_name = "PERCENT", default_value = "1%", requires = "spans")]
    pub slow: f64,
    /// Keep the recording, or what was read, in this file
    #[arg(long, value_name = "FILE")]
    pub keep: Option<PathBuf>,
    /// Write a flame graph (SVG): what ran, and what the CPUs that stood still are charged to
    #[arg(long, value_name = "FILE")]
    pub flame: Option<PathBuf>,
    /// What to record first
    #[command(flatten)]
    pub source: Source,
}

/// A length of time with a unit: 10s, 500ms, 20us, 2m. A bare number means seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = numbers::split_unit(text);
    let nanos =
        numbers::nanos_of(unit).ok_or_else(|| format!("{unit:?} is not a unit of time; use ns, us, ms, s, m or h"))?;
    let number: f64 = number.parse().map_err(|_| format!("{text:?} is not a length of time; write 10s or 500ms"))?;
    Duration::try_from_secs_f64(number * nanos / 1e9).map_err(|e| format!("{text:?}: {e}"))
}

/// Which share of spans is called slow: above 0, at most half.
fn slow(text: &str) -> Result<f64, String> {
    let share = diff::percent(text)?;
    if share > 0.0 && share <= 0.5 { Ok(share) } else { Err(format!("{text:?} is not between 0 and 50%")) }
}

/// A number above 0.
fn positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&n| n > 0).ok_or_else(|| format!("{text:?} is not a number above 0"))
}

/// `A..B` in seconds; either may be missing.
fn window(text: &str) -> Result<(f64, f64), String> {
    let bad = || format!("{text:?} is not a window; write A..B in seconds, such as 1.5..3");
    let (from, to) = text.split_once("..").ok_or_else(bad)?;
    let number = |s: &str, default: f64| match s.trim().trim_end_matches('s') {
        "" => Ok(default),
        s => s.parse::<f64>().ok().filter(|v| !v.is_nan()).ok_or_else(bad),
    };
    Ok((number(from, 0.0)?, number(to, f64::MAX)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_recorder() {
        let Command::Record(record) = Cli::parse_from(["holdup", "record"]).command else { panic!("no record") };
        let (said, meant) = (record.source, Source::command(Vec::new()));
        assert_eq!((said.freq, said.min_wait, said.buffer), (meant.freq, meant.min_wait, meant.buffer));
        assert!((said.budget - meant.budget).abs() < 1e-12);
    }

    #[test]
    fn durations_need_known_units() {
        assert_eq!(duration("20us"), Ok(Duration::from_micros(20)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert!(duration("3 weeks").is_err());
        assert!(duration("").is_err());
    }

    #[test]
    fn windows_may_be_open() {
        assert_eq!(window("1.5..3"), Ok((1.5, 3.0)));
        assert_eq!(window("2.."), Ok((2.0, f64::MAX)));
        assert!(window("2").is_err());
        assert!(window("NaN..1").is_err());
    }
}
