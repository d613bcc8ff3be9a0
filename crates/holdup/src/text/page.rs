//! The page of `holdup explain`: the accounting, then the findings.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use holdup_analysis::Explanation;
use holdup_analysis::report::{Finding, Health, Instruction};
use holdup_trace::Trace;

use super::wrap::{paragraph, width};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const HOT: Style = AnsiColor::Red.on_default().bold();

/// Prints the page on standard output.
pub fn print(answer: &Explanation, trace: &Trace) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    let t = &answer.trace;
    let focus = if t.focus.is_empty() { "whole machine".to_owned() } else { format!("focus: {}", t.focus) };
    writeln!(out, "{BOLD}{}{BOLD:#}  {:.3} s on {} CPUs, {focus}\n", t.path, t.duration_s, t.cpus)?;
    accounting(&mut out, answer)?;
    if answer.findings.is_empty() {
        writeln!(
            out,
            "{}",
            paragraph("", "Nothing held the cores up: no wait in this trace cost as much as 1 % of what ran.")
        )?;
    }
    for finding in &answer.findings {
        writeln!(out)?;
        print_finding(&mut out, finding)?;
    }
    health(&mut out, &answer.health, trace)
}

/// One bar for all CPU seconds, and what its parts mean.
fn accounting(out: &mut impl Write, answer: &Explanation) -> std::io::Result<()> {
    let cpu = &answer.cpu_seconds;
    let parts: [(&str, char, f64, AnsiColor, &str); 7] = [
        ("busy", '█', cpu.busy, AnsiColor::Green, "ran"),
        ("spin", '▓', cpu.spin, AnsiColor::Magenta, "ran, but only waited for another CPU"),
        ("other", '▒', cpu.other, AnsiColor::Cyan, "ran something outside the focus"),
        ("held up", '╳', cpu.held_up, AnsiColor::Red, "idle while threads waited for what is listed below"),
        ("runnable", '!', cpu.runnable_idle, AnsiColor::Yellow, "idle although a thread could run"),
        ("no work", '·', cpu.no_work, AnsiColor::BrightBlack, "idle, and nobody had anything to do"),
        ("lost", '?', cpu.lost, AnsiColor::Yellow, "not known: events were lost"),
    ];
    let total = cpu.total.max(f64::MIN_POSITIVE);
    let room = width() - 4;
    let mut bar = String::new();
    let (mut sum, mut drawn) = (0.0, 0);
    for (_, symbol, seconds, color, _) in parts {
        sum += seconds;
        let until = ((sum / total) * room as f64).round() as usize;
        let style = color.on_default();
        let cells: String = std::iter::repeat_n(symbol, until.saturating_sub(drawn)).collect();
        bar.push_str(&format!("{style}{cells}{style:#}"));
        drawn = drawn.max(until);
    }
    writeln!(out, "  {bar}")?;
    for (name, symbol, seconds, color, doc) in parts {
        if seconds / total < 0.0005 && name != "busy" && name != "held up" {
            continue;
        }
        let style = color.on_default();
        let share = 100.0 * seconds / total;
        writeln!(out, "  {style}{symbol}{style:#} {name:<9} {seconds:>9.3} CPU s {share:>5.1} %  {DIM}{doc}{DIM:#}")?;
    }
    writeln!(out, "    {:<9} {:>9.3} CPU s", "total", cpu.total)
}

fn print_finding(out: &mut impl Write, f: &Finding) -> std::io::Result<()> {
    let number = f.id.trim_start_matches('f');
    writeln!(out, "{BOLD}{}{BOLD:#}", paragraph(&format!("{number}. "), &f.title))?;
    let mut facts = vec![f.kind.to_owned(), format!("{:.3} CPU s", f.blame_cpu_s)];
    if f.share_of_held_up > 0.0 {
        facts.push(format!("{:.0} % of all blame", 100.0 * f.share_of_held_up));
    }
    if f.gain_at_most > 1.005 {
        facts.push(format!("at most {:.2}× faster without it", f.gain_at_most));
    }
    facts.push(format!("confidence {}", f.confidence));
    writeln!(out, "{DIM}{}{DIM:#}", paragraph("   ", &facts.join(" · ")))?;
    if let Some(i) = &f.culprit.instruction {
        instruction(out, i)?;
    }
    for line in &f.evidence {
        writeln!(out, "{}", paragraph("   - ", line))?;
    }
    stack(out, "waited at", &f.wait_stack)?;
    stack(out, "let go at", &f.release_stack)?;
    if let Some(span) = windows(&f.windows) {
        writeln!(out, "{}", paragraph("   when       ", &span))?;
    }
    writeln!(out, "{}", paragraph("   to do      ", &f.advice))
}

/// The loop around the hot instruction.
fn instruction(out: &mut impl Write, hot: &Instruction) -> std::io::Result<()> {
    if hot.around.iter().any(|n| n.in_loop) {
        writeln!(out, "   {DIM}a loop of {} instructions:{DIM:#}", hot.around.len())?;
    }
    for n in &hot.around {
        let style = if n.address == hot.address { HOT } else { Style::new() };
        let share = if n.share > 0.0005 { format!("{:>5.1} %", 100.0 * n.share) } else { " ".repeat(7) };
        let mark = if n.address == hot.address { "→" } else { " " };
        writeln!(out, "   {share} {mark} {style}{}  {}{style:#}", n.address, n.text)?;
    }
    Ok(())
}

/// A stack on one paragraph, the innermost first, without the runtime's first frames.
pub fn stack(out: &mut impl Write, label: &str, frames: &[String]) -> std::io::Result<()> {
    const SHOWN: usize = 12;
    if frames.is_empty() {
        return Ok(());
    }
    let more = if frames.len() > SHOWN { format!(" ← {} more", frames.len() - SHOWN) } else { String::new() };
    let shown: Vec<&str> = frames.iter().take(SHOWN).map(String::as_str).collect();
    writeln!(out, "{}", paragraph(&format!("   {label:<10} "), &(shown.join(" ← ") + &more)))
}

fn windows(windows: &[[f64; 2]]) -> Option<String> {
    const SHOWN: usize = 6;
    if windows.is_empty() {
        return None;
    }
    let spans: Vec<String> = windows.iter().take(SHOWN).map(|[a, b]| format!("{a:.3}–{b:.3} s")).collect();
    let more = windows.len().saturating_sub(SHOWN);
    Some(if more > 0 { format!("{} and {more} more", spans.join(", ")) } else { spans.join(", ") })
}

fn health(out: &mut impl Write, health: &Health, trace: &Trace) -> anyhow::Result<()> {
    let mut doubts = Vec::new();
    let mut doubt = |n: u64, what: &str| {
        if n > 0 {
            doubts.push(format!("{n} {what}"));
        }
    };
    doubt(health.lost_events, "events lost");
    doubt(health.lost_stacks, "stacks lost (a full buffer)");
    doubt(health.unknown_wakers, "waits without a known waker");
    doubt(health.inferred, "switches inferred");
    doubt(health.unmatched, "contradictions");
    doubt(health.cycles, "circles of waiting threads");
    writeln!(out)?;
    if !doubts.is_empty() {
        writeln!(out, "{DIM}{}{DIM:#}", paragraph("health: ", &doubts.join(", ")))?;
    }
    for note in &trace.meta.notes {
        writeln!(out, "{DIM}{}{DIM:#}", paragraph("note: ", note))?;
    }
    Ok(())
}
