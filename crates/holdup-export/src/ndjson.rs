//! A trace as lines of JSON, for jq, grep and programs without a reader of columns.
//!
//! The first line is the trace's facts (`"table": "meta"`), then the dictionaries stand (threads, locks, stacks, frames, lines), then the events,
//! table by table, each in time order. Every line names its `table`; its other members are that table's columns as `holdup info --schema`
//! describes them, in their units, with these differences:
//!
//! - what names a string is the string;
//! - rows of a dictionary that columns of other tables name have their number as `id`;
//! - addresses are strings (`"0x7f…"`), as JSON's numbers end at 2⁵³ in most readers;
//! - a CPU, a thread, a stack or a lock that there is not, or that is unknown, is `null`.
//!
//! Nothing is kept: memory does not grow with the trace. O(rows).

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use holdup_trace::{
    Cpu, Error as TraceError, LockId, Meta, StackId, Store, StringId, Table, TakeTables, ThreadIdx, Trace,
};
use serde_json::{Value, json};

use crate::{Error, Result};

/// What the first line says that this is.
pub const SCHEMA: &str = "holdup.ndjson/1";

/// Writes all of `trace`.
///
/// # Errors
/// If a table is damaged, or `out` takes no more.
pub fn write(trace: &Trace, out: &mut dyn Write) -> Result<()> {
    let facts = Meta { rows: trace.row_counts(), ..trace.meta.clone() };
    line(out, &json!({"table": "meta", "schema": SCHEMA, "meta": facts}))?;
    trace.tables(&mut Lines { trace, out, part: Part::Dictionaries })?;
    trace.tables(&mut Lines { trace, out, part: Part::Events })
}

fn line(out: &mut dyn Write, value: &Value) -> Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    Ok(out.write_all(b"\n")?)
}

/// What is written in this pass: who reads line by line has to know a name before it is used.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Dictionaries,
    Events,
}

struct Lines<'a> {
    trace: &'a Trace,
    out: &'a mut dyn Write,
    part: Part,
}

impl TakeTables for Lines<'_> {
    type Error = Error;

    fn events<T: Table>(&mut self, rows: &Store<T>) -> Result<()> {
        if self.part == Part::Events {
            for chunk in rows.chunks() {
                self.rows::<T>(&chunk?.to_batch(), None)?;
            }
        }
        Ok(())
    }

    fn dictionary<T: Table>(&mut self, rows: &T, first: Option<u32>) -> Result<()> {
        if self.part == Part::Dictionaries { self.rows::<T>(&rows.to_batch(), first) } else { Ok(()) }
    }
}

impl Lines<'_> {
    fn rows<T: Table>(&mut self, batch: &RecordBatch, first: Option<u32>) -> Result<()> {
        let columns: Vec<Column> = T::COLUMNS
            .iter()
            .zip(T::STRINGS)
            .zip(batch.columns())
            .map(|((doc, is_string), array)| Column::new(doc.name, doc.unit, *is_string, array.as_ref()))
            .collect::<Result<_>>()?;
        for row in 0..batch.num_rows() {
            write!(self.out, "{{\"table\":\"{}\"", T::NAME)?;
            if let Some(first) = first {
                write!(self.out, ",\"id\":{}", u64::from(first) + row as u64)?;
            }
            for column in &columns {
                write!(self.out, ",\"{}\":", column.name)?;
                column.write(row, self.trace, self.out)?;
            }
            self.out.write_all(b"}\n")?;
        }
        Ok(())
    }
}

/// How a column's numbers are spelled.
#[derive(Clone, Copy)]
enum Spelled {
    Number,
    /// `null` for this one.
    Unless(u64),
    Address,
    Text,
}

/// The numbers of a column.
enum Numbers<'a> {
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    I16(&'a [i16]),
}

struct Column<'a> {
    name: &'static str,
    spelled: Spelled,
    numbers: Numbers<'a>,
}

impl<'a> Column<'a> {
    fn new(name: &'static str, unit: &str, is_string: bool, array: &'a dyn Array) -> Result<Self> {
        let numbers = match array.data_type() {
            DataType::UInt8 => Numbers::U8(array.as_primitive::<UInt8Type>().values()),
            DataType::UInt16 => Numbers::U16(array.as_primitive::<UInt16Type>().values()),
            DataType::UInt32 => Numbers::U32(array.as_primitive::<UInt32Type>().values()),
            DataType::UInt64 => Numbers::U64(array.as_primitive::<UInt64Type>().values()),
            DataType::Int16 => Numbers::I16(array.as_primitive::<Int16Type>().values()),
            other => return Err(TraceError::Bug(format!("columns of type {other} are not exported")).into()),
        };
        let spelled = match unit {
            _ if is_string => Spelled::Text,
            "address" => Spelled::Address,
            "cpu" => Spelled::Unless(Cpu::NONE.0.into()),
            "thread" => Spelled::Unless(ThreadIdx::NONE.0.into()),
            "stack" => Spelled::Unless(StackId::NONE.0.into()),
            "lock" => Spelled::Unless(LockId::NONE.0.into()),
            _ => Spelled::Number,
        };
        Ok(Column { name, spelled, numbers })
    }

    fn write(&self, row: usize, trace: &Trace, out: &mut dyn Write) -> Result<()> {
        let number = match self.numbers {
            Numbers::U8(n) => n[row].into(),
            Numbers::U16(n) => n[row].into(),
            Numbers::U32(n) => n[row].into(),
            Numbers::U64(n) => n[row],
            Numbers::I16(n) => return Ok(write!(out, "{}", n[row])?),
        };
        match self.spelled {
            Spelled::Unless(none) if number == none => out.write_all(b"null")?,
            Spelled::Number | Spelled::Unless(_) => write!(out, "{number}")?,
            Spelled::Address => write!(out, "\"{number:#x}\"")?,
            Spelled::Text => serde_json::to_writer(out, trace.text(StringId(number as u32)))?,
        }
        Ok(())
    }
}
