//! CSV by RFC 4180, with a head of names and units.

use std::io::{self, Write};

use holdup_analysis::explore::Answer;
use holdup_analysis::explore::relation::{Column, Unit};

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
                Some(Value::Text(text)) => out.write_all(quoted(text).as_bytes())?,
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
}
