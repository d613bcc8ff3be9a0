//! The page of `holdup diff`.

use std::io::Write;

use holdup_analysis::diff::report::{Role, Side};
use holdup_analysis::diff::{Change, Diff};
use holdup_base::text::clean;

use super::screen::{self, AnsiColor, Style};
use super::wrap::paragraph;

const BOLD: Style = Style::BOLD;
const DIM: Style = Style::DIM;
const WORSE: Style = Style::color(AnsiColor::Red).bold();
const BETTER: Style = Style::color(AnsiColor::Green).bold();

/// Prints the comparison on standard output.
pub fn print(answer: &Diff, top: usize, limit: Option<f64>) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    side(&mut out, "before", &answer.before)?;
    side(&mut out, "after", &answer.after)?;
    let factor = |x: f64| format!("{}{x:.2}×{:#}", if x > 1.0 { WORSE } else { BETTER }, Style::PLAIN);
    let work = if answer.before.work.is_some() { " for the same work" } else { "" };
    writeln!(out, "  elapsed time {}, CPU time {}{work}\n", factor(answer.slower), factor(answer.cpu))?;
    let mut role = None;
    for change in answer.changes.iter().take(top) {
        if role != Some(change.role) {
            role = Some(change.role);
            writeln!(out, "{BOLD}{}{BOLD:#}", headline(change.role))?;
        }
        print_change(&mut out, change)?;
    }
    if answer.changes.is_empty() {
        writeln!(out, "Nothing changed by more than noise and 1 % of the whole.")?;
    }
    let more = answer.changes.len().saturating_sub(top);
    if more > 0 {
        writeln!(out, "{DIM}{more} more changes; --top {} shows them all{DIM:#}", answer.changes.len())?;
    }
    footer(&mut out, answer, limit)
}

fn headline(role: Role) -> &'static str {
    match role {
        Role::Cause => "Causes",
        Role::Symptom => "Symptoms: they follow from the causes",
        Role::Unclear => "Unclear",
    }
}

fn side(out: &mut impl Write, name: &str, side: &Side) -> std::io::Result<()> {
    let runs = if side.runs > 1 { format!("{} runs, typically ", side.runs) } else { String::new() };
    let others = if side.other_share >= 0.005 {
        format!(", others used {:.0} % of the CPUs", 100.0 * side.other_share)
    } else {
        String::new()
    };
    let text = format!(
        "{}: {runs}{:.3} s, {:.3} s of CPU, {:.3} CPU s held up{others}",
        side.traces.join(", "),
        side.elapsed_s,
        side.cpu_s,
        side.held_up_s
    );
    writeln!(out, "{}", paragraph(&format!("{name:<7} "), &text))
}

fn print_change(out: &mut impl Write, c: &Change) -> std::io::Result<()> {
    let style = if c.delta_s > 0.0 { WORSE } else { BETTER };
    let process = if c.process.is_empty() { String::new() } else { format!("  {DIM}in {}{DIM:#}", clean(&c.process)) };
    writeln!(
        out,
        "  {style}{:>+9.3} s{style:#}  {DIM}{:<11}{DIM:#} {BOLD}{}{BOLD:#}{process}",
        c.delta_s,
        c.what,
        clean(&c.name)
    )?;
    let mut figures = Vec::new();
    let mut pair = |name: &str, [a, b]: [f64; 2]| {
        if a.max(b) > 0.0005 {
            figures.push(format!("{name} {a:.3} → {b:.3} s"));
        }
    };
    pair("CPU", c.cpu_s);
    pair("waiting", c.wait_s);
    if let Some(p) = c.significance {
        figures.push(format!("p = {p:.3}"));
    }
    if !figures.is_empty() {
        writeln!(out, "               {DIM}{}{DIM:#}", figures.join(" · "))?;
    }
    writeln!(out, "{}", paragraph("               ", &c.because))
}

fn footer(out: &mut impl Write, answer: &Diff, limit: Option<f64>) -> anyhow::Result<()> {
    writeln!(out)?;
    if let Some(limit) = limit {
        let limit = 100.0 * limit;
        if answer.regressions.is_empty() {
            writeln!(out, "{BETTER}No regression{BETTER:#} beyond {limit:.1} % and noise.")?;
        } else {
            writeln!(out, "{WORSE}Regressions{WORSE:#} beyond {limit:.1} %:")?;
        }
        for regression in &answer.regressions {
            writeln!(out, "{}", paragraph("  - ", regression))?;
        }
    }
    if answer.within_noise > 0 {
        let what = if answer.within_noise == 1 { "difference is" } else { "differences are" };
        let text = format!("{} further {what} within the noise between equal runs", answer.within_noise);
        writeln!(out, "{DIM}{}{DIM:#}", paragraph("note: ", &text))?;
    }
    for note in &answer.notes {
        writeln!(out, "{DIM}{}{DIM:#}", paragraph("note: ", note))?;
    }
    Ok(())
}
