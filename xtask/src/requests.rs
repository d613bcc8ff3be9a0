//! `cargo xtask requests`: what made the slow requests of servers slow? Does `explain --spans` say what the server itself, or another
//! instrument, says?

mod cases;

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use holdup_analysis::report::Confidence;
use regex::Regex;
use serde::Deserialize;

use crate::holdup::Holdup;
use crate::real::scene::{Missing, Scene};
use crate::{take_number, take_option};

/// How far ours may be from what another instrument measured.
const TOLERANCE: f64 = 0.15;
/// How far the pieces of a span may be from its length.
const SUM: f64 = 0.001;

/// A server under a load, some of whose requests are slow.
struct Case {
    name: &'static str,
    /// The server, and where its spans come from.
    title: &'static str,
    /// As one would type it.
    spans: &'static str,
    needs: &'static [&'static str],
    /// Why some are slow, and who says how slow.
    truth: &'static str,
    /// What the first cause must be.
    right: Cause,
    record: fn(&Scene) -> Result<Recorded>,
}

/// Patterns of a cause's fields.
struct Cause {
    what: &'static str,
    process: &'static str,
    function: &'static str,
}

/// What came of running a case.
struct Recorded {
    trace: PathBuf,
    /// What follows `--spans`.
    spans: Vec<String>,
    /// By the other instrument, in seconds: the longest request's part that the pattern `what` names, or all of it.
    longest_s: f64,
    what: &'static str,
}

/// What is compared of `explain --spans … --json`.
#[derive(Deserialize)]
struct Said {
    slow: Group,
    typical: Group,
    causes: Vec<Named>,
    worst: Vec<Worst>,
    confidence: Confidence,
}

#[derive(Deserialize)]
struct Group {
    count: u64,
    mean_s: f64,
    account: Account,
}

#[derive(Deserialize)]
struct Account {
    ran_s: f64,
    ready_s: f64,
    waited_s: f64,
    unknown_s: f64,
}

#[derive(Deserialize)]
struct Named {
    what: String,
    process: String,
    function: String,
    slow_s: f64,
    typical_s: f64,
}

#[derive(Deserialize)]
struct Worst {
    length_s: f64,
    pieces: Vec<Piece>,
}

#[derive(Deserialize)]
struct Piece {
    what: String,
    length_s: f64,
}

/// One case's line of the table.
struct Row {
    is_right: bool,
    cells: [String; 6],
}

/// Runs the cases named in `args`, or all. Whether all are right.
pub fn run(root: &Path, args: &[String]) -> Result<bool> {
    let mut args = args.to_vec();
    let holdup = Holdup::new(root, take_option(&mut args, "--holdup")?)?;
    let (seconds, table) = (take_number(&mut args, "--seconds", 5.0)?, take_option(&mut args, "--table")?);
    for name in &args {
        let known = || cases::ALL.iter().map(|c| c.name).collect::<Vec<_>>().join(", ");
        ensure!(cases::ALL.iter().any(|c| c.name == name), "no case is called {name}: there are {}", known());
    }
    let (mut text, mut all_right) = (String::from(HEAD), true);
    for case in cases::ALL.iter().filter(|c| args.is_empty() || args.iter().any(|name| name == c.name)) {
        eprintln!("{} …", case.name);
        match tried(case, &holdup, root, seconds) {
            Ok(row) => {
                all_right &= row.is_right;
                let cells = row.cells.map(|c| c.replace('|', "\\|").replace('\n', " "));
                println!("{}: {}", case.name, cells.get(1..).unwrap_or_default().join("\n  "));
                writeln!(text, "| {} |", cells.join(" | "))?;
            }
            Err(e) => {
                println!("{}: {e:#}", case.name);
                all_right &= e.is::<Missing>();
            }
        }
    }
    if let Some(path) = table {
        fs::write(&path, text).with_context(|| path)?;
    }
    Ok(all_right)
}

const HEAD: &str = "# Slow requests of real servers

Made by `cargo xtask requests --table docs/slow-requests.md`: each server is recorded under a load in which some requests are slow, for a reason that is
planted and known; what `explain --spans` says of the slowest percent stands beside it, and the longest request beside what the server, or another
instrument, measured. *Sum*: how far the parts of the slow ones (ran, ready, waited, unknown) are from their length.

| server, and where its spans come from | truth | the slow ones had, and the others had not | verdict | longest, by the other instrument | sum |
|---|---|---|---|---|---|
";

fn tried(case: &Case, holdup: &Holdup, root: &Path, seconds: f64) -> Result<Row> {
    let scene = Scene::new(holdup, &root.join("target/real").join(case.name), seconds, case.needs)?;
    let recorded = (case.record)(&scene)?;
    let mut args: Vec<&OsStr> = vec!["explain".as_ref(), recorded.trace.as_ref()];
    args.extend(recorded.spans.iter().map(OsStr::new));
    let said: Said = holdup.json(&args)?;
    judged(case, &recorded, &said)
}

fn judged(case: &Case, recorded: &Recorded, said: &Said) -> Result<Row> {
    let is = |cause: &Named| -> Result<bool> {
        let all = [
            (case.right.what, &cause.what),
            (case.right.process, &cause.process),
            (case.right.function, &cause.function),
        ];
        all.into_iter().try_fold(true, |so_far, (pattern, text)| Ok(so_far && Regex::new(pattern)?.is_match(text)))
    };
    let first = said.causes.first().context("it names no cause")?;
    let (is_first, is_any) = (is(first)?, said.causes.iter().map(is).collect::<Result<Vec<_>>>()?.contains(&true));
    let longest = longest(said, recorded.what)?;
    let off = longest / recorded.longest_s - 1.0;
    let sum = [&said.slow, &said.typical].map(|group| {
        let a = &group.account;
        ((a.ran_s + a.ready_s + a.waited_s + a.unknown_s) / group.mean_s - 1.0).abs()
    });
    let sum = sum[0].max(sum[1]);
    let is_right = is_first && off.abs() <= TOLERANCE && sum <= SUM;
    let verdict = match (is_right, is_first || is_any) {
        (true, _) => "right",
        (_, true) if !is_first => "vague: not the first",
        (_, true) => "vague: the figures differ",
        _ if said.confidence == Confidence::High => "**wrong**",
        _ => "wrong",
    };
    let ms = |s: f64| format!("{:.1} ms", s * 1e3);
    let headline = format!(
        "{} of {} spans: {} each in `{}` of {} ({}), the others {}; {}",
        said.slow.count,
        said.slow.count + said.typical.count,
        ms(first.slow_s),
        first.function,
        first.process,
        first.what,
        ms(first.typical_s),
        said.confidence
    );
    let compared = format!("{} by us, {} by it ({:+.1} %)", ms(longest), ms(recorded.longest_s), off * 100.0);
    let title = format!("{} (`{}`): `{}`", case.title, case.name, case.spans);
    let cells = [title, case.truth.to_owned(), headline, verdict.to_owned(), compared, format!("{:.3} %", sum * 100.0)];
    Ok(Row { is_right, cells })
}

/// The longest span, or of all the worst the most that one has of what matches `what`, in seconds.
fn longest(said: &Said, what: &str) -> Result<f64> {
    let pattern = Regex::new(what)?;
    let of = |worst: &Worst| match what {
        "" => worst.length_s,
        _ => worst.pieces.iter().filter(|piece| pattern.is_match(&piece.what)).map(|piece| piece.length_s).sum(),
    };
    Ok(said.worst.iter().map(of).fold(0.0, f64::max))
}
