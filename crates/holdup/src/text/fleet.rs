//! What `holdup fleet` prints.

use std::io::Write;

use holdup_base::numbers::duration;
use holdup_base::text::clean;
use holdup_fleet::{Cell, Change, Different, Question, Rows, Significance};

use super::screen::{self, AnsiColor, Style};
use super::wrap::{cut, width};
use crate::documents::fleet::{FleetDiff, FleetExample, FleetReport, Table, Traces};

const BOLD: Style = Style::BOLD;
const DIM: Style = Style::DIM;
const WORSE: Style = Style::color(AnsiColor::Red);
const BETTER: Style = Style::color(AnsiColor::Green);

/// Prints a report.
pub fn report(found: &FleetReport) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    head(&mut out, &found.of)?;
    if found.of.traces == 0 {
        return Ok(());
    }
    let share = 100.0 * found.held_up / found.cpu_seconds.max(1e-9);
    writeln!(
        out,
        "{} of CPU time; CPUs stood still for {} of it ({share:.1} %) while threads were held up",
        duration(found.cpu_seconds),
        duration(found.held_up)
    )?;
    for told in &found.tables {
        table(&mut out, told, found.cpu_seconds)?;
    }
    different(&mut out, &found.different)
}

fn head(out: &mut impl Write, of: &Traces) -> anyhow::Result<()> {
    let Traces { dataset, since, until, hosts, traces } = of;
    if *traces == 0 {
        writeln!(out, "{BOLD}{}{BOLD:#}  no traces of these days", clean(dataset))?;
        return Ok(());
    }
    let days = if since == until { since.clone() } else { format!("{since} to {until}") };
    writeln!(out, "{BOLD}{}{BOLD:#}  {}, {days}", clean(dataset), counted(*traces, *hosts))?;
    Ok(())
}

fn counted(traces: i64, hosts: i64) -> String {
    let many = |n: i64, what: &str| if n == 1 { format!("one {what}") } else { format!("{n} {what}s") };
    format!("{} of {}", many(traces, "trace"), many(hosts, "host"))
}

/// One question: for how long CPUs stood still (or ran), as a share, on how many hosts, and for what.
fn table(out: &mut impl Write, told: &Table, cpu_seconds: f64) -> anyhow::Result<()> {
    if told.rows.rows.is_empty() {
        return Ok(());
    }
    let Table { name, of, rows } = told;
    let Some(question) = Question::ALL.iter().find(|q| q.name() == *name) else { return Ok(()) };
    writeln!(out, "\n{BOLD}{}{BOLD:#}", question.title())?;
    let time = if rows.columns.iter().any(|c| c == "blame_ns") {
        "blame_ns"
    } else {
        rows.columns.iter().find(|c| c.ends_with("_ns")).map_or("", String::as_str)
    };
    let what = match time {
        "blame_ns" | "held_up_ns" => "held up",
        _ => "ran",
    };
    writeln!(out, "{DIM}{what:>9}  {:>6}  {:>6}  what{DIM:#}", "share", "hosts")?;
    for row in &rows.rows {
        let seconds = rows.get(row, time).number() as f64 / 1e9;
        let share = 100.0 * seconds / cpu_seconds.max(1e-9);
        let hosts = rows.get(row, "hosts").number();
        let line = cut(&words(rows, row), width().saturating_sub(30));
        writeln!(out, "{:>9}  {share:>4.1} %  {hosts:>6}  {line}", duration(seconds))?;
    }
    if *of > rows.rows.len() {
        writeln!(out, "{DIM}{:>9}  --top {of} for all {of}{DIM:#}", "")?;
    }
    Ok(())
}

/// The names of a row: what it is about.
fn words(rows: &Rows, row: &[Cell]) -> String {
    let named = |(column, cell): (&String, &Cell)| match (column.as_str(), cell) {
        (_, Cell::Number(_)) => None,
        (_, Cell::Text(text)) if text.is_empty() => None,
        ("build_id", Cell::Text(text)) => Some(format!("build {}", text.chars().take(12).collect::<String>())),
        ("since" | "until", _) => None,
        (_, Cell::Text(text)) => Some(clean(text).into_owned()),
    };
    rows.columns.iter().zip(row).filter_map(named).collect::<Vec<_>>().join("  ")
}

fn different(out: &mut impl Write, all: &[Different]) -> anyhow::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{BOLD}Hosts that differ from their peers{BOLD:#}")?;
    for one in all {
        let what = function(&one.process, &one.function);
        let line =
            format!("{}: {what} holds up {}, elsewhere {}", clean(&one.host), percent(one.share), percent(one.typical));
        writeln!(out, "  {}", cut(&line, width().saturating_sub(2)))?;
    }
    Ok(())
}

/// Prints what changed.
pub fn diff(found: &FleetDiff) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    head(&mut out, &found.of)?;
    if found.at.is_empty() {
        writeln!(out, "There are traces of one day at most: nothing to compare.")?;
        return Ok(());
    }
    let tried =
        if found.tried > 1 { format!(", the day of {} on which most changed", found.tried) } else { String::new() };
    writeln!(out, "before and from {} on{tried}; {} hosts have traces on both sides", found.at, found.hosts)?;
    if found.too_few {
        writeln!(out, "These are too few hosts to tell a change from chance.")?;
    }
    let is_told = |c: &&Change| c.significance != Significance::Chance;
    let (told, chance): (Vec<&Change>, Vec<&Change>) = found.changes.iter().partition(is_told);
    if told.is_empty() && !found.too_few {
        writeln!(out, "\nNo change is more than chance.")?;
    }
    for change in told {
        let (style, verb) = if change.after > change.before { (WORSE, "up from") } else { (BETTER, "down from") };
        let Change { process, function: name, before, after, hosts, p, .. } = change;
        writeln!(out, "\n{style}{BOLD}{}{BOLD:#}{style:#}", function(process, name))?;
        writeln!(
            out,
            "  holds up {} of the CPU time, {verb} {}: on {hosts} of {} hosts (by chance: {p:.0e})",
            percent(*after),
            percent(*before),
            found.hosts
        )?;
    }
    if !chance.is_empty() {
        writeln!(out, "\n{DIM}may be chance{DIM:#}")?;
    }
    for Change { process, function: name, before, after, hosts, .. } in chance {
        let line = format!("{} → {}  on {hosts} hosts  {}", percent(*before), percent(*after), function(process, name));
        writeln!(out, "{DIM}  {}{DIM:#}", cut(&line, width().saturating_sub(2)))?;
    }
    Ok(())
}

/// Prints examples, with what to do with the first.
pub fn example(found: &FleetExample) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    head(&mut out, &found.of)?;
    let FleetExample { rows, of, .. } = found;
    for row in &rows.rows {
        let get = |column| rows.get(row, column);
        let share = get("blame_ns").number() as f64 / get("total_ns").number().max(1) as f64;
        let place =
            format!("{}  {}  {}", clean(get("date").text()), clean(get("host").text()), clean(get("label").text()));
        writeln!(out, "\n{BOLD}{}{BOLD:#}  {}", percent(share), place.trim_end())?;
        writeln!(out, "  {}", cut(&clean(get("title").text()), width().saturating_sub(2)))?;
        let recording = get("recording").text();
        let at = if recording.is_empty() {
            get("source").text().to_owned()
        } else {
            format!("{}/{recording}", of.dataset.trim_end_matches('/'))
        };
        writeln!(out, "  {DIM}{}{DIM:#}", clean(&at))?;
    }
    match rows.rows.first() {
        None if of.traces > 0 => {
            writeln!(out, "No trace shows that: `holdup fleet report {}` tells what there is.", clean(&of.dataset))?;
        }
        Some(row) if rows.get(row, "recording").text().is_empty() => {
            writeln!(
                out,
                "\nThe recordings are where they were added from; --with-recording keeps them in the data set."
            )?;
        }
        _ => {}
    }
    Ok(())
}

fn function(process: &str, function: &str) -> String {
    if function.is_empty() {
        format!("`{}`", clean(process))
    } else {
        format!("`{}` in `{}`", clean(process), clean(function))
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
