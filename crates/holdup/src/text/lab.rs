//! Results of the lab as tables.

use std::collections::BTreeSet;
use std::io::Write;

use holdup_base::text::clean;
use holdup_lab::compare::{Comparison, Pair};
use holdup_lab::experiments;
use holdup_lab::knobs::{Kind, Knob};
use holdup_lab::machine::Machine;
use holdup_lab::result::{Outcome, Point, Series};
use serde_json::json;

use super::{screen, wrap};

/// Columns of a name, at most.
const NAME: usize = 44;
/// Columns of a figure with its spread.
const CELL: usize = 16;

/// A line on standard error that says which experiment runs and how far it is; silent where that is no terminal.
pub struct ProgressLine {
    head: String,
    visible: bool,
    percent: u32,
}

impl ProgressLine {
    /// For experiment number `index` of `count`.
    pub fn new(name: &str, index: usize, count: usize) -> Self {
        let left = count - index - 1;
        let head = format!("[{}/{count}] {name}", index + 1)
            + &if left > 0 { format!(", {left} to come") } else { String::new() };
        let line = ProgressLine { head, visible: screen::is_watched(), percent: 0 };
        line.draw();
        line
    }

    /// Redraws the line if another per cent is done.
    pub fn update(&mut self, done: f64) {
        let percent = (done * 100.0).clamp(0.0, 100.0) as u32;
        if percent != self.percent {
            self.percent = percent;
            self.draw();
        }
    }

    /// Removes the line.
    pub fn finish(&self) {
        if self.visible {
            screen::redraw("");
        }
    }

    fn draw(&self) {
        if self.visible {
            screen::redraw(&format!("{}: {} %", self.head, self.percent));
        }
    }
}

/// The experiments and their knobs as JSON.
pub fn listing() -> serde_json::Value {
    let knob =
        |k: &Knob| json!({"name": k.name, "about": k.about, "values": range(k), "quick": k.quick, "full": k.full});
    let list = experiments::ALL.iter().map(|e| {
        json!({"name": e.name, "about": e.about, "axis": e.axis, "knobs": e.knobs.iter().map(knob).collect::<Vec<_>>()})
    });
    json!({"schema": "holdup.lab-list/1", "experiments": list.collect::<Vec<_>>()})
}

/// Prints the experiments and their knobs.
pub fn print_list() -> anyhow::Result<()> {
    let mut out = screen::stdout();
    for experiment in experiments::ALL {
        writeln!(out, "{}", wrap::paragraph(&format!("{:<14}", experiment.name), experiment.about))?;
        for knob in experiment.knobs {
            let default = if knob.quick == knob.full {
                knob.full.to_owned()
            } else {
                format!("{}; quick {}", knob.full, knob.quick)
            };
            let about = format!("{} [{default}] ({})", knob.about, range(knob));
            writeln!(out, "{}", wrap::paragraph(&format!("    {:<12}", knob.name), &about))?;
        }
    }
    Ok(())
}

fn range(knob: &Knob) -> String {
    match knob.kind {
        Kind::Number { min, max } => format!("{min} to {max}"),
        Kind::Counts { min, max } => format!("whole numbers from {min} to {max}"),
        Kind::Words(words) => words.join(", "),
        Kind::Cpus => "CPUs of this machine".to_owned(),
    }
}

/// Prints where the lab is.
pub fn print_machine(machine: &Machine) -> anyhow::Result<()> {
    writeln!(screen::stdout(), "{}", wrap::paragraph("", &machine.caption()))?;
    Ok(())
}

/// Prints one experiment: its figures, then what they mean.
pub fn print_outcome(outcome: &Outcome) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    writeln!(out, "\n{}  {:.1} s", clean(&outcome.name), outcome.elapsed_s)?;
    let params: Vec<String> = outcome.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
    writeln!(out, "{}", wrap::paragraph("  ", &params.join(" ")))?;
    for (axis, series) in by_axis(outcome) {
        print_table(&mut out, axis, &series)?;
    }
    print_costs(&mut out, outcome)?;
    for note in &outcome.notes {
        writeln!(out, "{}", wrap::paragraph("  note: ", note))?;
    }
    let verdict = &outcome.verdict;
    let word = if verdict.reproduced { "reproduced: " } else { "not reproduced here: " };
    writeln!(out, "{}", wrap::paragraph("  ", &format!("{word}{}", verdict.because)))?;
    writeln!(out, "{}", wrap::paragraph("  to do: ", &verdict.advice))?;
    Ok(())
}

/// Series with the same axis stand in one table.
fn by_axis(outcome: &Outcome) -> Vec<(&str, Vec<&Series>)> {
    let mut tables: Vec<(&str, Vec<&Series>)> = Vec::new();
    for series in &outcome.series {
        let axis = series.axis.as_deref().unwrap_or(&outcome.axis);
        match tables.iter_mut().find(|(a, _)| *a == axis) {
            Some((_, table)) => table.push(series),
            None => tables.push((axis, vec![series])),
        }
    }
    tables
}

fn print_table(out: &mut impl Write, axis: &str, series: &[&Series]) -> anyhow::Result<()> {
    let xs: BTreeSet<u64> = series.iter().flat_map(|s| &s.points).map(|p| p.x.to_bits()).collect();
    let xs: Vec<f64> = xs.into_iter().map(f64::from_bits).collect();
    let name = series.iter().map(|s| clean(&s.name).chars().count()).max().unwrap_or(0).clamp(12, NAME);
    let columns = ((wrap::width().saturating_sub(name + 12)) / CELL).max(1);
    for xs in xs.chunks(columns) {
        write!(out, "  {:>width$} ", clean(axis), width = name + 8)?;
        for x in xs {
            write!(out, "{:>CELL$}", figure(*x))?;
        }
        writeln!(out)?;
        for series in series {
            let unit: String = clean(&series.unit).chars().take(7).collect();
            write!(out, "  {:<name$} {unit:>7} ", clean(&series.name))?;
            for x in xs {
                let point = series.points.iter().find(|p| p.x == *x);
                write!(out, "{:>CELL$}", point.map_or("–".to_owned(), cell))?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// A median and how far its interval reaches, in per cent.
fn cell(point: &Point) -> String {
    let reach = (point.high - point.median).max(point.median - point.low);
    let percent = if point.median == 0.0 { 0.0 } else { 100.0 * reach / point.median.abs() };
    format!("{} ±{percent:.0} %", figure(point.median))
}

/// What operations cost besides: at the last point of each series, and at all where CPU time is split.
fn print_costs(out: &mut impl Write, outcome: &Outcome) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for series in &outcome.series {
        let with = |i: &usize, p: &Point| *i + 1 == series.points.len() || p.costs.is_some_and(|c| c.user_ns.is_some());
        let shown = series.points.iter().enumerate().filter(|(i, p)| with(i, p));
        rows.extend(shown.filter_map(|(_, p)| p.costs.map(|c| (&series.name, p.x, c, p.waits))));
    }
    if rows.is_empty() {
        return Ok(());
    }
    let name = rows.iter().map(|r| clean(r.0).chars().count()).max().unwrap_or(0).clamp(12, NAME);
    writeln!(
        out,
        "  {:<name$} {:>6} {:>8} {:>8} {:>8} {:>8} {:>5} {:>8} {:>8}",
        "for each operation", "x", "user ns", "sys ns", "elapsed", "switches", "fair", "p99 ns", "max ns"
    )?;
    for (series, x, costs, waits) in rows {
        let wait =
            |pick: fn(&holdup_lab::result::Waits) -> f64| waits.as_ref().map_or("–".to_owned(), |w| figure(pick(w)));
        writeln!(
            out,
            "  {:<name$} {:>6} {:>8} {:>8} {:>8} {:>8} {:>5.2} {:>8} {:>8}",
            clean(series),
            figure(x),
            costs.user_ns.map_or("–".to_owned(), figure),
            costs.system_ns.map_or("–".to_owned(), figure),
            figure(costs.elapsed_ns),
            figure(costs.switches),
            costs.fairness,
            wait(|w| w.p99_ns),
            wait(|w| w.max_ns),
        )?;
    }
    Ok(())
}

/// How many differing series are shown, at most.
const SHOWN: usize = 40;

/// Prints what differs by more than its spread, the largest difference first.
pub fn print_comparison(comparison: &Comparison) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    writeln!(out, "{}", wrap::paragraph("A  ", &comparison.before.caption()))?;
    writeln!(out, "{}", wrap::paragraph("B  ", &comparison.after.caption()))?;
    let mut differ: Vec<&Pair> = comparison.series.iter().filter(|p| !p.agree).collect();
    differ.sort_by(|a, b| difference(b).total_cmp(&difference(a)));
    for pair in differ.iter().take(SHOWN) {
        writeln!(out, "  {}", clean(&format!("{}: {} ({})", pair.experiment, pair.name, pair.unit)))?;
        for point in pair.points.iter().filter(|p| !p.agree) {
            let (x, before, after) = (figure(point.x), figure(point.before), figure(point.after));
            writeln!(out, "    at {x:<10} {before:>10} → {after:>10}  {:.2}×", point.ratio)?;
        }
    }
    if differ.len() > SHOWN {
        writeln!(out, "  and {} more: --json has all", differ.len() - SHOWN)?;
    }
    for (name, before, _) in &comparison.verdicts {
        writeln!(out, "  {} is reproduced only in {}", clean(name), if *before { "A" } else { "B" })?;
    }
    if !comparison.missing.is_empty() {
        writeln!(out, "  {} series are in one of them alone", comparison.missing.len())?;
    }
    writeln!(out, "{} of {} series agree within their spreads", comparison.agree, comparison.series.len())?;
    Ok(())
}

/// The largest factor between two points that do not agree.
fn difference(pair: &Pair) -> f64 {
    pair.points.iter().filter(|p| !p.agree).map(|p| p.ratio.max(1.0 / p.ratio.max(1e-9))).fold(1.0, f64::max)
}

/// Three digits that matter.
pub fn figure(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v.fract() == 0.0 && v < 1e6 => format!("{value}"),
        v if v >= 1e6 => format!("{value:.2e}"),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let texts = [0.0, 2.0, 2.345, 23.45, 234.5, 0.00012, 12_345_678.9].map(figure);
        assert_eq!(texts, ["0", "2", "2.35", "23.4", "234", "1e-4", "1.23e7"]);
    }

    #[test]
    fn a_cell_has_its_reach() {
        let point = Point { median: 10.0, low: 9.0, high: 12.0, ..Point::default() };
        assert_eq!(cell(&point), "10 ±20 %");
    }
}
