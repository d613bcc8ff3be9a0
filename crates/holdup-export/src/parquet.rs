//! All tables of a trace as Parquet files in a folder, one for each, and `meta.json` with the facts about the whole.
//!
//! Columns are those of `holdup info --schema`, with two differences for who has nothing but these files: a column that names a
//! string holds the string, and a dictionary whose rows other columns name has a column `id` in front. What columns mean, and
//! in which unit they are, is in the files: as metadata of Arrow's fields (`ARROW:schema`), and in plain text by column.
//!
//! The writer is our own: a few hundred lines for the one shape that a trace has (required integers and texts), where the crate
//! `parquet` makes the program 2.6 MB longer. Its format: <https://github.com/apache/parquet-format>. Memory is bounded by a row
//! group of a million rows, packed.

mod columns;
mod delta;
mod file;
mod thrift;

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use holdup_trace::{Meta, Store, StringId, Table, TakeTables, Trace};

use crate::{Error, Result};
use columns::Column;
use file::File;

/// Where the files go.
pub trait Folder {
    /// A new file of this name, which is complete when it was flushed.
    ///
    /// # Errors
    /// What the file system says.
    fn file(&mut self, name: &str) -> io::Result<Box<dyn Write>>;
}

/// Writes all tables of `trace`. O(rows).
///
/// # Errors
/// If a table is damaged, or a file takes no more.
pub fn write(trace: &Trace, folder: &mut dyn Folder) -> Result<()> {
    let mut meta = folder.file("meta.json")?;
    let facts = Meta { rows: trace.row_counts(), ..trace.meta.clone() };
    serde_json::to_writer_pretty(&mut meta, &facts)?;
    meta.write_all(b"\n")?;
    meta.flush()?;
    trace.tables(&mut Files { trace, folder })
}

struct Files<'a> {
    trace: &'a Trace,
    folder: &'a mut dyn Folder,
}

impl TakeTables for Files<'_> {
    type Error = Error;

    fn events<T: Table>(&mut self, rows: &Store<T>) -> Result<()> {
        let table = OneTable::of::<T>(T::schema());
        self.write(&table, &mut rows.chunks().map(|chunk| Ok(chunk?.to_batch())))
    }

    fn dictionary<T: Table>(&mut self, rows: &T, first: Option<u32>) -> Result<()> {
        let batch = rows.to_batch();
        let Some(first) = first else {
            return self.write(&OneTable::of::<T>(batch.schema()), &mut std::iter::once(Ok(batch)));
        };
        let batch = numbered(&batch, T::NAME, first)?;
        let mut table = OneTable::of::<T>(batch.schema());
        table.strings.insert(0, false);
        self.write(&table, &mut std::iter::once(Ok(batch)))
    }
}

/// A table in front of its rows.
struct OneTable {
    name: &'static str,
    doc: &'static str,
    schema: SchemaRef,
    /// By column: whether it names strings.
    strings: Vec<bool>,
}

impl OneTable {
    fn of<T: Table>(schema: SchemaRef) -> Self {
        OneTable { name: T::NAME, doc: T::DOC.trim(), schema, strings: T::STRINGS.to_vec() }
    }
}

impl Files<'_> {
    fn write(&mut self, table: &OneTable, rows: &mut dyn Iterator<Item = Result<RecordBatch>>) -> Result<()> {
        let shown = shown(table);
        let mut out = self.folder.file(&format!("{}.parquet", table.name))?;
        let rows = &mut rows.map(|batch| self.with_texts(&batch?, table, &shown));
        write_file(&shown, &facts(table.doc, &shown), rows, &mut *out)
    }

    /// The rows with strings where they have ids.
    fn with_texts(&self, rows: &RecordBatch, table: &OneTable, shown: &SchemaRef) -> Result<RecordBatch> {
        let columns = rows.columns().iter().zip(&table.strings).map(|(column, is_string)| match is_string {
            true => self.texts(column),
            false => column.clone(),
        });
        RecordBatch::try_new(shown.clone(), columns.collect()).map_err(|e| bug(table.name, &e))
    }

    fn texts(&self, ids: &ArrayRef) -> ArrayRef {
        let ids = ids.as_primitive::<UInt32Type>().values();
        Arc::new(StringArray::from_iter_values(ids.iter().map(|id| self.trace.text(StringId(*id)))))
    }
}

/// The columns as files have them: texts instead of ids.
fn shown(table: &OneTable) -> SchemaRef {
    let fields = table.schema.fields().iter().zip(&table.strings).map(|(field, is_string)| match is_string {
        true => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
        false => field.clone(),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Writes one table, with what else is told of it by name. O(rows), in the memory of a row group.
///
/// # Errors
/// If `out` takes no more, or a column has a type that no table has.
pub(crate) fn write_file(
    schema: &SchemaRef,
    facts: &[(String, String)],
    rows: &mut dyn Iterator<Item = Result<RecordBatch>>,
    out: &mut dyn Write,
) -> Result<()> {
    let columns = schema.fields().iter().map(Column::new).collect::<Result<Vec<_>>>()?;
    let mut file = File::new(&columns, out)?;
    for batch in rows {
        file.append(&batch?)?;
    }
    file.finish(facts)
}

fn bug(name: &str, error: &ArrowError) -> Error {
    holdup_trace::Error::Bug(format!("table {name}: {error}")).into()
}

/// The rows with their numbers in front.
fn numbered(rows: &RecordBatch, name: &str, first: u32) -> Result<RecordBatch> {
    let meaning = [("unit", name), ("doc", "Its number, as columns of other tables name it.")];
    let meaning = meaning.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let id = Field::new("id", DataType::UInt32, false).with_metadata(meaning);
    let mut fields: Vec<Arc<Field>> = vec![Arc::new(id)];
    fields.extend(rows.schema().fields().iter().cloned());
    let ids = UInt32Array::from_iter_values((0..rows.num_rows() as u32).map(|i| first.saturating_add(i)));
    let mut columns: Vec<ArrayRef> = vec![Arc::new(ids)];
    columns.extend(rows.columns().iter().cloned());
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(|e| bug(name, &e))
}

/// What is told of a table by name: its meaning, that of its columns, and the schema as Arrow's readers take it.
fn facts(doc: &str, schema: &Schema) -> Vec<(String, String)> {
    let told = |field: &Field, what: &str| field.metadata().get(what).cloned().unwrap_or_default();
    let mut facts: Vec<(String, String)> = vec![("holdup.table".into(), doc.to_owned())];
    for field in schema.fields() {
        let (unit, doc) = (told(field, "unit"), told(field, "doc"));
        facts.push((format!("holdup.column.{}", field.name()), format!("{unit}: {doc}")));
    }
    facts.push(("ARROW:schema".into(), arrow_schema(schema)));
    facts
}

/// An IPC message, as Arrow's readers of Parquet expect it.
fn arrow_schema(schema: &Schema) -> String {
    let options = IpcWriteOptions::default();
    let encoder = IpcDataGenerator::default();
    let message = encoder
        .schema_to_bytes_with_dictionary_tracker(schema, &mut DictionaryTracker::new(true), &options)
        .ipc_message;
    let mut bytes = vec![0xff; 4];
    bytes.extend_from_slice(&(message.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&message);
    STANDARD.encode(bytes)
}
