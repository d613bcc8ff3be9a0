//! The table of `holdup threads`.

use std::cmp::Reverse;
use std::io::Write;

use clap::ValueEnum;
use holdup_analysis::label::duration;
use holdup_analysis::threads::{Naming, ThreadList, ThreadTimes};
use holdup_base::text::clean;
use holdup_trace::Timestamp;

use super::screen::{self, AnsiColor, Style};
use super::wrap::{cut, paragraph, width};
use crate::documents::live::{Live, LiveRow};

const BOLD: Style = Style::BOLD;
const DIM: Style = Style::DIM;
const WARN: Style = Style::color(AnsiColor::Yellow);
/// Columns of a thread's name: the kernel keeps 15 bytes.
const NAME: usize = 15;

/// By what threads are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ThreadOrder {
    /// Time on a CPU
    Ran,
    /// Time ready to run
    Ready,
    /// Time waited
    Waited,
    /// Number of waits, or of voluntary switches
    Waits,
    /// Thread name
    Name,
    /// Thread id
    Tid,
}

/// Puts threads in order, the greatest first.
pub fn sort(threads: &mut [ThreadTimes], by: ThreadOrder) {
    let ns = |s: f64| Reverse(Timestamp::from_seconds(s));
    threads.sort_by(|a, b| a.tid.cmp(&b.tid).then(a.pid.cmp(&b.pid)));
    match by {
        ThreadOrder::Ran => threads.sort_by_key(|t| ns(t.ran_s)),
        ThreadOrder::Ready => threads.sort_by_key(|t| ns(t.ready_s)),
        ThreadOrder::Waited => threads.sort_by_key(|t| ns(t.waited_s)),
        ThreadOrder::Waits => threads.sort_by_key(|t| Reverse(t.waits)),
        ThreadOrder::Name => threads.sort_by(|a, b| a.name.cmp(&b.name)),
        ThreadOrder::Tid => {}
    }
}

/// Prints the threads of a trace, of which there are `all`.
pub fn print(found: &ThreadList, all: usize) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    let focus =
        if found.focus.is_empty() { "whole machine".to_owned() } else { format!("focus: {}", clean(&found.focus)) };
    writeln!(out, "{BOLD}{}{BOLD:#}  {:.3} s, {focus}: {}", found.trace, found.duration_s, counts(all, found.unnamed))?;
    let process = found.threads.iter().map(|t| clean(&t.process).chars().count()).max().unwrap_or(0).clamp(7, NAME);
    writeln!(
        out,
        "{DIM}{:>8}  {:<NAME$}  {:<process$}  {:>8}  {:>8}  {:>8}  {:>7}  waited for{DIM:#}",
        "tid", "thread", "process", "ran", "ready", "waited", "waits"
    )?;
    for t in &found.threads {
        let room = width().saturating_sub(8 + NAME + process + 8 * 3 + 7 + 14);
        let (style, name) = (style(t.naming), cut(&t.name, NAME));
        writeln!(
            out,
            "{:>8}  {style}{name:<NAME$}{style:#}  {:<process$}  {:>8}  {:>8}  {:>8}  {:>7}  {}",
            t.tid,
            cut(&t.process, process),
            duration(t.ran_s),
            duration(t.ready_s),
            duration(t.waited_s),
            t.waits,
            cut(&remarks(t), room)
        )?;
    }
    tail(&mut out, all - found.threads.len(), &found.advice)?;
    if found.outside > 0 {
        writeln!(out, "{DIM}{} threads outside the focus are not listed (--all){DIM:#}", found.outside)?;
    }
    Ok(())
}

/// Prints the threads of a running process, of which there are `all`.
pub fn print_live(found: &Live, all: usize) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    let head = format!("{} ({})", clean(&found.process), found.pid);
    writeln!(out, "{BOLD}{head}{BOLD:#}  running, since its start: {}", counts(all, found.unnamed))?;
    writeln!(
        out,
        "{DIM}{:>8}  {:<NAME$}  {:>5}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}{DIM:#}",
        "tid", "thread", "state", "ran", "ready", "runs", "waits", "preempted"
    )?;
    for t in &found.threads {
        live_row(&mut out, t)?;
    }
    tail(&mut out, all - found.threads.len(), &found.advice)?;
    let doc = "ready: could run and did not; waits: voluntary switches; preempted: involuntary ones. What they wait for only a \
               trace tells: holdup record -p PID";
    writeln!(out, "{DIM}{}{DIM:#}", paragraph("", &doc.replace("PID", &found.pid.to_string())))?;
    Ok(())
}

fn live_row(out: &mut impl Write, t: &LiveRow) -> std::io::Result<()> {
    let seconds = |s: Option<f64>| s.map_or("–".to_owned(), duration);
    let (style, name) = (style(t.naming), cut(&t.name, NAME));
    writeln!(
        out,
        "{:>8}  {style}{name:<NAME$}{style:#}  {:>5}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {}",
        t.tid,
        t.state,
        seconds(t.ran_s),
        seconds(t.ready_s),
        t.runs.map_or("–".to_owned(), |n| n.to_string()),
        t.voluntary,
        t.involuntary,
        t.naming.word()
    )
}

fn counts(all: usize, unnamed: usize) -> String {
    let threads = if all == 1 { "1 thread".to_owned() } else { format!("{all} threads") };
    if unnamed == 0 { threads } else { format!("{threads}, {unnamed} without a name of their own") }
}

fn tail(out: &mut impl Write, more: usize, advice: &str) -> std::io::Result<()> {
    if more > 0 {
        writeln!(out, "{DIM}{:>8}  {more} more (--top shows them){DIM:#}", "…")?;
    }
    if advice.is_empty() { Ok(()) } else { writeln!(out, "{}", paragraph("", advice)) }
}

fn style(naming: Naming) -> Style {
    if naming.is_unnamed() { WARN } else { Style::PLAIN }
}

/// What it is there for, the kinds of waiting with the most time, and what the name tells.
pub fn remarks(t: &ThreadTimes) -> String {
    let mut kinds: Vec<(&str, f64)> = t.waited_by_kind.iter().map(|(k, s)| (*k, *s)).collect();
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let share = |s: f64| 100.0 * s / t.waited_s.max(f64::MIN_POSITIVE);
    let mut words: Vec<String> =
        kinds.iter().filter(|k| share(k.1) >= 1.0).take(3).map(|(k, s)| format!("{k} {:.0} %", share(*s))).collect();
    if let Some(role) = t.role {
        words.insert(0, format!("[{}]", role.name()));
    }
    if !matches!(t.naming, Naming::Own | Naming::Main) {
        words.push(format!("[{}]", t.naming.word()));
    }
    words.join(", ")
}
