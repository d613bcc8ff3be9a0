//! Text that fits the terminal: numbers right-aligned with their unit in the head, long names shortened in the middle.

use std::io::{self, Write};

use holdup_analysis::explore::Answer;
use holdup_analysis::explore::relation::{Column, Data, MISSING, Unit};

use holdup_base::text::clean;

use crate::text::wrap;

/// Names are not shortened below this many characters.
const LEAST: usize = 10;
/// Spaces between columns.
const GAP: usize = 2;

/// A column as it is printed.
struct Printed {
    /// The head, in lines.
    head: Vec<String>,
    cells: Vec<String>,
    is_text: bool,
    width: usize,
}

/// Writes the answer.
pub fn write(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let mut columns: Vec<Printed> = answer.columns.iter().map(Printed::new).collect();
    let width = wrap::width();
    let hidden = fit(&mut columns, width);
    writeln!(out, "{}", title(answer))?;
    let height = columns.iter().map(|c| c.head.len()).max().unwrap_or(0);
    for line in 0..height {
        let cells = columns.iter().map(|c| {
            let above = height - c.head.len();
            line.checked_sub(above).map_or("", |i| &c.head[i])
        });
        write_line(&columns, cells, out)?;
    }
    for row in 0..answer.len() {
        write_line(&columns, columns.iter().map(|c| c.cells[row].as_str()), out)?;
    }
    if answer.len() < answer.total {
        writeln!(out, "… {} more; --top N shows more", answer.total - answer.len())?;
    }
    if hidden > 0 {
        let names: Vec<&str> = answer.columns[columns.len()..].iter().map(|c| c.name.as_str()).collect();
        let text = format!("no room for {}: ask for fewer columns, or use --format csv", names.join(", "));
        writeln!(out, "{}", wrap::paragraph("… ", &text))?;
    }
    Ok(())
}

fn title(answer: &Answer) -> String {
    let plural = |n: usize, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    let focus = if answer.focus.is_empty() { String::new() } else { format!(" of {}", answer.focus) };
    let rows = plural(answer.matched, "row");
    let groups = if answer.by.is_empty() { String::new() } else { format!(" in {}", plural(answer.total, "group")) };
    wrap::paragraph("", &format!("{}{focus}: {rows}{groups}", answer.table.name()))
}

fn write_line<'a>(columns: &[Printed], cells: impl Iterator<Item = &'a str>, out: &mut impl Write) -> io::Result<()> {
    let mut line = String::new();
    for (i, (column, cell)) in columns.iter().zip(cells).enumerate() {
        if i > 0 {
            line.push_str(&" ".repeat(GAP));
        }
        let cell = shorten(cell, column.width);
        let pad = " ".repeat(column.width.saturating_sub(cell.chars().count()));
        if column.is_text {
            line.push_str(&cell);
            line.push_str(&pad);
        } else {
            line.push_str(&pad);
            line.push_str(&cell);
        }
    }
    writeln!(out, "{}", line.trim_end())
}

/// The text in at most `width` characters, its middle left out if it is longer.
fn shorten(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let keep = width.saturating_sub(1);
    let (start, end) = (keep.div_ceil(2), keep / 2);
    let tail = text.chars().skip(length - end);
    text.chars().take(start).chain(['…']).chain(tail).collect()
}

/// Makes the columns fit into `width` characters: breaks heads, then shortens names, then leaves out columns from the
/// right. Says how many it left out.
fn fit(columns: &mut Vec<Printed>, width: usize) -> usize {
    let total = |columns: &[Printed]| columns.iter().map(|c| c.width + GAP).sum::<usize>().saturating_sub(GAP);
    if total(columns) > width {
        columns.iter_mut().for_each(Printed::break_head);
    }
    while total(columns) > width {
        let widest = columns.iter_mut().filter(|c| c.is_text && c.width > LEAST).max_by_key(|c| c.width);
        let Some(column) = widest else { break };
        column.width -= 1;
    }
    let before = columns.len();
    while total(columns) > width && columns.len() > 1 {
        columns.pop();
    }
    if let [only] = columns.as_mut_slice() {
        only.width = only.width.min(width);
    }
    before - columns.len()
}

impl Printed {
    fn new(column: &Column) -> Self {
        let (unit, cells) = match &column.data {
            Data::Text(text) => ("", (0..text.ids.len()).map(|row| cell(text.get(row))).collect()),
            Data::Numbers(values) => {
                let known: Vec<Option<f64>> = values.iter().map(|&v| (v != MISSING).then_some(v as f64)).collect();
                numbers(column.unit, &known, values)
            }
            Data::Reals(values) => {
                let known: Vec<Option<f64>> = values.iter().map(|&v| (!v.is_nan()).then_some(v)).collect();
                numbers(column.unit, &known, &[])
            }
        };
        let head = if unit.is_empty() { column.name.clone() } else { format!("{} {unit}", column.name) };
        let mut printed = Printed { head: vec![head], cells, is_text: column.unit == Unit::Text, width: 0 };
        printed.measure();
        printed
    }

    fn measure(&mut self) {
        self.width = self.head.iter().chain(&self.cells).map(|c| c.chars().count()).max().unwrap_or(0);
    }

    /// Breaks the head after `:`, `-` and spaces, so that it is no wider than the cells or its longest part.
    fn break_head(&mut self) {
        let head = self.head.concat();
        let parts: Vec<&str> = head.split_inclusive([':', '-', ' ']).map(str::trim_end).collect();
        let cells = self.cells.iter().map(|c| c.chars().count()).max().unwrap_or(0);
        let most = parts.iter().map(|p| p.chars().count()).max().unwrap_or(0).max(cells);
        self.head = vec![String::new()];
        for part in parts {
            let line = self.head.last_mut().expect("there is a line");
            let joint = if line.is_empty() || line.ends_with([':', '-']) { "" } else { " " };
            if line.chars().count() + joint.len() + part.chars().count() <= most {
                line.push_str(joint);
                line.push_str(part);
            } else {
                self.head.push(part.to_owned());
            }
        }
        self.measure();
    }
}

/// The text as it is shown; a dash for nothing.
fn cell(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { clean(text).into_owned() }
}

/// The unit for the head, and the cells. `exact` are the same numbers where they are whole.
fn numbers(unit: Unit, values: &[Option<f64>], exact: &[u64]) -> (&'static str, Vec<String>) {
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let (name, scale, digits) = match unit {
        Unit::Instant => ("s", 1e9, 6),
        Unit::Share => ("%", 0.01, 1),
        Unit::Nanos if most >= 100e9 => ("s", 1e9, 3),
        Unit::Nanos if most >= 1e5 => ("ms", 1e6, 3),
        Unit::Nanos if most >= 1e4 => ("µs", 1e3, 1),
        Unit::Nanos => ("ns", 1.0, 0),
        _ if exact.is_empty() => ("", 1.0, 2),
        _ => ("", 1.0, 0),
    };
    let cell = |(i, value): (usize, &Option<f64>)| match (value, unit) {
        (None, _) => "-".to_owned(),
        (Some(_), Unit::Address) => format!("{:#x}", exact[i]),
        (Some(_), Unit::Id | Unit::Count) if !exact.is_empty() => exact[i].to_string(),
        (Some(v), _) => format!("{:.digits$}", v / scale),
    };
    (name, values.iter().enumerate().map(cell).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_long_name_is_left_out() {
        assert_eq!(shorten("short", 10), "short");
        assert_eq!(shorten("a_very_long_name", 9), "a_ve…name");
    }

    #[test]
    fn columns_that_do_not_fit_are_counted() {
        let column = |name: &str, is_text| {
            let mut p = Printed { head: vec![name.into()], cells: vec!["x".repeat(40)], is_text, width: 0 };
            p.measure();
            p
        };
        let mut columns = vec![column("a", true), column("b", true), column("n", false)];
        assert_eq!(fit(&mut columns, 70), 0);
        assert_eq!(columns.iter().map(|c| c.width).collect::<Vec<_>>(), [13, 13, 40]);
        assert_eq!(fit(&mut columns, 60), 1);
    }

    #[test]
    fn units_fit_the_greatest_value() {
        assert_eq!(numbers(Unit::Nanos, &[Some(1500.0), None], &[1500, MISSING]).1, ["1500", "-"]);
        assert_eq!(numbers(Unit::Nanos, &[Some(2.5e6)], &[2_500_000]), ("ms", vec!["2.500".to_owned()]));
        assert_eq!(numbers(Unit::Address, &[Some(255.0)], &[255]).1, ["0xff"]);
    }
}
