//! Answers about the machine.

use std::io::Write;

use holdup_lab::check::{Check, Grade, Report};

use super::lab::figure;
use super::screen::{self, AnsiColor, Style};
use super::wrap;

/// Prints a line or more for each check.
pub fn print(report: &Report) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    let cpu = &report.cpu;
    let core = cpu.core_ghz.map_or("an unknown rate".to_owned(), |ghz| format!("{ghz:.2} GHz"));
    let rates = format!("time stamps at {:.2} GHz, the core at {core}", cpu.tsc_ghz);
    writeln!(out, "{}", wrap::paragraph("", &format!("{}, {} CPUs, {rates}", cpu.model, cpu.cpus)))?;
    for check in &report.checks {
        let (word, style) = word(check.verdict);
        write!(out, "{style}{word:<8}{style:#}")?;
        // The first word's columns are already on the line.
        let text = wrap::paragraph(&format!("{:8}{:<12} ", "", check.name), &said(check));
        writeln!(out, "{}", text.trim_start())?;
    }
    Ok(())
}

fn said(check: &Check) -> String {
    let number = match check.unit {
        "" => String::new(),
        unit if check.spread > 0.0 => format!("{} {unit} (±{}) · ", figure(check.value), figure(check.spread)),
        unit => format!("{} {unit} · ", figure(check.value)),
    };
    let advice = if check.advice.is_empty() { String::new() } else { format!(" → {}", check.advice) };
    format!("{number}{}{advice}", check.detail)
}

fn word(grade: Grade) -> (&'static str, Style) {
    let colour = |c: AnsiColor| Style::color(c).bold();
    match grade {
        Grade::Ok => ("ok", colour(AnsiColor::Green)),
        Grade::Unknown => ("unknown", Style::PLAIN),
        Grade::Warn => ("warn", colour(AnsiColor::Yellow)),
        Grade::Bad => ("bad", colour(AnsiColor::Red)),
    }
}
