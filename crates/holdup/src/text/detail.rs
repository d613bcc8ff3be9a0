//! Everything that `holdup explain` knows: the sum as a bar, findings with stacks, instructions and evidence, and how
//! sound the trace is. Printed by `--all` and, for one finding, by `--why`.

use std::io::{self, Write};

use holdup_analysis::Explanation;
use holdup_analysis::label::{count, duration};
use holdup_analysis::report::{CpuSeconds, Finding, Health, Instruction, Stall};

use holdup_trace::Note;

use super::page::command;
use super::screen::{self, AnsiColor, Style};
use super::wrap::{paragraph, width};

const BOLD: Style = Style::BOLD;
const DIM: Style = Style::DIM;
const HOT: Style = Style::color(AnsiColor::Red).bold();

/// Prints the sum, all findings, and the notes.
pub fn print_all(answer: &Explanation, notes: &[Note]) -> io::Result<()> {
    let mut out = screen::stdout();
    let t = &answer.trace;
    let what = if t.focus.is_empty() { "the whole machine" } else { &t.focus };
    writeln!(out, "{BOLD}{}{BOLD:#}: {what}, {:.3} s on {} CPUs\n", t.path, t.duration_s, t.cpus)?;
    for caveat in &answer.caveats {
        writeln!(out, "{}\n", paragraph("  ", &caveat.what))?;
        caveat.record.iter().try_for_each(|line| writeln!(out, "    {line}"))?;
    }
    accounting(&mut out, answer)?;
    for finding in &answer.findings {
        writeln!(out)?;
        print_finding(&mut out, finding)?;
    }
    if answer.smaller.causes > 0 {
        let (n, all) = (count(answer.smaller.causes as u64), duration(answer.smaller.blame_cpu_s));
        writeln!(
            out,
            "\n{DIM}{}{DIM:#}",
            paragraph("", &format!("smaller causes, {n} of them: {all} of CPU time in all"))
        )?;
    }
    stalls(&mut out, &answer.stalls)?;
    health(&mut out, &answer.health, notes)
}

/// Stretches in which threads stood still unusually long.
fn stalls(out: &mut impl Write, stalls: &[Stall]) -> io::Result<()> {
    if !stalls.is_empty() {
        writeln!(out, "\n{BOLD}Stalls{BOLD:#}")?;
    }
    for stall in stalls {
        writeln!(out, "{}", paragraph("   - ", &stall.title))?;
        let when = windows(&stall.windows).map(|span| paragraph("     when ", &span));
        when.map_or(Ok(()), |when| writeln!(out, "{DIM}{when}{DIM:#}"))?;
    }
    Ok(())
}

/// Prints one finding, whole.
pub fn print_one(finding: &Finding) -> io::Result<()> {
    print_finding(&mut screen::stdout(), finding)
}

/// A part of the CPU time.
pub struct Part {
    /// In a word or two.
    pub name: &'static str,
    /// What a bar is drawn of.
    pub symbol: char,
    /// How much it is.
    pub seconds: f64,
    /// In which color.
    pub color: AnsiColor,
    /// In a sentence.
    pub doc: &'static str,
}

/// The parts of the CPU time in the order of the bar.
pub fn parts(cpu: &CpuSeconds) -> [Part; 7] {
    let part = |name, symbol, seconds, color, doc| Part { name, symbol, seconds, color, doc };
    [
        part("worked", '█', cpu.busy, AnsiColor::Green, "ran"),
        part("spun", '▓', cpu.spin, AnsiColor::Magenta, "ran, but only waited for another CPU"),
        part("other", '▒', cpu.other, AnsiColor::Cyan, "ran other programs"),
        part("stood still", '╳', cpu.held_up, AnsiColor::Red, "idle, while threads waited for what is listed below"),
        part("ready", '!', cpu.runnable_idle, AnsiColor::Yellow, "idle although a thread could run"),
        part("no work", '·', cpu.no_work, AnsiColor::BrightBlack, "idle, and nobody had anything to do"),
        part("unknown", '?', cpu.lost, AnsiColor::Yellow, "not known: events were lost, or are not in this trace"),
    ]
}

/// A bar of `room` cells for `total` seconds: what each part is drawn of, and its color.
pub fn bar(parts: &[Part], total: f64, room: usize) -> impl Iterator<Item = (String, AnsiColor)> {
    let (mut sum, mut drawn) = (0.0, 0);
    parts.iter().map(move |part| {
        sum += part.seconds;
        let until = ((sum / total) * room as f64).round() as usize;
        let cells = std::iter::repeat_n(part.symbol, until.saturating_sub(drawn)).collect();
        drawn = drawn.max(until);
        (cells, part.color)
    })
}

/// One bar for all CPU seconds, and what its parts mean.
fn accounting(out: &mut impl Write, answer: &Explanation) -> io::Result<()> {
    let (cpu, parts) = (&answer.cpu_seconds, parts(&answer.cpu_seconds));
    let total = cpu.total.max(f64::MIN_POSITIVE);
    let room = width() - 4;
    write!(out, "  ")?;
    for (cells, color) in bar(&parts, total, room) {
        let style = Style::color(color);
        write!(out, "{style}{cells}{style:#}")?;
    }
    writeln!(out)?;
    for Part { name, symbol, seconds, color, doc } in &parts {
        if seconds / total < 0.0005 && *name != "worked" && *name != "stood still" {
            continue;
        }
        let style = Style::color(*color);
        let share = 100.0 * seconds / total;
        writeln!(out, "  {style}{symbol}{style:#} {name:<12}{seconds:>9.3} s {share:>5.1} %  {DIM}{doc}{DIM:#}")?;
    }
    writeln!(out, "    {:<12}{:>9.3} s of CPU time", "total", cpu.total)
}

fn print_finding(out: &mut impl Write, f: &Finding) -> io::Result<()> {
    let number = f.id.trim_start_matches('f');
    writeln!(out, "{BOLD}{}{BOLD:#}", paragraph(&format!("{number}. "), &f.title))?;
    let mut facts = vec![f.kind.to_string(), format!("{} of CPU time", duration(f.blame_cpu_s))];
    if f.share_of_held_up > 0.0 {
        facts.push(format!("{:.0} % of all standing still", 100.0 * f.share_of_held_up));
    }
    if let Some(gain) = f.gain_at_most.filter(|gain| *gain > 1.005) {
        facts.push(format!("at most {gain:.2}× faster without it"));
    }
    facts.push(format!("sure: {}", f.confidence));
    writeln!(out, "{DIM}{}{DIM:#}", paragraph("   ", &facts.join(" · ")))?;
    ran(out, f)?;
    if let Some(i) = &f.culprit.instruction {
        instruction(out, i)?;
    }
    for line in &f.evidence {
        writeln!(out, "{}", paragraph("   - ", line))?;
    }
    for doubt in &f.doubts {
        writeln!(out, "{}", paragraph("   - less sure: ", doubt))?;
    }
    stack(out, "they hung", &f.wait_stack)?;
    stack(out, "woken from", &f.release_stack)?;
    if let Some(span) = windows(&f.windows) {
        writeln!(out, "{}", paragraph("   when       ", &span))?;
    }
    writeln!(out, "{}", paragraph("   try        ", &f.advice))
}

/// What the culprit ran.
fn ran(out: &mut impl Write, f: &Finding) -> io::Result<()> {
    let c = &f.culprit;
    if c.function.is_empty() {
        return Ok(());
    }
    let source = if c.source.is_empty() { String::new() } else { format!(", {}", c.source) };
    let at = if c.called_at.is_empty() { String::new() } else { format!(" ({})", c.called_at) };
    let caller = if c.called_by.is_empty() { String::new() } else { format!(", called by {}{at}", c.called_by) };
    writeln!(out, "{}", paragraph("   ran        ", &format!("{}{source}{caller}", c.function)))?;
    command(c).map_or(Ok(()), |command| writeln!(out, "{}", paragraph("   command    ", &command)))
}

/// With fewer of the samples than this in it, code is not what took the time.
const HOT_SHARE: f64 = 0.02;

/// The loop around the hot instruction, if it is hot.
fn instruction(out: &mut impl Write, hot: &Instruction) -> io::Result<()> {
    if hot.around.iter().map(|n| n.share).sum::<f64>() < HOT_SHARE {
        return Ok(());
    }
    if hot.around.iter().any(|n| n.in_loop) {
        writeln!(out, "   {DIM}a loop of {} instructions:{DIM:#}", hot.around.len())?;
    }
    for n in &hot.around {
        let style = if n.address == hot.address { HOT } else { Style::PLAIN };
        let share = if n.share > 0.0005 { format!("{:>5.1} %", 100.0 * n.share) } else { " ".repeat(7) };
        let mark = if n.address == hot.address { "→" } else { " " };
        writeln!(out, "   {share} {mark} {style}{}  {}{style:#}", n.address, n.text)?;
    }
    Ok(())
}

/// A stack on one paragraph, the innermost first, without the runtime's first frames.
pub fn stack(out: &mut impl Write, label: &str, frames: &[String]) -> io::Result<()> {
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

fn health(out: &mut impl Write, health: &Health, notes: &[Note]) -> io::Result<()> {
    let mut doubts = Vec::new();
    let mut doubt = |n: u64, what: &str| {
        if n > 0 {
            doubts.push(format!("{n} {what}"));
        }
    };
    doubt(health.lost_events, "events lost");
    doubt(health.lost_stacks, "stacks lost");
    doubt(health.lost_mappings, "mappings of code lost");
    doubt(health.unknown_wakers, "waits of which nobody knows who ended them");
    doubt(health.inferred, "switches that are missing and were inferred");
    doubt(health.unmatched, "events that contradict others");
    doubt(health.cycles, "circles of waiting threads");
    doubt(health.impossible, "figures greater than time allows, cut: please report this");
    writeln!(out)?;
    if !doubts.is_empty() {
        writeln!(out, "{DIM}{}{DIM:#}", paragraph("trace: ", &doubts.join(", ")))?;
    }
    notes.iter().try_for_each(|note| writeln!(out, "{DIM}{}{DIM:#}", paragraph("note: ", &note.text)))
}
