//! Results of the lab as tables.

use std::collections::BTreeSet;
use std::io::Write;

use holdup_base::text::clean;
use holdup_lab::compare::{Comparison, Pair};
use holdup_lab::experiments;
use holdup_lab::knobs::{Kind, Knob};
use holdup_lab::machine::Machine;
use holdup_lab::result::{Costs, Outcome, Point, Series, Waits};
use serde_json::json;

use super::{screen, wrap};

/// Columns of a name, at most.
const NAME: usize = 50;
/// Columns of a figure with its spread.
const CELL: usize = 14;

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
    for table in tables(outcome) {
        print_table(&mut out, &table)?;
    }
    print_costs(&mut out, outcome)?;
    writeln!(out)?;
    for note in &outcome.notes {
        writeln!(out, "{}", wrap::paragraph("  note: ", note))?;
    }
    let verdict = &outcome.verdict;
    let word = if verdict.reproduced { "reproduced: " } else { "not reproduced here: " };
    writeln!(out, "{}", wrap::paragraph("  ", &format!("{word}{}", verdict.because)))?;
    writeln!(out, "{}", wrap::paragraph("  to do: ", &verdict.advice))?;
    Ok(())
}

/// Series with one axis and one unit, so that all figures of a table can be compared.
struct Table<'a> {
    axis: &'a str,
    unit: &'a str,
    series: Vec<&'a Series>,
}

fn tables(outcome: &Outcome) -> Vec<Table<'_>> {
    let mut tables: Vec<Table> = Vec::new();
    for series in &outcome.series {
        let (axis, unit) = (series.axis.as_deref().unwrap_or(&outcome.axis), series.unit.as_str());
        match tables.iter_mut().find(|t| (t.axis, t.unit) == (axis, unit)) {
            Some(table) => table.series.push(series),
            None => tables.push(Table { axis, unit, series: vec![series] }),
        }
    }
    tables
}

fn print_table(out: &mut impl Write, table: &Table) -> anyhow::Result<()> {
    let xs: BTreeSet<u64> = table.series.iter().flat_map(|s| &s.points).map(|p| p.x.to_bits()).collect();
    let xs: Vec<f64> = xs.into_iter().map(f64::from_bits).collect();
    let name = table.series.iter().map(|s| clean(&s.name).chars().count()).max().unwrap_or(0).clamp(12, NAME);
    let columns = (wrap::width().saturating_sub(name + 2) / CELL).max(1);
    writeln!(out, "\n{}", wrap::paragraph("  ", &clean(&format!("{}, by {}", table.unit, table.axis))))?;
    for xs in xs.chunks(columns) {
        write!(out, "  {:name$}", "")?;
        for x in xs {
            write!(out, "{:>CELL$}", figure(*x))?;
        }
        writeln!(out)?;
        for series in &table.series {
            write!(out, "  {:<name$}", clean(&series.name))?;
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

/// A row of what an operation costs besides: its series, its place, and what was measured there.
struct CostRow<'a> {
    series: &'a str,
    x: f64,
    costs: &'a Costs,
    waits: Option<&'a Waits>,
}

/// A column of these rows: its head, its width, and a row's text in it, if it has one.
type CostColumn = (&'static str, usize, fn(&CostRow) -> Option<String>);

const COSTS: [CostColumn; 8] = [
    ("x", 8, |r| Some(figure(r.x))),
    ("user ns", 9, |r| r.costs.user_ns.map(figure)),
    ("sys ns", 9, |r| r.costs.system_ns.map(figure)),
    ("elapsed", 9, |r| Some(figure(r.costs.elapsed_ns))),
    ("switches", 9, |r| Some(figure(r.costs.switches))),
    ("fair", 6, |r| Some(format!("{:.2}", r.costs.fairness))),
    ("p99 ns", 9, |r| r.waits.map(|w| figure(w.p99_ns))),
    ("max ns", 9, |r| r.waits.map(|w| figure(w.max_ns))),
];

/// What operations cost besides: at the last point of each series, and at all where CPU time is split.
fn print_costs(out: &mut impl Write, outcome: &Outcome) -> anyhow::Result<()> {
    let rows: Vec<CostRow> = outcome.series.iter().flat_map(cost_rows).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let name = rows.iter().map(|r| clean(r.series).chars().count()).max().unwrap_or(0).clamp(18, NAME);
    let shown = COSTS.iter().filter(|(_, _, text)| rows.iter().any(|r| text(r).is_some())).collect::<Vec<_>>();
    write!(out, "\n  {:<name$}", "for each operation")?;
    for (head, width, _) in &shown {
        write!(out, "{head:>width$}")?;
    }
    writeln!(out)?;
    for row in &rows {
        write!(out, "  {:<name$}", clean(row.series))?;
        for (_, width, text) in &shown {
            write!(out, "{:>width$}", text(row).unwrap_or("–".to_owned()))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn cost_rows(series: &Series) -> impl Iterator<Item = CostRow<'_>> {
    let last = series.points.len();
    series.points.iter().enumerate().filter_map(move |(i, point)| {
        let costs = point.costs.as_ref().filter(|c| i + 1 == last || c.user_ns.is_some())?;
        Some(CostRow { series: &series.name, x: point.x, costs, waits: point.waits.as_ref() })
    })
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
