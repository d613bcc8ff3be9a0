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

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use holdup_trace::{Meta, Store, Table, TakeTables, Trace};

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
        let fields = table.schema.fields().iter().zip(&table.strings);
        let columns = fields.map(|(field, is_string)| Column::new(field, *is_string)).collect::<Result<Vec<_>>>()?;
        let mut out = self.folder.file(&format!("{}.parquet", table.name))?;
        let mut file = File::new(self.trace, &columns, &mut *out)?;
        for batch in rows {
            file.append(&batch?)?;
        }
        file.finish(&facts(table, &columns))
    }
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
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
        .map_err(|e| holdup_trace::Error::Bug(format!("table {name}: {e}")).into())
}

/// What is told of a table by name: its meaning, that of its columns, and the schema as Arrow's readers take it.
fn facts(table: &OneTable, columns: &[Column]) -> Vec<(String, String)> {
    let fields: Vec<Arc<Field>> = columns.iter().map(|c| c.field.clone()).collect();
    let told = |field: &Field, what: &str| field.metadata().get(what).cloned().unwrap_or_default();
    let mut facts: Vec<(String, String)> = vec![("holdup.table".into(), table.doc.to_owned())];
    for field in &fields {
        let (unit, doc) = (told(field, "unit"), told(field, "doc"));
        facts.push((format!("holdup.column.{}", field.name()), format!("{unit}: {doc}")));
    }
    facts.push(("ARROW:schema".into(), arrow_schema(&Schema::new(fields))));
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
