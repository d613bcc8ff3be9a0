//! Values of a script as the types that a statement asks for.

use bytes::{BufMut, BytesMut};
use tokio_postgres::Statement;
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type};

use crate::driver::value::{Misfit, parse_uuid};
use crate::driver::{Args, DriverError, Value, time};

/// The protocol counts from the year 2000.
pub(super) const DAYS_TO_2000: i64 = 10_957;
pub(super) const MICROS_TO_2000: i64 = DAYS_TO_2000 * 86_400_000_000;

/// A value on its way to `$number`.
#[derive(Debug)]
pub(super) struct Bound<'a> {
    value: &'a Value,
    number: usize,
}

/// As many values as the statement has placeholders.
pub(super) fn values<'a>(statement: &Statement, args: &'a Args) -> Result<Vec<Bound<'a>>, DriverError> {
    let given: &[Value] = match args {
        Args::None => &[],
        Args::Positional(values) => values,
        Args::Named(_) => {
            return Err(DriverError::fatal(
                "PostgreSQL's placeholders are $1, $2 and so on: give the values in their order, not by name.",
            ));
        }
    };
    let wanted = statement.params().len();
    if given.len() != wanted {
        return Err(DriverError::fatal(format!(
            "The statement has {wanted} placeholders, but {} values came.",
            given.len()
        )));
    }
    Ok(given.iter().enumerate().map(|(index, value)| Bound { value, number: index + 1 }).collect())
}

impl ToSql for Bound<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        if *self.value == Value::Null {
            return Ok(IsNull::Yes);
        }
        let written = match as_text(self.value, ty) {
            Some(text) => {
                out.put_slice(text.as_bytes());
                Ok(())
            }
            None => write(self.value, ty, out),
        };
        written.map_err(|why| Misfit(format!("The value of ${} ({ty}) can't be bound: {why}.", self.number)))?;
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        self.to_sql(ty, out)
    }

    fn encode_format(&self, ty: &Type) -> Format {
        if as_text(self.value, ty).is_some() { Format::Text } else { Format::Binary }
    }
}

/// The server reads numbers of any length, enumerations and what else has no form of its own here from their text.
fn as_text(value: &Value, ty: &Type) -> Option<String> {
    match value {
        Value::Int(int) if *ty == Type::NUMERIC => Some(int.to_string()),
        Value::Float(float) if *ty == Type::NUMERIC => Some(float.to_string()),
        Value::Text(text) if !has_form(ty) => Some(text.clone()),
        _ => None,
    }
}

fn has_form(ty: &Type) -> bool {
    matches!(ty.kind(), Kind::Array(_))
        || is_text(ty)
        || [
            Type::BOOL,
            Type::INT2,
            Type::INT4,
            Type::INT8,
            Type::OID,
            Type::FLOAT4,
            Type::FLOAT8,
            Type::BYTEA,
            Type::UUID,
            Type::TIMESTAMP,
            Type::TIMESTAMPTZ,
            Type::DATE,
            Type::TIME,
        ]
        .contains(ty)
}

/// Types whose binary form is their text.
pub(super) fn is_text(ty: &Type) -> bool {
    [Type::TEXT, Type::VARCHAR, Type::BPCHAR, Type::NAME, Type::JSON, Type::JSONB, Type::XML, Type::UNKNOWN]
        .contains(ty)
}

fn write(value: &Value, ty: &Type, out: &mut BytesMut) -> Result<(), String> {
    match (value, ty.kind()) {
        (Value::List(items), Kind::Array(of)) => return array(items, of, out),
        (_, Kind::Domain(of)) => return write(value, of, out),
        _ => {}
    }
    match value {
        Value::Int(int) => integer(*int, ty, out)?,
        Value::Float(float) if *ty == Type::FLOAT8 => out.put_f64(*float),
        Value::Float(float) if *ty == Type::FLOAT4 => {
            if float.is_finite() && !(*float as f32).is_finite() {
                return Err(format!("{float} is out of its range"));
            }
            out.put_f32(*float as f32);
        }
        Value::Bool(bool) if *ty == Type::BOOL => out.put_u8(u8::from(*bool)),
        Value::Text(text) if is_text(ty) => {
            if *ty == Type::JSONB {
                out.put_u8(1);
            }
            out.put_slice(text.as_bytes());
        }
        Value::Text(text) => parsed(text, ty, out)?,
        Value::Blob(bytes) if *ty == Type::BYTEA => out.put_slice(bytes),
        Value::Uuid(bytes) if *ty == Type::UUID => out.put_slice(bytes),
        _ => return Err(mismatch(value, ty)),
    }
    Ok(())
}

fn integer(int: i64, ty: &Type, out: &mut BytesMut) -> Result<(), String> {
    let range = || format!("{int} is out of its range");
    match *ty {
        Type::INT2 => out.put_i16(int.try_into().map_err(|_| range())?),
        Type::INT4 => out.put_i32(int.try_into().map_err(|_| range())?),
        Type::INT8 => out.put_i64(int),
        Type::OID => out.put_u32(int.try_into().map_err(|_| range())?),
        Type::FLOAT4 => out.put_f32(int as f32),
        Type::FLOAT8 => out.put_f64(int as f64),
        // Milliseconds since 1970.
        Type::TIMESTAMP | Type::TIMESTAMPTZ => {
            let micros = int.checked_mul(1000).and_then(|micros| micros.checked_sub(MICROS_TO_2000));
            out.put_i64(micros.ok_or_else(range)?);
        }
        // Days since 1970.
        Type::DATE => {
            let days = int.checked_sub(DAYS_TO_2000).and_then(|days| i32::try_from(days).ok());
            out.put_i32(days.ok_or_else(range)?);
        }
        // Nanoseconds since midnight.
        Type::TIME => out.put_i64(int / 1000),
        _ => return Err(mismatch(&Value::Int(int), ty)),
    }
    Ok(())
}

/// What a text says of another type.
fn parsed(text: &str, ty: &Type, out: &mut BytesMut) -> Result<(), String> {
    let none = || format!("{text:?} is not one");
    match *ty {
        Type::UUID => out.put_slice(&parse_uuid(text).ok_or_else(none)?),
        Type::TIMESTAMP | Type::TIMESTAMPTZ => integer(time::timestamp_ms(text).ok_or_else(none)?, ty, out)?,
        Type::DATE => integer(time::days(text).ok_or_else(none)?, ty, out)?,
        Type::TIME => integer(time::nanos_of_day(text).ok_or_else(none)?, ty, out)?,
        _ => return Err(format!("a text is not of type {ty}")),
    }
    Ok(())
}

/// One dimension, counted from 1, each element behind its length.
fn array(items: &[Value], of: &Type, out: &mut BytesMut) -> Result<(), String> {
    let length = i32::try_from(items.len()).map_err(|_| "it has too many elements")?;
    out.put_i32(i32::from(length > 0));
    out.put_i32(i32::from(items.contains(&Value::Null)));
    out.put_u32(of.oid());
    if length > 0 {
        out.put_i32(length);
        out.put_i32(1);
    }
    let mut bytes = BytesMut::new();
    for item in items {
        if *item == Value::Null {
            out.put_i32(-1);
            continue;
        }
        bytes.clear();
        write(item, of, &mut bytes)?;
        out.put_i32(i32::try_from(bytes.len()).map_err(|_| "an element is longer than 2 GiB")?);
        out.put_slice(&bytes);
    }
    Ok(())
}

fn mismatch(value: &Value, ty: &Type) -> String {
    format!("{} is not of type {ty}", value.kind())
}
