//! An annotated function: shares, loops in the margin, instructions, source lines.

use std::io::Write;

use holdup_analysis::annotate::{Annotated, InstructionRow, LoopFacts};

use super::screen::{self, AnsiColor, Style};
use super::wrap::{cut, paragraph, width};

const BOLD: Style = Style::BOLD;
const DIM: Style = Style::DIM;
const HOT: Style = Style::color(AnsiColor::Red).bold();
const WARM: Style = Style::color(AnsiColor::Yellow);
/// Instructions shown around one with samples.
const CONTEXT: usize = 6;
/// Loops drawn beside each other.
const COLUMNS: usize = 3;
/// Columns of an instruction's text, before its source.
const TEXT: usize = 38;

/// Prints it on standard output; `all` shows instructions far from any sample, too.
pub fn print(found: &Annotated, all: bool) -> anyhow::Result<()> {
    let mut out = screen::stdout();
    let share = 100.0 * found.share;
    let of = format!(
        "{} of {} samples ({share:.1} %) in `{}` of {}",
        found.samples, found.samples_total, found.function, found.module
    );
    writeln!(out, "{BOLD}{}{BOLD:#}", paragraph("", &format!("{}  {of}", found.trace)))?;
    others(&mut out, found)?;
    writeln!(out)?;
    let drawn = drawn(found);
    for (i, &index) in drawn.iter().enumerate() {
        describe(&mut out, i, &found.loops[index])?;
    }
    if !drawn.is_empty() {
        writeln!(out)?;
    }
    rows(&mut out, found, &drawn, all)?;
    writeln!(out)?;
    found.notes.iter().try_for_each(|n| writeln!(out, "{DIM}{}{DIM:#}", paragraph("note: ", n)))?;
    Ok(())
}

fn others(out: &mut impl Write, found: &Annotated) -> std::io::Result<()> {
    if found.others.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = found.others.iter().map(|o| format!("`{}` ({})", o.function, o.samples)).collect();
    writeln!(out, "{}", paragraph("  ", &format!("also meant, with their samples: {}", named.join(", "))))
}

/// Loops worth a bracket: those with samples, the hottest first; of loops inside each other all.
fn drawn(found: &Annotated) -> Vec<usize> {
    let mut order: Vec<usize> = (0..found.loops.len()).filter(|&i| found.loops[i].samples > 0).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(found.loops[i].samples), found.loops[i].instructions, i));
    order.truncate(26);
    order
}

fn letter(i: usize) -> char {
    char::from(b'a' + i as u8)
}

fn describe(out: &mut impl Write, i: usize, l: &LoopFacts) -> std::io::Result<()> {
    let style = if l.spins { HOT } else { Style::PLAIN };
    let text = format!("{}, {:.1} % of the samples", l.text, 100.0 * l.share);
    writeln!(out, "{style}{}{style:#}", paragraph(&format!("  {} ", letter(i)), &text))
}

/// Where loops are drawn: column and letter of each.
struct Margin<'a> {
    rows: &'a [InstructionRow],
    /// Loop, column, first row, last row.
    lanes: Vec<(usize, usize, usize, usize)>,
    letters: Vec<usize>,
}

impl<'a> Margin<'a> {
    /// The hottest loops get the columns next to the code; loops that find no column are only described.
    fn new(rows: &'a [InstructionRow], drawn: &[usize]) -> Self {
        let mut lanes: Vec<(usize, usize, usize, usize)> = Vec::new();
        for &index in drawn {
            let of = |r: &InstructionRow| r.loops.contains(&index);
            let (Some(from), Some(to)) = (rows.iter().position(of), rows.iter().rposition(of)) else { continue };
            let taken = |c: usize| lanes.iter().any(|&(_, lane, a, b)| lane == c && a <= to && from <= b);
            if let Some(column) = (0..COLUMNS).find(|&c| !taken(c)) {
                lanes.push((index, column, from, to));
            }
        }
        Margin { rows, lanes, letters: drawn.to_vec() }
    }

    fn draw(&self, row: usize) -> String {
        let mut cells = [' '; COLUMNS];
        for &(index, column, from, to) in self.lanes.iter().filter(|l| (l.2..=l.3).contains(&row)) {
            let inside = self.rows[row].loops.contains(&index);
            let at = self.letters.iter().position(|&i| i == index);
            cells[COLUMNS - 1 - column] = match () {
                () if from == to => '[',
                () if row == from => '┌',
                () if row == to => '└',
                () if row == from + 1 => at.map_or('│', letter),
                () if inside => '│',
                () => '┊',
            };
        }
        cells.iter().collect()
    }
}

fn rows(out: &mut impl Write, found: &Annotated, drawn: &[usize], all: bool) -> std::io::Result<()> {
    let rows = &found.instructions;
    let margin = Margin::new(rows, drawn);
    let near =
        |i: usize| rows[i.saturating_sub(CONTEXT)..(i + CONTEXT + 1).min(rows.len())].iter().any(|r| r.samples > 0);
    let looped = |i: usize| rows[i].loops.iter().any(|l| drawn.contains(l));
    let shown = |i: usize| all || rows.len() <= 4 * CONTEXT || near(i) || looped(i);
    let (mut source, mut left_out) = (String::new(), 0);
    for (i, row) in rows.iter().enumerate() {
        if !shown(i) {
            left_out += 1;
            continue;
        }
        gap(out, &mut left_out)?;
        let here = beside(row);
        let new = if here == source { "" } else { here.as_str() };
        print_row(out, row, &margin.draw(i), new, found.has_code)?;
        source = here;
    }
    gap(out, &mut left_out)
}

fn gap(out: &mut impl Write, left_out: &mut usize) -> std::io::Result<()> {
    if *left_out > 0 {
        writeln!(out, "{DIM}         … {left_out} without samples (--all shows them){DIM:#}")?;
    }
    *left_out = 0;
    Ok(())
}

/// File, line, the line's text and the inlined function.
fn beside(row: &InstructionRow) -> String {
    let inlined = if row.inlined.is_empty() { String::new() } else { format!(" [{}]", short(&row.inlined)) };
    format!("{}{inlined}  {}", row.source, row.source_text).trim_end().to_owned()
}

/// The last part of a path of modules.
fn short(function: &str) -> &str {
    let end = function.find('<').filter(|&at| at > 0).unwrap_or(function.len());
    let start = function[..end].rfind("::").map_or(0, |at| at + 2);
    &function[start..]
}

fn print_row(
    out: &mut impl Write,
    row: &InstructionRow,
    margin: &str,
    source: &str,
    has_code: bool,
) -> std::io::Result<()> {
    let share = if row.samples > 0 { format!("{:>5.1} %", 100.0 * row.share) } else { " ".repeat(7) };
    let style = match row.share {
        s if s >= 0.1 => HOT,
        s if s >= 0.01 => WARM,
        _ => Style::PLAIN,
    };
    let text = if has_code { row.text.clone() } else { format!("+{:#x}  {} samples", row.offset, row.samples) };
    let text = cut(&text, TEXT);
    let pad = TEXT.saturating_sub(text.chars().count());
    let room = width().saturating_sub(32 + TEXT);
    let line = format!("{style}{share}{style:#} {margin} {DIM}{:>14}{DIM:#}  {style}{text}{style:#}", row.address);
    if source.is_empty() {
        writeln!(out, "{line}")
    } else {
        writeln!(out, "{line}{:pad$}  {DIM}{}{DIM:#}", "", cut(source, room))
    }
}
