//! Rows of CQL as values of a script.

use std::fmt::Display;

use scylla::response::query_result::QueryRowsResult;
use scylla::value::{CqlDuration, CqlValue, Row};

use super::{duration, number};
use crate::driver::{DriverError, Value};

/// Appends a map of names for each row.
pub(super) fn rows(result: &QueryRowsResult, into: &mut Vec<Value>) -> Result<(), DriverError> {
    let names: Vec<&str> = result.column_specs().iter().map(|column| column.name()).collect();
    into.reserve(result.rows_num());
    for row in result.rows::<Row>().map_err(|error| unreadable(&error))? {
        let row = row.map_err(|error| unreadable(&error))?;
        let fields = names
            .iter()
            .zip(row.columns)
            .map(|(name, cell)| (Value::Text((*name).to_owned()), cell.map_or(Value::Null, value)));
        into.push(Value::Map(fields.collect()));
    }
    Ok(())
}

/// The server sent rows of a form that nobody knows.
pub(super) fn unreadable(error: &impl Display) -> DriverError {
    DriverError::fatal(format!("The rows can't be read: {error}."))
}

/// Timestamps are milliseconds since 1970, dates days since then, times nanoseconds since midnight; what has more digits than
/// an integer is a text. A map is a list of pairs, as its keys may be of any type.
fn value(cell: CqlValue) -> Value {
    let list = |cells: Vec<CqlValue>| Value::List(cells.into_iter().map(value).collect());
    match cell {
        CqlValue::Ascii(text) | CqlValue::Text(text) => Value::Text(text),
        CqlValue::Boolean(bool) => Value::Bool(bool),
        CqlValue::Blob(bytes) => Value::Blob(bytes),
        CqlValue::Counter(counter) => Value::Int(counter.0),
        CqlValue::TinyInt(int) => Value::Int(int.into()),
        CqlValue::SmallInt(int) => Value::Int(int.into()),
        CqlValue::Int(int) => Value::Int(int.into()),
        CqlValue::BigInt(int) => Value::Int(int),
        CqlValue::Float(float) => Value::Float(float.into()),
        CqlValue::Double(float) => Value::Float(float),
        CqlValue::Timestamp(timestamp) => Value::Int(timestamp.0),
        CqlValue::Date(date) => Value::Int(i64::from(date.0) - (1 << 31)),
        CqlValue::Time(time) => Value::Int(time.0),
        CqlValue::Duration(duration) => show_duration(&duration),
        CqlValue::Inet(address) => Value::Text(address.to_string()),
        CqlValue::Uuid(uuid) => Value::Uuid(uuid.into_bytes()),
        CqlValue::Timeuuid(uuid) => Value::Uuid(*uuid.as_bytes()),
        CqlValue::Varint(varint) => show_varint(varint.as_signed_bytes_be_slice()),
        CqlValue::Decimal(decimal) => {
            let (bytes, scale) = decimal.as_signed_be_bytes_slice_and_exponent();
            match number::from_bytes(bytes) {
                Some(digits) => Value::Text(number::show_decimal(digits, scale)),
                None => Value::Blob(bytes.to_vec()),
            }
        }
        CqlValue::List(cells) | CqlValue::Set(cells) | CqlValue::Vector(cells) => list(cells),
        CqlValue::Tuple(cells) => Value::List(cells.into_iter().map(|cell| cell.map_or(Value::Null, value)).collect()),
        CqlValue::Map(pairs) => {
            Value::List(pairs.into_iter().map(|(key, cell)| Value::List(vec![value(key), value(cell)])).collect())
        }
        CqlValue::UserDefinedType { fields, .. } => Value::Map(
            fields.into_iter().map(|(name, cell)| (Value::Text(name), cell.map_or(Value::Null, value))).collect(),
        ),
        // `Empty` is what an old client wrote for nothing; a type that is newer than this driver can't be shown.
        _ => Value::Null,
    }
}

fn show_varint(bytes: &[u8]) -> Value {
    match number::from_bytes(bytes) {
        Some(number) => i64::try_from(number).map_or_else(|_| Value::Text(number.to_string()), Value::Int),
        None => Value::Blob(bytes.to_vec()),
    }
}

/// Months and days have no fixed length, so only a duration without them is a number (of nanoseconds).
fn show_duration(lasts: &CqlDuration) -> Value {
    match (lasts.months, lasts.days) {
        (0, 0) => Value::Int(lasts.nanoseconds),
        (months, days) => Value::Text(duration::show(duration::Parts { months, days, nanos: lasts.nanoseconds })),
    }
}
