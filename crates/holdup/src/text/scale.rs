//! The page of `holdup scale`.

use std::io::Write;

use holdup_analysis::diff::scaling::{Attribution, Law, LossCause, Verdict};
use holdup_base::numbers::{self, figure};
use holdup_base::text::clean;
use holdup_load::scale::{Point, Scaling};

use super::screen::{self, Style};
use super::wrap::paragraph;
use crate::documents::scaling::Answer;

const BOLD: Style = Style::BOLD;
const DIM: Style = Style::DIM;
/// Causes shown.
const SHOWN: usize = 6;

/// Prints the answer on standard output.
pub fn print(answer: &Answer) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    table(&mut out, &answer.scaling)?;
    writeln!(out)?;
    for finding in &answer.scaling.findings {
        writeln!(out, "{}", paragraph("  ", finding))?;
    }
    if let Some(attribution) = &answer.attribution {
        loss(&mut out, attribution)?;
    }
    writeln!(out, "\n{}", paragraph("to do: ", &answer.scaling.advice))?;
    let interrupted = answer.interrupted.then_some("interrupted: what was measured until then is above");
    let of_traces = answer.attribution.iter().flat_map(|a| a.notes.iter().map(String::as_str));
    for note in answer.scaling.notes.iter().map(String::as_str).chain(of_traces).chain(interrupted) {
        writeln!(out, "{DIM}{}{DIM:#}", paragraph("note: ", note))?;
    }
    for path in answer.traces.iter().filter_map(|t| t.path.as_ref()) {
        writeln!(out, "{DIM}kept: {}{DIM:#}", clean(path))?;
    }
    Ok(())
}

fn table(out: &mut impl Write, scaling: &Scaling) -> std::io::Result<()> {
    writeln!(
        out,
        "{BOLD}{:>8} {:>12} {:>10} {:>10} {:>9} {:>10} {:>10} {:>13}{BOLD:#}",
        scaling.axis, "per second", "low", "high", "speed-up", "efficiency", "Karp–Flatt", "CPU per unit"
    )?;
    scaling.points.iter().try_for_each(|p| row(out, p))
}

fn row(out: &mut impl Write, p: &Point) -> std::io::Result<()> {
    // Beyond these it is no share.
    let serial = p.karp_flatt.filter(|e| (0.0..=1.0).contains(e));
    let karp_flatt = serial.map_or("–".to_owned(), |e| format!("{e:.3}"));
    let mark = if p.crowded { "  crowded" } else { "" };
    writeln!(
        out,
        "{:>8} {:>12} {:>10} {:>10} {:>8.2}× {:>8.0} % {karp_flatt:>10} {:>13}{DIM}{mark}{DIM:#}",
        p.n,
        figure(p.throughput),
        figure(p.low),
        figure(p.high),
        p.speedup,
        100.0 * p.efficiency,
        time(p.cpu_s_per_unit),
    )
}

fn loss(out: &mut impl Write, attribution: &Attribution) -> std::io::Result<()> {
    let verdict = match attribution.verdict {
        Verdict::Contention => "contention (σ)",
        Verdict::Coherence => "coherence (κ)",
        other => other.name(),
    };
    writeln!(out, "\n{}", paragraph("  traced: ", &format!("{verdict}: {}", attribution.because)))?;
    attribution.causes.iter().take(SHOWN).try_for_each(|cause| self::cause(out, cause))
}

fn cause(out: &mut impl Write, cause: &LossCause) -> std::io::Result<()> {
    let law = match cause.law {
        Law::Sigma => "σ",
        Law::Kappa => "κ",
        Law::Capacity => "capacity",
    };
    let source = if cause.source.is_empty() { String::new() } else { format!("  {}", clean(&cause.source)) };
    let process =
        if cause.process.is_empty() { String::new() } else { format!("  {DIM}in {}{DIM:#}", clean(&cause.process)) };
    let share = 100.0 * cause.share;
    writeln!(
        out,
        "  {share:>+5.0} %  {law:<8} {DIM}{:<9}{DIM:#} {BOLD}{}{BOLD:#}{source}{process}",
        cause.what,
        clean(&cause.name)
    )?;
    let [before, after] = cause.s_per_unit.map(time);
    let figures = format!("{before} → {after} for each unit of work; {}", cause.because);
    writeln!(out, "{}", paragraph("           ", &figures))?;
    if !cause.instruction.is_empty() {
        writeln!(out, "           {DIM}{}{DIM:#}", clean(&cause.instruction))?;
    }
    Ok(())
}

/// Seconds in the unit in which they are read best.
fn time(seconds: f64) -> String {
    let (unit, per_s) = numbers::unit(seconds);
    format!("{} {unit}", figure(seconds * per_s))
}
