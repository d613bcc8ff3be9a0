//! Rows of an answer, whichever engine gave it.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};

use crate::{Error, Result};

/// A value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Cell {
    /// Nanoseconds, or how many.
    Number(i64),
    /// A name.
    Text(String),
}

impl Cell {
    /// Its text; empty if it is a number.
    pub fn text(&self) -> &str {
        match self {
            Cell::Text(text) => text,
            Cell::Number(_) => "",
        }
    }

    /// Its number; 0 if it is a text.
    pub fn number(&self) -> i64 {
        match self {
            Cell::Number(number) => *number,
            Cell::Text(_) => 0,
        }
    }
}

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Rows {
    /// Names of the columns; what ends in `_ns` is in nanoseconds.
    pub columns: Vec<String>,
    /// The rows, in order.
    pub rows: Vec<Vec<Cell>>,
}

impl Rows {
    /// The value of `column` in `row`.
    ///
    /// # Panics
    /// If there is no such column: the questions' own columns are asked for.
    pub fn get<'a>(&self, row: &'a [Cell], column: &str) -> &'a Cell {
        let at = self.columns.iter().position(|c| c == column);
        &row[at.unwrap_or_else(|| panic!("no column {column} in {:?}", self.columns))]
    }

    pub(crate) fn of(batches: &[RecordBatch]) -> Result<Rows> {
        let mut all = Rows::default();
        for batch in batches {
            if all.columns.is_empty() {
                all.columns = batch.schema().fields().iter().map(|f| f.name().clone()).collect();
            }
            let columns = batch.columns().iter().map(cells).collect::<Result<Vec<_>>>()?;
            all.rows.extend((0..batch.num_rows()).map(|row| columns.iter().map(|c| c[row].clone()).collect()));
        }
        Ok(all)
    }
}

fn cells(column: &ArrayRef) -> Result<Vec<Cell>> {
    let wrong = |e| Error::Engine(datafusion::error::DataFusionError::ArrowError(Box::new(e), None));
    if column.data_type().is_integer() {
        let numbers = cast(column, &DataType::Int64).map_err(wrong)?;
        return Ok(numbers.as_primitive::<Int64Type>().iter().map(|v| Cell::Number(v.unwrap_or_default())).collect());
    }
    let texts = cast(column, &DataType::Utf8).map_err(wrong)?;
    let texts = texts.as_string::<i32>();
    Ok((0..texts.len())
        .map(|i| Cell::Text(if texts.is_null(i) { String::new() } else { texts.value(i).to_owned() }))
        .collect())
}
