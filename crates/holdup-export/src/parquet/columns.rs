//! Columns of Parquet files: their types, and their values as pages.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int16Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use holdup_trace::Error;

use super::delta;
use super::thrift::Writer;
use crate::Result;

/// Parquet's physical types, as it numbers them.
const INT32: i32 = 1;
const INT64: i32 = 2;
const BYTE_ARRAY: i32 = 6;

/// Parquet's encodings, as it numbers them.
const PLAIN: i32 = 0;
const DELTA_BINARY_PACKED: i32 = 5;
/// That of levels, of which columns without nulls and lists have none.
const RLE: i32 = 3;

/// LZ4 blocks without a frame: the codec that the program has anyway.
pub const LZ4_RAW: i32 = 7;

/// Bytes of texts in a page, before it is packed.
const PAGE_OF_TEXT: usize = 1 << 20;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// Integers of so many bits.
    Integers {
        bits: i8,
        signed: bool,
    },
    Texts,
}

/// A column.
#[derive(Debug)]
pub struct Column {
    /// Its name, type and meaning, as Arrow has them.
    pub field: Arc<Field>,
    holds: Holds,
}

impl Column {
    /// A column of a table.
    ///
    /// # Errors
    /// For a type that no table has.
    pub fn new(field: &Arc<Field>) -> Result<Self> {
        let integers = |bits, signed| Holds::Integers { bits, signed };
        let holds = match field.data_type() {
            DataType::Utf8 => Holds::Texts,
            DataType::UInt8 => integers(8, false),
            DataType::UInt16 => integers(16, false),
            DataType::UInt32 => integers(32, false),
            DataType::UInt64 => integers(64, false),
            DataType::Int16 => integers(16, true),
            DataType::Int64 => integers(64, true),
            other => return Err(Error::Bug(format!("columns of type {other} are not exported")).into()),
        };
        Ok(Column { field: field.clone(), holds })
    }

    /// Its physical type and its encoding.
    pub fn stored_as(&self) -> (i32, i32) {
        match self.holds {
            Holds::Integers { bits: 64, .. } => (INT64, DELTA_BINARY_PACKED),
            Holds::Integers { .. } => (INT32, DELTA_BINARY_PACKED),
            Holds::Texts => (BYTE_ARRAY, PLAIN),
        }
    }

    /// Describes it, as an element of the schema.
    pub fn describe(&self, to: &mut Writer) {
        to.open();
        to.i32(1, self.stored_as().0);
        to.i32(3, 0);
        to.binary(4, self.field.name().as_bytes());
        to.i32(6, self.converted());
        to.begin(10);
        match self.holds {
            Holds::Texts => {
                to.begin(1);
                to.close();
            }
            Holds::Integers { bits, signed } => {
                to.begin(10);
                to.i8(1, bits);
                to.bool(2, signed);
                to.close();
            }
        }
        to.close();
        to.close();
    }

    /// The type as readers of before 2019 know it.
    fn converted(&self) -> i32 {
        match self.holds {
            Holds::Texts => 0,
            Holds::Integers { bits: 8, .. } => 11,
            Holds::Integers { bits: 16, signed: false } => 12,
            Holds::Integers { bits: 16, signed: true } => 16,
            Holds::Integers { bits: 64, signed: true } => 18,
            Holds::Integers { bits: 32, .. } => 13,
            Holds::Integers { .. } => 14,
        }
    }

    /// Appends the pages of some rows to `to`. O(rows).
    ///
    /// # Errors
    /// If a text is longer than a page can be.
    pub fn append(&self, values: &ArrayRef, to: &mut Pages) -> Result<()> {
        match self.holds {
            Holds::Integers { signed, .. } => {
                let numbers = integers(values);
                to.limits(&numbers, signed);
                let narrow = self.stored_as().0 == INT32;
                let stored: Vec<i64> = match narrow {
                    true => numbers.iter().map(|v| i64::from(*v as i32)).collect(),
                    false => numbers.iter().map(|v| v.cast_signed()).collect(),
                };
                to.page(&delta::encode(&stored, narrow), stored.len(), DELTA_BINARY_PACKED)
            }
            Holds::Texts => {
                let (mut plain, mut rows) = (Vec::new(), 0);
                for text in values.as_string::<i32>().iter().map(Option::unwrap_or_default) {
                    plain.extend_from_slice(&(text.len() as u32).to_le_bytes());
                    plain.extend_from_slice(text.as_bytes());
                    rows += 1;
                    if plain.len() >= PAGE_OF_TEXT {
                        to.page(&plain, rows, PLAIN)?;
                        (rows, _) = (0, plain.clear());
                    }
                }
                if rows > 0 { to.page(&plain, rows, PLAIN) } else { Ok(()) }
            }
        }
    }

    /// A bound, as the column's own type has it.
    pub fn bound(&self, value: u64) -> Vec<u8> {
        let bytes = value.to_le_bytes();
        if self.stored_as().0 == INT64 { bytes.to_vec() } else { bytes[..4].to_vec() }
    }
}

/// The values of a column; signed ones extended to 64 bits.
fn integers(values: &ArrayRef) -> Vec<u64> {
    fn of<T: ArrowPrimitiveType>(values: &ArrayRef, wide: impl Fn(T::Native) -> u64) -> Vec<u64> {
        values.as_primitive::<T>().values().iter().map(|v| wide(*v)).collect()
    }
    match values.data_type() {
        DataType::UInt8 => of::<UInt8Type>(values, u64::from),
        DataType::UInt16 => of::<UInt16Type>(values, u64::from),
        DataType::UInt32 => of::<UInt32Type>(values, u64::from),
        DataType::Int16 => of::<Int16Type>(values, |v| i64::from(v).cast_unsigned()),
        DataType::Int64 => of::<Int64Type>(values, i64::cast_unsigned),
        _ => of::<UInt64Type>(values, |v| v),
    }
}

/// The pages of one column of a row group, packed.
#[derive(Debug, Default)]
pub struct Pages {
    /// Headers and bodies.
    pub bytes: Vec<u8>,
    /// How long they would be if they were not packed.
    pub unpacked: u64,
    /// The least and the greatest value, as 64 bits.
    pub limits: Option<(u64, u64)>,
}

impl Pages {
    fn limits(&mut self, values: &[u64], signed: bool) {
        // Signed numbers sort as unsigned ones with the highest bit turned.
        let key = |v: &u64| if signed { v ^ (1 << 63) } else { *v };
        let known = self.limits.into_iter().flat_map(|(least, most)| [least, most]);
        let all = || values.iter().copied().chain(known.clone());
        self.limits = all().min_by_key(key).zip(all().max_by_key(key));
    }

    fn page(&mut self, body: &[u8], rows: usize, encoding: i32) -> Result<()> {
        let packed = lz4_flex::block::compress(body);
        let [long, short, rows] = [body.len(), packed.len(), rows].map(i32::try_from);
        let (Ok(long), Ok(short), Ok(rows)) = (long, short, rows) else {
            let what = format!("a page of {} bytes is longer than Parquet's pages can be", body.len());
            return Err(Error::Input(what).into());
        };
        let mut header = Writer::default();
        header.i32(1, 0);
        header.i32(2, long);
        header.i32(3, short);
        header.begin(5);
        header.i32(1, rows);
        header.i32(2, encoding);
        header.i32(3, RLE);
        header.i32(4, RLE);
        header.close();
        let header = header.finish();
        self.unpacked += (header.len() + body.len()) as u64;
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(&packed);
        Ok(())
    }
}
