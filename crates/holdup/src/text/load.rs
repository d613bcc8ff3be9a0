//! The pages of `holdup load`.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use holdup_base::numbers::{self, figure};
use holdup_base::text::clean;
use holdup_load::harness::Live;
use holdup_load::report::{Change, Comparison, Latencies, Report};

use super::screen::{self, Style, say};
use super::wrap::paragraph;
use crate::documents::workload::Workload;

const BOLD: Style = Style::BOLD;
const DIM: Style = Style::DIM;

/// A few lines on standard error that follow a run; silent where that is no terminal.
pub struct Dashboard {
    visible: bool,
    lines: usize,
    drawn: Option<Instant>,
}

impl Dashboard {
    /// Nothing is drawn yet.
    pub fn new() -> Dashboard {
        Dashboard { visible: screen::is_watched(), lines: 0, drawn: None }
    }

    /// Draws what was measured so far.
    pub fn update(&mut self, live: &Live) {
        let is_soon = self.drawn.is_some_and(|drawn| drawn.elapsed() < Duration::from_millis(400));
        if !self.visible || is_soon {
            return;
        }
        self.erase();
        self.drawn = Some(Instant::now());
        let lines = lines(live);
        self.lines = lines.len();
        for line in lines {
            say!("{line}");
        }
    }

    /// Removes the lines.
    pub fn finish(&mut self) {
        self.erase();
        self.lines = 0;
    }

    fn erase(&self) {
        if self.lines > 0 {
            screen::erase(self.lines);
        }
    }
}

fn lines(live: &Live) -> Vec<String> {
    let seconds = live.elapsed.as_secs_f64();
    let share = match (live.of, live.cycles) {
        (Some(of), _) => seconds / of.as_secs_f64().max(1e-9),
        (None, Some(cycles)) => live.done as f64 / (cycles as f64).max(1.0),
        (None, None) => 0.0,
    };
    let filled = (share.clamp(0.0, 1.0) * 40.0) as usize;
    let bar = format!("{}{}", "█".repeat(filled), "░".repeat(40 - filled));
    let mut lines = vec![format!("{bar} {:3.0} %  {seconds:.0} s", 100.0 * share.clamp(0.0, 1.0))];
    let rate = live.rate.map_or("warming up".to_owned(), |per_s| format!("{}/s", rate(per_s)));
    lines.push(format!("throughput {rate:>12}   calls {:>12}   errors {:>8}", live.done, live.errors));
    if let Some((p50, p99, max)) = live.response {
        let [p50, p99, max] = [p50, p99, max].map(|nanos| time(nanos as f64));
        lines.push(format!("response   p50 {p50:>12}   p99 {p99:>14}   max {max:>11}"));
    }
    lines
}

/// Prints a report on standard output.
pub fn print(report: &Report) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    head(&mut out, report)?;
    counts(&mut out, report)?;
    times(&mut out, report)?;
    generator(&mut out, report)?;
    metrics(&mut out, report)?;
    if !report.error_kinds.is_empty() {
        writeln!(out, "\n{BOLD}errors{BOLD:#}")?;
        for kind in &report.error_kinds {
            writeln!(out, "{}", paragraph(&format!("  {:>8} × ", kind.count), &kind.message))?;
        }
    }
    if !report.warnings.is_empty() {
        writeln!(out)?;
    }
    for warning in &report.warnings {
        writeln!(out, "{}", paragraph("note: ", warning))?;
    }
    Ok(())
}

/// A report in one line.
pub fn line(report: &Report) -> String {
    let address = clean(report.address.as_deref().unwrap_or("no server"));
    let (p50, p99) = (time(report.latency_ms.p50 * 1e6), time(report.latency_ms.p99 * 1e6));
    let per_s = rate(report.throughput.mean);
    format!("{address}: {per_s} calls/s, p50 {p50}, p99 {p99}, {} errors", report.errors)
}

/// How the rate swings.
fn swing(report: &Report) -> String {
    report.rate_sine.map_or(String::new(), |wave| {
        format!(" ± {:.0} % in waves of {}", 100.0 * wave.amplitude, time(wave.period_s * 1e9))
    })
}

fn head(out: &mut impl Write, report: &Report) -> std::io::Result<()> {
    let address = clean(report.address.as_deref().unwrap_or("no server"));
    writeln!(out, "{BOLD}{}{BOLD:#} {}  ·  {address}", clean(&report.workload), clean(&report.function))?;
    if let Some(server) = &report.server {
        writeln!(out, "{DIM}{}{DIM:#}", clean(&server.to_string()))?;
    }
    let how = match report.rate {
        Some(per_s) => format!("open loop, {} calls due a second{}", rate(per_s), swing(report)),
        None => "closed loop, as many calls as can be".to_owned(),
    };
    let (threads, slots) = (report.threads, report.concurrency);
    let plural = if threads == 1 { "" } else { "s" };
    writeln!(out, "{DIM}{threads} thread{plural} × {slots} calls under way, {how}, {:.1} s{DIM:#}", report.elapsed_s)?;
    if !report.params.is_empty() {
        let params: Vec<String> = report.params.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        writeln!(out, "{DIM}{}{DIM:#}", clean(&params.join(", ")))?;
    }
    for (name, text) in &report.fields {
        writeln!(out, "{DIM}{}{DIM:#}", paragraph(&format!("{}: ", clean(name)), &clean(text)))?;
    }
    writeln!(out)
}

fn counts(out: &mut impl Write, report: &Report) -> std::io::Result<()> {
    let (threads, slots) = (report.threads, report.concurrency);
    let [low, high] = report.throughput.ci95;
    let mean = rate(report.throughput.mean);
    let interval = if low < high { format!("  (95 %: {} to {})", rate(low), rate(high)) } else { String::new() };
    writeln!(out, "{:>12} {BOLD}{mean:>12}/s{BOLD:#}{interval}", "throughput")?;
    writeln!(out, "{:>12} {:>12}", "calls", report.cycles)?;
    // Those of calls that the warm-up began are among them: only more than that is worth a line.
    if report.requests > report.cycles + report.cycles / 20 + (threads * slots) as u64 {
        writeln!(out, "{:>12} {:>12}", "statements", report.requests)?;
    }
    let rows = [("errors", report.errors, true), ("retries", report.retries, false), ("rows", report.rows, false)];
    if report.mean_concurrency > 0.0 {
        writeln!(out, "{:>12} {:>12}  on average", "under way", self::figure(report.mean_concurrency))?;
    }
    for (name, count, always) in rows {
        if always || count > 0 {
            writeln!(out, "{name:>12} {count:>12}")?;
        }
    }
    if let Some(due) = report.due {
        let (unserved, unfinished) = (report.unserved, report.unfinished);
        writeln!(out, "{:>12} {due:>12}  of them never begun {unserved}, not ended {unfinished}", "due")?;
    }
    Ok(())
}

fn times(out: &mut impl Write, report: &Report) -> std::io::Result<()> {
    let (unit, per_ms) = match report.service_ms.p50 {
        ms if ms < 0.001 => ("ns", 1e6),
        ms if ms < 1.0 => ("µs", 1e3),
        _ => ("ms", 1.0),
    };
    // A rare call may be a thousand times as long as most.
    let figure = |ms: f64| if ms * per_ms < 1e5 { figure(ms * per_ms) } else { time(ms * 1e6) };
    writeln!(
        out,
        "\n{BOLD}{:>12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}{BOLD:#}",
        unit, "mean", "p50", "p90", "p99", "p99.9", "max"
    )?;
    let mut row = |name: &str, times: &Latencies| {
        let figures = [times.mean, times.p50, times.p90, times.p99, times.p999, times.max].map(figure);
        let cells: Vec<String> = figures.iter().map(|figure| format!("{figure:>10}")).collect();
        writeln!(out, "{name:>12} {}", cells.join(" "))
    };
    if report.rate.is_some() {
        row("response", &report.latency_ms)?;
    }
    row("service", &report.service_ms)?;
    for function in &report.functions {
        row(&clean(&function.name), &function.service_ms)?;
    }
    let more: Vec<String> = report
        .percentiles
        .iter()
        .filter(|p| ![50.0, 90.0, 99.0, 99.9].contains(&p.percent))
        .map(|p| {
            let sure = p.ci95_ms.map_or(String::new(), |[low, high]| format!(" ({} to {})", figure(low), figure(high)));
            format!("p{} {}{sure}", p.percent, figure(p.response_ms))
        })
        .collect();
    if !more.is_empty() {
        writeln!(out, "{DIM}{}{DIM:#}", paragraph("             ", &more.join(", ")))?;
    }
    if let Some([low, high]) = report.p99_ci95_ms {
        writeln!(out, "{DIM}{:>12} p99 lies between {} and {} (95 %){DIM:#}", "", figure(low), figure(high))?;
    }
    Ok(())
}

/// The script's own metrics.
fn metrics(out: &mut impl Write, report: &Report) -> std::io::Result<()> {
    if report.metrics.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{BOLD}{:>12} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}{BOLD:#}",
        "metric", "values", "mean", "min", "p50", "p90", "p99", "max"
    )?;
    for m in &report.metrics {
        let figures = [m.mean, m.min, m.p50, m.p90, m.p99, m.max].map(|value| format!("{:>10}", figure(value)));
        let better = m.better.map_or(String::new(), |better| format!("  {DIM}{better} is better{DIM:#}"));
        writeln!(out, "{:>12} {:>10} {}{better}", clean(&m.name), m.count, figures.join(" "))?;
    }
    Ok(())
}

fn generator(out: &mut impl Write, report: &Report) -> std::io::Result<()> {
    let used = &report.generator;
    let late = used.late_ms.map_or(String::new(), |[mean, max]| {
        format!(", began calls {} ms late (at most {})", figure(mean), figure(max))
    });
    let words = format!(
        "{} of CPU a call (user {:.2} s, kernel {:.2} s), busiest thread {:.0} %, waited {:.2} s for a CPU{late}",
        time(used.cpu_ns_per_call),
        used.user_s,
        used.system_s,
        100.0 * used.busiest,
        used.ready_s
    );
    writeln!(out, "\n{DIM}{}{DIM:#}", paragraph("generator: ", &words))
}

/// A number for each second, with a fitting suffix.
fn rate(per_s: f64) -> String {
    match per_s {
        r if r >= 1e6 => format!("{} M", figure(r / 1e6)),
        r if r >= 1e5 => format!("{} k", figure(r / 1e3)),
        r => figure(r),
    }
}

/// Nanoseconds in a fitting unit.
fn time(nanos: f64) -> String {
    let (unit, per_s) = numbers::unit(nanos / 1e9);
    let digits = match unit {
        "ns" => 0,
        "µs" => 1,
        _ => 2,
    };
    format!("{:.digits$} {unit}", nanos / 1e9 * per_s)
}

/// Prints what a workload offers.
pub fn print_workload(workload: &Workload) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    writeln!(out, "{BOLD}functions{BOLD:#}")?;
    for function in &workload.functions {
        let args = if function.args > 1 { "once for each cycle" } else { "without a cycle" };
        writeln!(out, "  {:<20} {DIM}{args}{DIM:#}", clean(&function.name))?;
    }
    writeln!(out, "{BOLD}parameters{BOLD:#}")?;
    for param in &workload.params {
        writeln!(out, "  {:<20} {}", clean(&param.name), clean(&param.default))?;
    }
    Ok(())
}

/// Reports with their files, for JSON.
pub fn listing(reports: &[(String, Report)]) -> serde_json::Value {
    let line = |(path, report): &(String, Report)| {
        serde_json::json!({
            "path": path, "workload": report.workload, "function": report.function, "rate": report.rate,
            "tags": report.tags, "throughput": report.throughput.mean, "p99_ms": report.latency_ms.p99,
            "errors": report.errors, "finished_unix_s": report.finished_unix_s,
        })
    };
    reports.iter().map(line).collect()
}

/// Prints the reports of a folder.
pub fn print_reports(folder: &Path, reports: &[(String, Report)]) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    if reports.is_empty() {
        writeln!(out, "{}: no reports of `holdup load run -o`", folder.display())?;
        return Ok(());
    }
    writeln!(out, "{BOLD}{:>12} {:>10} {:>8}  report{BOLD:#}", "calls/s", "p99 ms", "errors")?;
    for (path, report) in reports {
        let (mean, p99) = (rate(report.throughput.mean), figure(report.latency_ms.p99));
        let (path, about) = (clean(path), format!("{} {}", report.function, report.tags.join(" ")));
        writeln!(out, "{mean:>12} {p99:>10} {:>8}  {path} {DIM}{}{DIM:#}", report.errors, clean(&about))?;
    }
    Ok(())
}

/// Prints a comparison.
pub fn print_comparison(comparison: &Comparison) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    writeln!(
        out,
        "{BOLD}{:>20} {:>12} {:>12} {:>8} {:>17} {:>8}{BOLD:#}",
        "", "before", "after", "ratio", "95 %", "p"
    )?;
    for change in &comparison.changes {
        row(&mut out, change)?;
    }
    writeln!(out, "\n{}", paragraph("", &comparison.verdict))?;
    for note in &comparison.notes {
        writeln!(out, "{DIM}{}{DIM:#}", paragraph("note: ", note))?;
    }
    Ok(())
}

fn row(out: &mut impl Write, change: &Change) -> std::io::Result<()> {
    let interval = change.ci95.map_or("–".to_owned(), |[low, high]| format!("{low:.3} to {high:.3}"));
    let p = change.p.map_or("–".to_owned(), |p| format!("{p:.3}"));
    writeln!(
        out,
        "{:>20} {:>12} {:>12} {:>7.3}× {interval:>17} {p:>8}",
        clean(change.name.name()),
        figure(change.before),
        figure(change.after),
        change.ratio
    )
}
