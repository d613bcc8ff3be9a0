//! Answers of `holdup table`, in each format.

pub mod arrow;
pub mod csv;
pub mod grid;
pub mod json;

use holdup_analysis::explore::relation::{Column, Data, MISSING, Unit};

/// A value with full precision: times in nanoseconds, addresses in hexadecimal; `None` if it is not known.
enum Value<'a> {
    Text(&'a str),
    Whole(u64),
    Real(f64),
    Address(u64),
}

fn value(column: &Column, row: usize) -> Option<Value<'_>> {
    match &column.data {
        Data::Text(text) => Some(Value::Text(text.get(row))),
        Data::Numbers(numbers) => match (numbers[row], column.unit) {
            (MISSING, _) => None,
            (n, Unit::Address) => Some(Value::Address(n)),
            (n, _) => Some(Value::Whole(n)),
        },
        Data::Reals(reals) => Some(reals[row]).filter(|r| r.is_finite()).map(Value::Real),
    }
}
