//! CSV by RFC 4180, with a head of names and units.
//!
//! Tables of this kind are opened in spreadsheets. A text that one would take for a formula, and run, gets an
//! apostrophe before it.

use std::io::{self, Write};

use holdup_analysis::explore::Answer;
use holdup_analysis::explore::relation::{Column, Unit};

use holdup_base::text::clean;

use super::{Value, value};

/// Writes the answer.
pub fn write(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let head: Vec<String> = answer.columns.iter().map(|c| quoted(&head(c))).collect();
    writeln!(out, "{}", head.join(","))?;
    for row in 0..answer.len() {
        for (i, column) in answer.columns.iter().enumerate() {
            if i > 0 {
                out.write_all(b",")?;
            }
            match value(column, row) {
                None => {}
                Some(Value::Text(text)) => out.write_all(cell(text).as_bytes())?,
                Some(Value::Whole(n)) => write!(out, "{n}")?,
                Some(Value::Real(r)) => write!(out, "{r}")?,
                Some(Value::Address(a)) => write!(out, "{a:#x}")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

fn head(column: &Column) -> String {
    match column.unit {
        Unit::Instant | Unit::Nanos => format!("{} (ns)", column.name),
        _ => column.name.clone(),
    }
}

/// A text from outside, as it is shown.
fn cell(text: &str) -> String {
    let text = clean(text);
    let formula = text.starts_with(['=', '+', '-', '@']);
    if formula { quoted(&format!("'{text}")) } else { quoted(&text) }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_what_needs_it_is_quoted() {
        assert_eq!(super::quoted("plain"), "plain");
        assert_eq!(super::quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
    }

    #[test]
    fn no_text_is_a_formula() {
        for formula in ["=1+1", "+1", "-bash", "@SUM(A1)"] {
            assert_eq!(super::cell(formula), format!("'{formula}"));
        }
        assert_eq!(super::cell("=cmd|' /C calc'!A0,\"x\""), "\"'=cmd|' /C calc'!A0,\"\"x\"\"\"");
        // Tab and carriage return are skipped by some; they are shown as escapes.
        assert_eq!(super::cell("\t=1"), "\\t=1");
        assert_eq!(super::cell("a=1\r\nb"), "a=1\\r\\nb");
    }
}
