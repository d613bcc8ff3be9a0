//! How much a run did, from what it wrote.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};

use regex::Regex;

use super::{Error, Result};
use crate::report::Report;

/// Longer lines of output are read in pieces.
const LINE: u64 = 64 << 10;

/// No report of a load run is longer.
const REPORT: u64 = 64 << 20;

/// How the work of a run is told.
#[derive(Debug, Clone)]
pub enum Measure {
    /// Every run does the same: its work is 1.
    Elapsed,
    /// The first group of the last line that matches is the amount of work.
    Work(Regex),
    /// The same is work per second.
    Rate(Regex),
    /// The command is `holdup load run … --json`: its calls a second are.
    Load,
}

impl Measure {
    /// [`Measure::Work`].
    ///
    /// # Errors
    /// The pattern is none, or has no group.
    pub fn work_pattern(pattern: &str) -> Result<Measure> {
        grouped("--work", pattern).map(Measure::Work)
    }

    /// [`Measure::Rate`].
    ///
    /// # Errors
    /// The pattern is none, or has no group.
    pub fn rate_pattern(pattern: &str) -> Result<Measure> {
        grouped("--rate", pattern).map(Measure::Rate)
    }

    /// A file for the output, if it is to be read; it has no name and is gone with its last user.
    pub(super) fn output(&self) -> Result<Option<File>> {
        let cannot = |e| Error::Failed(format!("no temporary file for the command's output: {e}; set TMPDIR"));
        match self {
            Measure::Elapsed => Ok(None),
            Measure::Work(_) | Measure::Rate(_) | Measure::Load => tempfile::tempfile().map(Some).map_err(cannot),
        }
    }

    /// Units of work of a run that wrote `output`, if its output is kept, and took `elapsed_s`. The error says what is
    /// wrong with the output.
    pub fn work(&self, output: Option<&mut File>, elapsed_s: f64) -> std::result::Result<f64, String> {
        let (pattern, option, seconds) = match self {
            Measure::Elapsed => return Ok(1.0),
            Measure::Work(pattern) => (pattern, "--work", 1.0),
            Measure::Rate(pattern) => (pattern, "--rate", elapsed_s),
            Measure::Load => return load_rate(rewound(output)?).map(|rate| rate * elapsed_s),
        };
        let file = rewound(output)?;
        let text = last_match(file, pattern).map_err(|e| format!("wrote what cannot be read: {e}"))?;
        let text = text.ok_or_else(|| {
            format!(
                "wrote no line on its standard output that matches {option} `{pattern}`; try the pattern with grep -E"
            )
        })?;
        let number: Option<f64> = text.replace([',', '_'], "").trim().parse().ok();
        let number = number.filter(|n| n.is_finite() && *n > 0.0);
        number.map(|n| n * seconds).ok_or_else(|| {
            format!(
                "wrote {text:?} where {option} `{pattern}` expects a number above 0; mend the pattern's first group"
            )
        })
    }
}

fn rewound(output: Option<&mut File>) -> std::result::Result<&mut File, String> {
    let file = output.ok_or("has no output to read")?;
    file.rewind().map_err(|e| format!("wrote what cannot be read: {e}"))?;
    Ok(file)
}

/// Calls a second of a report of `holdup load run --json`.
fn load_rate(file: &mut File) -> std::result::Result<f64, String> {
    let mut text = String::new();
    file.take(REPORT).read_to_string(&mut text).map_err(|e| format!("wrote what cannot be read: {e}"))?;
    let report =
        Report::parse(&text).map_err(|e| format!("wrote no report ({e}); --load wants `holdup load run … --json`"))?;
    match report.throughput.mean {
        rate if rate > 0.0 => Ok(rate),
        _ => Err("made no call that succeeded".to_owned()),
    }
}

fn grouped(option: &str, pattern: &str) -> Result<Regex> {
    let bad = |what: &str| Error::Usage(format!("{option} {pattern:?}: {what}"));
    let regex = Regex::new(pattern).map_err(|e| bad(&format!("no regular expression: {e}")))?;
    if regex.captures_len() < 2 {
        return Err(bad("put the number's part into a group, such as 'ops: ([0-9.]+)'"));
    }
    Ok(regex)
}

fn last_match(file: &mut File, pattern: &Regex) -> std::io::Result<Option<String>> {
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let mut last = None;
    loop {
        line.clear();
        if reader.by_ref().take(LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(last);
        }
        let text = String::from_utf8_lossy(&line);
        let group = pattern.captures(text.trim_end()).and_then(|c| c.get(1));
        last = group.map(|g| g.as_str().to_owned()).or(last);
    }
}
