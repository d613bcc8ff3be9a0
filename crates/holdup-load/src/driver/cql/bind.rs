//! Values of a script as the types that a statement asks for.

use std::borrow::Cow;
use std::net::IpAddr;

use scylla::errors::SerializationError;
use scylla::frame::response::result::{CollectionType, ColumnType, NativeType, UserDefinedType};
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::{CellOverflowError, CellValueBuilder, CellWriter, RowWriter};

use super::{duration, number};
use crate::driver::value::{Misfit, parse_uuid};
use crate::driver::{Args, Value, time};

/// The arguments of one call.
pub(super) struct BoundArgs<'a>(pub(super) &'a Args);

impl SerializeRow for BoundArgs<'_> {
    fn serialize(&self, ctx: &RowSerializationContext<'_>, writer: &mut RowWriter) -> Result<(), SerializationError> {
        let wrong = |why: String| SerializationError::new(Misfit(why));
        let columns = ctx.columns();
        let given = match self.0 {
            Args::None => 0,
            Args::Positional(values) => values.len(),
            Args::Named(values) => values.len(),
        };
        // One name may stand for several placeholders, so names are only counted where one is missing.
        if given != columns.len() && !matches!(self.0, Args::Named(_)) {
            return Err(wrong(format!("The statement has {} placeholders, but {given} values came.", columns.len())));
        }
        if let Args::Named(values) = self.0
            && let Some((name, _)) = values.iter().find(|(name, _)| !columns.iter().any(|c| is_same(c.name(), name)))
        {
            let names: Vec<&str> = columns.iter().map(|column| column.name()).collect();
            return Err(wrong(format!("The statement has no placeholder {name:?}: it has {}.", names.join(", "))));
        }
        for (index, column) in columns.iter().enumerate() {
            let value = match self.0 {
                Args::Positional(values) => &values[index],
                Args::Named(values) => values
                    .iter()
                    .find(|(name, _)| is_same(column.name(), name))
                    .map(|(_, value)| value)
                    .ok_or_else(|| wrong(format!("No value came for the placeholder {:?}.", column.name())))?,
                Args::None => unreachable!("a statement with placeholders was refused above"),
            };
            write(value, column.typ(), writer.make_cell_writer()).map_err(|why| {
                wrong(format!("The value of `{}` ({}) can't be bound: {why}.", column.name(), show(column.typ())))
            })?;
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        match self.0 {
            Args::None => true,
            Args::Positional(values) => values.is_empty(),
            Args::Named(values) => values.is_empty(),
        }
    }
}

/// The server has names in lower case unless they were quoted.
fn is_same(column: &str, name: &str) -> bool {
    column == name || column.eq_ignore_ascii_case(name)
}

const NO_PAIRS: &str = "a map is an object, or a list of pairs of key and value";

fn write(value: &Value, typ: &ColumnType, writer: CellWriter) -> Result<(), String> {
    match (value, typ) {
        (Value::Null, _) => {
            writer.set_null();
            Ok(())
        }
        (_, ColumnType::Native(native)) => {
            let bytes = scalar(value, native)?;
            writer.set_value(&bytes).map(drop).map_err(too_long)
        }
        (
            Value::List(items),
            ColumnType::Collection { typ: CollectionType::List(of) | CollectionType::Set(of), .. },
        ) => {
            let mut cell = writer.into_value_builder();
            cell.append_bytes(&count(items.len())?);
            items.iter().try_for_each(|item| write(item, of, cell.make_sub_writer()))?;
            cell.finish().map(drop).map_err(too_long)
        }
        (Value::Map(pairs), ColumnType::Collection { typ: CollectionType::Map(keys, values), .. }) => {
            let mut cell = writer.into_value_builder();
            cell.append_bytes(&count(pairs.len())?);
            for (key, value) in pairs {
                write(key, keys, cell.make_sub_writer())?;
                write(value, values, cell.make_sub_writer())?;
            }
            cell.finish().map(drop).map_err(too_long)
        }
        (Value::List(items), ColumnType::Collection { typ: CollectionType::Map(keys, values), .. }) => {
            let mut cell = writer.into_value_builder();
            cell.append_bytes(&count(items.len())?);
            for item in items {
                let Value::List(pair) = item else { return Err(NO_PAIRS.to_owned()) };
                let [key, value] = pair.as_slice() else { return Err(NO_PAIRS.to_owned()) };
                write(key, keys, cell.make_sub_writer())?;
                write(value, values, cell.make_sub_writer())?;
            }
            cell.finish().map(drop).map_err(too_long)
        }
        (Value::List(items), ColumnType::Vector { typ, dimensions }) => vector(items, typ, *dimensions, writer),
        (Value::Blob(bytes), ColumnType::Vector { typ, dimensions })
            if matches!(**typ, ColumnType::Native(NativeType::Float)) =>
        {
            writer.set_value(&packed(bytes, *dimensions)?).map(drop).map_err(too_long)
        }
        (Value::List(items), ColumnType::Tuple(types)) => {
            if items.len() != types.len() {
                return Err(format!("the tuple has {} fields, the list {}", types.len(), items.len()));
            }
            let mut cell = writer.into_value_builder();
            items.iter().zip(types).try_for_each(|(item, typ)| write(item, typ, cell.make_sub_writer()))?;
            cell.finish().map(drop).map_err(too_long)
        }
        (Value::Map(pairs), ColumnType::UserDefinedType { definition, .. }) => structure(pairs, definition, writer),
        _ => Err(mismatch(value, typ)),
    }
}

/// A structure's fields in the order of its type; those that the map has not are null.
fn structure(pairs: &[(Value, Value)], definition: &UserDefinedType, writer: CellWriter) -> Result<(), String> {
    let named = |field: &str, key: &Value| matches!(key, Value::Text(name) if name == field);
    if let Some((key, _)) = pairs.iter().find(|(key, _)| !definition.field_types.iter().any(|(f, _)| named(f, key))) {
        return Err(format!("{} has no field {key:?}", definition.name));
    }
    let mut cell = writer.into_value_builder();
    for (field, typ) in &definition.field_types {
        let value = pairs.iter().find(|(key, _)| named(field, key)).map_or(&Value::Null, |(_, value)| value);
        write(value, typ, cell.make_sub_writer()).map_err(|why| format!("its field `{field}`: {why}"))?;
    }
    cell.finish().map(drop).map_err(too_long)
}

/// Elements of a fixed size follow each other; others have their length before them.
fn vector(items: &[Value], typ: &ColumnType, dimensions: u16, writer: CellWriter) -> Result<(), String> {
    if items.len() != usize::from(dimensions) {
        return Err(format!("the vector has {dimensions} dimensions, the list {}", items.len()));
    }
    let is_fixed = typ.type_size_for_vector().is_some();
    let mut cell: CellValueBuilder = writer.into_value_builder();
    for item in items {
        if *item == Value::Null {
            return Err("a vector has no place for nothing".into());
        }
        if is_fixed {
            write(item, typ, cell.make_sub_writer_without_size())?;
        } else {
            let mut bytes = Vec::new();
            write(item, typ, CellWriter::new_without_size(&mut bytes))?;
            cell.append_bytes(&number::unsigned_vint(bytes.len() as u64));
            cell.append_bytes(&bytes);
        }
    }
    cell.finish().map(drop).map_err(too_long)
}

/// Floats as files have them, the least byte first, as the server wants them.
fn packed(bytes: &[u8], dimensions: u16) -> Result<Vec<u8>, String> {
    let (floats, rest) = bytes.as_chunks::<4>();
    if floats.len() != usize::from(dimensions) || !rest.is_empty() {
        return Err(format!(
            "the vector has {dimensions} dimensions, 4 bytes each, and the blob {} bytes",
            bytes.len()
        ));
    }
    Ok(floats.iter().flat_map(|float| float.iter().rev().copied()).collect())
}

/// The bytes of a value that has no parts.
fn scalar<'v>(value: &'v Value, typ: &NativeType) -> Result<Cow<'v, [u8]>, String> {
    let bytes = match (value, typ) {
        (Value::Int(int), _) => integer(*int, typ)?,
        (Value::Float(float), _) => floating(*float, typ)?,
        (Value::Text(text), NativeType::Text) => return Ok(Cow::Borrowed(text.as_bytes())),
        (Value::Text(text), NativeType::Ascii) if text.is_ascii() => return Ok(Cow::Borrowed(text.as_bytes())),
        (Value::Text(text), NativeType::Ascii) => return Err(format!("{text:?} is not ASCII")),
        (Value::Text(text), _) => parsed(text, typ)?,
        (Value::Blob(bytes), NativeType::Blob) => return Ok(Cow::Borrowed(bytes)),
        (Value::Uuid(bytes), NativeType::Uuid) => return Ok(Cow::Borrowed(bytes)),
        (Value::Uuid(bytes), NativeType::Timeuuid) if bytes[6] >> 4 == 1 => return Ok(Cow::Borrowed(bytes)),
        (Value::Uuid(bytes), NativeType::Timeuuid) => {
            return Err(format!("a timeuuid is a UUID of version 1, this one's is {}", bytes[6] >> 4));
        }
        (Value::List(items), NativeType::Blob) => {
            let byte = |item: &Value| if let Value::Int(int) = item { u8::try_from(*int).ok() } else { None };
            items
                .iter()
                .map(byte)
                .collect::<Option<_>>()
                .ok_or("a blob is bytes, or a list of numbers from 0 to 255")?
        }
        (Value::Bool(bool), NativeType::Boolean) => vec![u8::from(*bool)],
        _ => return Err(mismatch(value, &ColumnType::Native(typ.clone()))),
    };
    Ok(Cow::Owned(bytes))
}

fn integer(int: i64, typ: &NativeType) -> Result<Vec<u8>, String> {
    let range = |_| format!("{int} is out of its range");
    Ok(match typ {
        NativeType::TinyInt => i8::try_from(int).map_err(range)?.to_be_bytes().into(),
        NativeType::SmallInt => i16::try_from(int).map_err(range)?.to_be_bytes().into(),
        NativeType::Int => i32::try_from(int).map_err(range)?.to_be_bytes().into(),
        NativeType::BigInt | NativeType::Counter | NativeType::Timestamp => int.to_be_bytes().into(),
        NativeType::Varint => number::to_bytes(int.into()),
        NativeType::Decimal => decimal(int.into(), 0),
        // Days since 1970. What is too large for those is the number that CQL itself has for that day.
        NativeType::Date => match u32::try_from(if int < 1 << 31 { int.saturating_add(1 << 31) } else { int }) {
            Ok(days) => days.to_be_bytes().into(),
            Err(_) => return Err(format!("{int} days since 1970 are out of its range")),
        },
        NativeType::Time if (0..86_400_000_000_000).contains(&int) => int.to_be_bytes().into(),
        NativeType::Time => return Err(format!("{int} ns since midnight are more than a day or negative")),
        NativeType::Duration => lasting(duration::Parts { nanos: int, ..duration::Parts::default() }),
        NativeType::Float => (int as f32).to_be_bytes().into(),
        NativeType::Double => (int as f64).to_be_bytes().into(),
        _ => return Err(mismatch(&Value::Int(int), &ColumnType::Native(typ.clone()))),
    })
}

fn floating(float: f64, typ: &NativeType) -> Result<Vec<u8>, String> {
    match typ {
        NativeType::Double => Ok(float.to_be_bytes().into()),
        NativeType::Float if float.is_finite() && !(float as f32).is_finite() => {
            Err(format!("{float} is out of its range"))
        }
        NativeType::Float => Ok((float as f32).to_be_bytes().into()),
        NativeType::Decimal => {
            let (digits, scale) =
                number::parse_decimal(&float.to_string()).ok_or_else(|| format!("{float} is not a decimal number"))?;
            Ok(decimal(digits, scale))
        }
        _ => Err(mismatch(&Value::Float(float), &ColumnType::Native(typ.clone()))),
    }
}

/// What a text says of another type.
fn parsed(text: &str, typ: &NativeType) -> Result<Vec<u8>, String> {
    let bytes: Option<Vec<u8>> = match typ {
        NativeType::Uuid => parse_uuid(text).map(Into::into),
        NativeType::Timeuuid => parse_uuid(text).filter(|bytes| bytes[6] >> 4 == 1).map(Into::into),
        NativeType::Inet => text.parse().ok().map(|address| match address {
            IpAddr::V4(v4) => v4.octets().into(),
            IpAddr::V6(v6) => v6.octets().into(),
        }),
        NativeType::Timestamp => time::timestamp_ms(text).map(|ms| ms.to_be_bytes().into()),
        NativeType::Date => time::days(text).map(|days| integer(days, typ)).transpose()?,
        NativeType::Time => time::nanos_of_day(text).map(|nanos| nanos.to_be_bytes().into()),
        NativeType::Decimal => number::parse_decimal(text).map(|(digits, scale)| decimal(digits, scale)),
        NativeType::Duration => duration::parse(text).map(lasting),
        NativeType::Varint => text.parse().ok().map(number::to_bytes),
        _ => return Err(mismatch(&Value::Text(String::new()), &ColumnType::Native(typ.clone()))),
    };
    bytes.ok_or_else(|| format!("{text:?} is not one"))
}

fn lasting(parts: duration::Parts) -> Vec<u8> {
    [parts.months.into(), parts.days.into(), parts.nanos].map(number::signed_vint).concat()
}

fn decimal(digits: i128, scale: i32) -> Vec<u8> {
    [scale.to_be_bytes().to_vec(), number::to_bytes(digits)].concat()
}

fn count(length: usize) -> Result<[u8; 4], String> {
    i32::try_from(length).map(i32::to_be_bytes).map_err(|_| "it has too many elements".to_owned())
}

fn too_long(_: CellOverflowError) -> String {
    "it is longer than 2 GiB".to_owned()
}

fn mismatch(value: &Value, typ: &ColumnType) -> String {
    format!("{} is not of type {}", value.kind(), show(typ))
}

/// A type as CQL writes it.
fn show(typ: &ColumnType) -> String {
    match typ {
        ColumnType::Native(native) => format!("{native:?}").to_ascii_lowercase(),
        ColumnType::Collection { typ: CollectionType::List(of), .. } => format!("list<{}>", show(of)),
        ColumnType::Collection { typ: CollectionType::Set(of), .. } => format!("set<{}>", show(of)),
        ColumnType::Collection { typ: CollectionType::Map(key, value), .. } => {
            format!("map<{}, {}>", show(key), show(value))
        }
        ColumnType::Vector { typ, dimensions } => format!("vector<{}, {dimensions}>", show(typ)),
        ColumnType::UserDefinedType { definition, .. } => definition.name.to_string(),
        ColumnType::Tuple(types) => format!("tuple<{}>", types.iter().map(show).collect::<Vec<_>>().join(", ")),
        // Types that this driver does not know yet.
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
#[path = "bind_tests.rs"]
mod tests;
