//! The arguments of `holdup table`, and their help, which names every column.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use holdup_analysis::explore::{PRESETS, TableKind};

use super::window;

/// `holdup table`
#[derive(Debug, Args)]
pub struct Table {
    /// The trace; - for standard input
    pub trace: PathBuf,
    /// waits, cpu, switches, wakes, locks, processes, spans, or a question listed below
    #[arg(value_name = "TABLE|QUESTION")]
    pub table: String,
    /// Group by these columns
    #[arg(long, value_name = "COL,…", value_delimiter = ',')]
    pub by: Vec<String>,
    /// Sum these columns of each group, and count its rows
    #[arg(long, value_name = "COL,…", value_delimiter = ',', requires = "by", conflicts_with = "show")]
    pub sum: Vec<String>,
    /// What to show of each group: count, share, sum:COL, mean:COL, max:COL, p99:COL, share:COL, distinct:COL
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',')]
    pub show: Vec<String>,
    /// Without --by: the columns of the rows
    #[arg(long, value_name = "COL,…", value_delimiter = ',', conflicts_with_all = ["by", "show"])]
    pub columns: Vec<String>,
    /// Only rows that pass, such as 'kind == lock and (wait > 1ms or function =~ "^alloc")'
    #[arg(long = "where", value_name = "EXPR")]
    pub filter: Vec<String>,
    /// Callers and callees of this function: whole name, the end of one, a part, or a regular expression; for cpu and waits
    #[arg(long, value_name = "FUNCTION", conflicts_with_all = ["by", "columns", "show", "sort"])]
    pub around: Option<String>,
    /// Write the rows' stacks as a flame graph (SVG) to this file, and print nothing; for cpu and waits
    #[arg(long, value_name = "FILE", conflicts_with_all = ["by", "columns", "show", "sort", "top", "around", "output", "json"])]
    pub flame: Option<PathBuf>,
    /// Sort by these, in falling order with a - before the name
    #[arg(long, value_name = "COL,…", value_delimiter = ',', allow_hyphen_values = true)]
    pub sort: Vec<String>,
    /// How many rows or groups; as text 40 if not given, else all
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Only this part, in seconds from the start, such as 1.5..3
    #[arg(long, value_parser = window, value_name = "A..B")]
    pub window: Option<(f64, f64)>,
    /// Only this process (name or pid) and its children
    #[arg(long, value_name = "PROC")]
    pub focus: Option<String>,
    /// All processes, where a question would keep to the recorded program
    #[arg(short, long, conflicts_with = "focus")]
    pub all: bool,
    /// How to print
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// How to print an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people, as wide as the terminal
    Text,
    /// Comma-separated, times in nanoseconds
    Csv,
    /// One document
    Json,
    /// An Arrow IPC file
    Arrow,
}

const EXAMPLES: &str = "\
Examples:
  holdup table build.holdup who-waits-longest
  holdup table build.holdup waits --by blocked --show count,sum:wait,mean:wait,p99:wait
  holdup table build.holdup waits --by process,function --where 'kind == lock and wait > 1ms'
  holdup table build.holdup switches --where 'thread == worker' --window 1.5..1.6
  holdup table build.holdup cpu --by module,function,address --top 10
  holdup table build.holdup waits --by function --show distinct:tid,sum:wait     how many threads waited where
  holdup table build.holdup cpu --around find_free_block                         its callers and callees
  holdup table build.holdup waits --where 'kind == lock' --flame locks.svg
  holdup table build.holdup spans --by name,argument --where 'outcome == complete'
  holdup table build.holdup locks --by lock --format csv -o locks.csv

Questions:
";

/// Examples and questions.
pub fn short_help() -> String {
    let mut text = EXAMPLES.to_owned();
    for preset in PRESETS {
        let _ = writeln!(text, "  {:<20} {}", preset.name, preset.doc);
    }
    text.push_str("\nColumns: see holdup table --help");
    text
}

/// The same, and all columns.
pub fn long_help() -> String {
    let mut text = short_help();
    text.truncate(text.rfind("\nColumns").unwrap_or(text.len()));
    text.push_str(
        "\nA table shows every process; a question keeps to the recorded command unless --all is given.\n\
         --where knows == != =~ !~ < <= > >= and in A..B; and, or, not, parentheses; times as 20us, 1.5ms, 2s.\n\
         Names are found without regard to case, spaces and punctuation; those in brackets are what Windows\n\
         Performance Analyzer calls the column, and can be used as well (Count:Waits is count).\n",
    );
    for table in TableKind::ALL {
        let _ = writeln!(text, "\nColumns of {}, {}:", table.name(), table.doc());
        for column in table.columns() {
            let wpa = if column.wpa.is_empty() { String::new() } else { format!(" [{}]", column.wpa.join(", ")) };
            let _ = writeln!(text, "  {:<16} {}{wpa}", column.name, column.doc);
        }
        let _ = writeln!(text, "  if nothing is asked for: {}", table.default_columns().join(","));
        let _ = writeln!(text, "  of groups: {}", table.default_measures().join(","));
    }
    text
}
