//! `holdup diff`.

use std::path::PathBuf;

use clap::Args;

/// Examples.
pub const HELP: &str = "\
Examples:
  holdup diff before.holdup --vs after.holdup
  holdup diff old1.holdup old2.holdup old3.holdup --vs new1.holdup new2.holdup new3.holdup
  holdup diff old.holdup --vs new.holdup --per 1000:1200    the later run did 1200 units of work instead of 1000
  holdup diff old.holdup --vs new.holdup --per span:GET     the same, for each of these spans
  holdup diff main.holdup --vs branch.holdup --fail-on 5%   exit code 1 if something grew by more
  holdup diff old.holdup --vs new.holdup --flame diff.svg   differential flame graph

A cause changed by itself: a function that ran longer, a lock held longer, a sleep. A symptom follows from a cause: the \
waits for that lock, the spinning behind it. Three or more runs on each side measure the noise instead of assuming it.";

/// `holdup diff`
#[derive(Debug, Args)]
pub struct Diff {
    /// The earlier traces
    #[arg(required = true, value_name = "BEFORE")]
    pub before: Vec<PathBuf>,
    /// The later traces
    #[arg(long, required = true, num_args = 1.., value_name = "AFTER")]
    pub vs: Vec<PathBuf>,
    /// Units of work that each run did before and after, such as 1000:1200; or span:NAME, to count the spans of that name in each trace
    #[arg(long, value_parser = per, value_name = "N:M|span:NAME")]
    pub per: Option<Per>,
    /// Exit with 1 if something grew by more than this, such as 5%
    #[arg(long, value_parser = percent, value_name = "PERCENT")]
    pub fail_on: Option<f64>,
    /// Only this process (name or pid) and its children
    #[arg(long, value_name = "PROC")]
    pub focus: Option<String>,
    /// Only this part of every trace, in seconds from its start, such as 1.5..3
    #[arg(long, value_parser = super::window, value_name = "A..B")]
    pub window: Option<(f64, f64)>,
    /// How many changes to show
    #[arg(long, default_value_t = 12, value_name = "N")]
    pub top: usize,
    /// Write a differential flame graph (SVG): red grew, blue shrank
    #[arg(long, value_name = "FILE")]
    pub flame: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// How much work runs did.
#[derive(Debug, Clone, PartialEq)]
pub enum Per {
    /// So much each before, and after.
    Amounts(f64, f64),
    /// As many as there are spans of this name; if it is empty, of the only one.
    Spans(String),
}

fn per(text: &str) -> Result<Per, String> {
    if text == "span" {
        return Ok(Per::Spans(String::new()));
    }
    if let Some(name) = text.strip_prefix("span:") {
        return Ok(Per::Spans(name.to_owned()));
    }
    let bad = || format!("{text:?} is not a pair of amounts of work; write N:M, such as 1000:1200, or span:NAME");
    let (n, m) = text.split_once(':').ok_or_else(bad)?;
    let number = |s: &str| s.trim().parse::<f64>().ok().filter(|v| v.is_finite() && *v > 0.0).ok_or_else(bad);
    Ok(Per::Amounts(number(n)?, number(m)?))
}

pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
    number.map(|v| v / 100.0).ok_or_else(|| format!("{text:?} is not a percentage; write 5%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_work_are_positive() {
        assert_eq!(per("1000:1200"), Ok(Per::Amounts(1000.0, 1200.0)));
        assert_eq!(per("span:tcp:80"), Ok(Per::Spans("tcp:80".into())));
        assert!(per("0:1").is_err());
        assert!(per("1000").is_err());
        assert_eq!(percent("5%"), Ok(0.05));
        assert_eq!(percent("2.5"), Ok(0.025));
        assert!(percent("-1%").is_err());
    }
}
