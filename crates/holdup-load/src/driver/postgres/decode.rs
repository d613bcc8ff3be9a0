//! Rows of PostgreSQL as values of a script.

use std::error::Error;

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Kind, Type};

use super::bind::{DAYS_TO_2000, MICROS_TO_2000, is_text};
use crate::driver::{DriverError, Value};

/// A list with a map of names for each row.
pub(super) fn rows(rows: &[Row]) -> Result<Value, DriverError> {
    rows.iter().map(row).collect::<Result<_, _>>().map(Value::List)
}

fn row(row: &Row) -> Result<Value, DriverError> {
    let mut fields = Vec::with_capacity(row.len());
    for (index, column) in row.columns().iter().enumerate() {
        let Cell(value) = row.try_get(index).map_err(|error| {
            DriverError::fatal(format!("The column `{}` ({}) can't be read: {error}.", column.name(), column.type_()))
        })?;
        fields.push((Value::Text(column.name().to_owned()), value));
    }
    Ok(Value::Map(fields))
}

struct Cell(Value);

impl<'a> FromSql<'a> for Cell {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Cell, Box<dyn Error + Sync + Send>> {
        value(ty, raw).map(Cell).ok_or_else(|| "its bytes are not what the type says".into())
    }

    fn from_sql_null(_: &Type) -> Result<Cell, Box<dyn Error + Sync + Send>> {
        Ok(Cell(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Timestamps are milliseconds since 1970, dates days since then, times nanoseconds since midnight, `numeric` its digits as a
/// text; a type that has no form here stays bytes. `None` for what the type's form doesn't allow.
fn value(ty: &Type, raw: &[u8]) -> Option<Value> {
    match ty.kind() {
        Kind::Array(of) => return array(of, raw),
        Kind::Domain(of) => return value(of, raw),
        Kind::Enum(_) => return text(raw),
        _ => {}
    }
    match *ty {
        Type::BOOL => Some(Value::Bool(*raw.first()? != 0)),
        Type::INT2 => Some(Value::Int(i16::from_be_bytes(raw.try_into().ok()?).into())),
        Type::INT4 => Some(Value::Int(i32::from_be_bytes(raw.try_into().ok()?).into())),
        Type::INT8 => Some(Value::Int(i64::from_be_bytes(raw.try_into().ok()?))),
        Type::OID => Some(Value::Int(u32::from_be_bytes(raw.try_into().ok()?).into())),
        Type::FLOAT4 => Some(Value::Float(f32::from_be_bytes(raw.try_into().ok()?).into())),
        Type::FLOAT8 => Some(Value::Float(f64::from_be_bytes(raw.try_into().ok()?))),
        Type::UUID => Some(Value::Uuid(raw.try_into().ok()?)),
        Type::TIMESTAMP | Type::TIMESTAMPTZ => {
            let micros = i64::from_be_bytes(raw.try_into().ok()?);
            Some(Value::Int(micros.saturating_add(MICROS_TO_2000).div_euclid(1000)))
        }
        Type::DATE => Some(Value::Int(i64::from(i32::from_be_bytes(raw.try_into().ok()?)) + DAYS_TO_2000)),
        Type::TIME => Some(Value::Int(i64::from_be_bytes(raw.try_into().ok()?).checked_mul(1000)?)),
        Type::NUMERIC => numeric(raw).map(Value::Text),
        Type::JSONB => text(raw.strip_prefix(&[1])?),
        Type::VOID => Some(Value::Null),
        _ if is_text(ty) => text(raw),
        _ => Some(Value::Blob(raw.to_vec())),
    }
}

fn text(raw: &[u8]) -> Option<Value> {
    String::from_utf8(raw.to_vec()).ok().map(Value::Text)
}

/// Takes big-endian numbers off the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn i16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.bytes(2)?.try_into().ok()?))
    }
}

/// An array of several dimensions is a list of lists.
fn array(of: &Type, raw: &[u8]) -> Option<Value> {
    let mut reader = Reader(raw);
    let dimensions = usize::try_from(reader.i32()?).ok()?;
    let (_has_nulls, _oid) = (reader.i32()?, reader.i32()?);
    if dimensions == 0 {
        return Some(Value::List(Vec::new()));
    }
    let mut lengths = Vec::new();
    for _ in 0..dimensions {
        lengths.push(usize::try_from(reader.i32()?).ok()?);
        let _lower_bound = reader.i32()?;
    }
    nested(of, &lengths, &mut reader)
}

fn nested(of: &Type, lengths: &[usize], reader: &mut Reader) -> Option<Value> {
    let Some((length, inner)) = lengths.split_first() else {
        return match reader.i32()? {
            -1 => Some(Value::Null),
            length => value(of, reader.bytes(usize::try_from(length).ok()?)?),
        };
    };
    (0..*length).map(|_| nested(of, inner, reader)).collect::<Option<_>>().map(Value::List)
}

/// Groups of four decimal digits, the first of which stands `weight` groups before the point.
fn numeric(raw: &[u8]) -> Option<String> {
    let mut reader = Reader(raw);
    let (count, weight) = (reader.i16()?, reader.i16()?);
    let (sign, scale) = (reader.i16()? as u16, usize::try_from(reader.i16()?).ok()?);
    match sign {
        0xc000 => return Some("NaN".into()),
        0xd000 => return Some("Infinity".into()),
        0xf000 => return Some("-Infinity".into()),
        _ => {}
    }
    let groups = (0..count).map(|_| reader.i16()).collect::<Option<Vec<_>>>()?;
    let group = |place: i32| usize::try_from(place).ok().and_then(|place| groups.get(place)).copied().unwrap_or(0);
    let weight = i32::from(weight);
    let mut whole: String = (0..=weight).map(|place| format!("{:04}", group(place))).collect();
    whole = whole.trim_start_matches('0').to_owned();
    if whole.is_empty() {
        whole.push('0');
    }
    let mut fraction = String::new();
    let mut place = weight + 1;
    while fraction.len() < scale {
        fraction.push_str(&format!("{:04}", group(place)));
        place += 1;
    }
    fraction.truncate(scale);
    let sign = if sign == 0x4000 { "-" } else { "" };
    Some(if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}
