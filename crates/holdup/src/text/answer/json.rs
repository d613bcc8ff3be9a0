//! `holdup.table/1`: rows as arrays in the order of the columns.

use std::io::{self, Write};

use holdup_analysis::explore::Answer;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::{Value, value};

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    table: &'static str,
    focus: &'a str,
    by: &'a [String],
    columns: Vec<serde_json::Value>,
    rows: Rows<'a>,
    total_rows: usize,
    matched_rows: usize,
}

/// All rows, written one after the other.
struct Rows<'a>(&'a Answer);
struct JsonRow<'a>(&'a Answer, usize);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq((0..self.0.len()).map(|row| JsonRow(self.0, row)))
    }
}

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut row = to.serialize_seq(Some(self.0.columns.len()))?;
        for column in &self.0.columns {
            match value(column, self.1) {
                None => row.serialize_element(&())?,
                Some(Value::Text(text)) => row.serialize_element(text)?,
                Some(Value::Whole(n)) => row.serialize_element(&n)?,
                Some(Value::Real(r)) => row.serialize_element(&r)?,
                Some(Value::Address(a)) => row.serialize_element(&format!("{a:#x}"))?,
            }
        }
        row.end()
    }
}

/// Writes the answer.
pub fn write(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let columns = answer.columns.iter().map(|c| json!({"name": c.name, "unit": c.unit.name()})).collect();
    let document = Document {
        schema: "holdup.table/1",
        table: answer.table.name(),
        focus: &answer.focus,
        by: &answer.by,
        columns,
        rows: Rows(answer),
        total_rows: answer.total,
        matched_rows: answer.matched,
    };
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}
