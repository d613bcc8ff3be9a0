//! Writing a `.holdup` file.

use std::io::{self, Seek, Write};
use std::sync::Arc;
#[cfg(unix)]
use std::{io::BufWriter, path::Path};

use arrow_array::{RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema};
#[cfg(unix)]
use holdup_base::{Output, output::Readers};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::event_tables::TakeTables;
use crate::store::{arrow_writer_packed, write_error};
use crate::{Error, Result, Store, Table, Trace};

/// Writes `trace` to `path`, which appears only when it is complete, for its owner alone.
#[cfg(unix)]
pub fn write(trace: &Trace, path: &Path) -> Result<()> {
    write_to(trace, create(path)?)
}

/// Prepares to write a trace to `path`: fails now with what would make [`write_to`] fail later. Nothing is there, or
/// changed, until then.
#[cfg(unix)]
pub fn create(path: &Path) -> Result<Output> {
    let output = Output::create(path, Readers::Owner).map_err(|e| Error::Input(e.to_string()))?;
    if output.is_stream() {
        return Err(Error::input(path, "is no file: a trace is not written from beginning to end, and needs one"));
    }
    Ok(output)
}

/// Writes `trace` as the whole of `output`.
#[cfg(unix)]
pub fn write_to(trace: &Trace, output: Output) -> Result<()> {
    let mut zip = ZipWriter::new(BufWriter::with_capacity(1 << 20, output));
    write_members(trace, &mut zip, true)?;
    let output = zip.finish().map_err(write_error)?.into_inner().map_err(write_error)?;
    output.commit().map_err(|e| Error::Input(e.to_string()))
}

/// The bytes of `trace` as a `.holdup` file. Without `packed` its tables in memory are not compressed: for who compresses the whole.
pub fn write_memory(trace: &Trace, packed: bool) -> Result<Vec<u8>> {
    let mut zip = ZipWriter::new(io::Cursor::new(Vec::new()));
    write_members(trace, &mut zip, packed)?;
    Ok(zip.finish().map_err(write_error)?.into_inner())
}

fn write_members<W: Write + Seek>(trace: &Trace, zip: &mut ZipWriter<W>, packed: bool) -> Result<()> {
    start(zip, "meta.json")?;
    let meta = crate::Meta { rows: trace.row_counts(), version: super::VERSION, ..trace.meta.clone() };
    serde_json::to_writer_pretty(&mut *zip, &meta).map_err(write_error)?;
    trace.tables(&mut Zipped { zip, packed })?;
    strings(zip, trace)
}

fn start<W: Write + Seek>(zip: &mut ZipWriter<W>, name: &str) -> Result<()> {
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    zip.start_file(name, options).map_err(write_error)
}

/// Where the tables become members.
struct Zipped<'a, W: Write + Seek> {
    zip: &'a mut ZipWriter<W>,
    packed: bool,
}

impl<W: Write + Seek> TakeTables for Zipped<'_, W> {
    type Error = Error;

    fn events<T: Table>(&mut self, rows: &Store<T>) -> Result<()> {
        let zip = &mut *self.zip;
        start(zip, &format!("{}.arrow", T::NAME))?;
        if let Some(mut section) = rows.section() {
            io::copy(&mut section, zip).map_err(write_error)?;
            return Ok(());
        }
        let mut writer = arrow_writer_packed::<T, _>(zip, self.packed).map_err(write_error)?;
        for chunk in rows.chunks() {
            writer.write(&chunk?.to_batch()).map_err(write_error)?;
        }
        writer.finish().map_err(write_error)
    }

    fn dictionary<T: Table>(&mut self, rows: &T, _: Option<u32>) -> Result<()> {
        start(self.zip, &format!("{}.arrow", T::NAME))?;
        let mut writer = arrow_writer_packed::<T, _>(&mut *self.zip, self.packed).map_err(write_error)?;
        writer.write(&rows.to_batch()).map_err(write_error)?;
        writer.finish().map_err(write_error)
    }
}

fn strings<W: Write + Seek>(zip: &mut ZipWriter<W>, trace: &Trace) -> Result<()> {
    start(zip, "string.arrow")?;
    let schema = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8, false)]));
    let mut writer = FileWriter::try_new(zip, &schema).map_err(write_error)?;
    let texts: Vec<&str> = trace.strings.iter().collect();
    for part in texts.chunks(1 << 14) {
        let array = Arc::new(StringArray::from_iter_values(part));
        let batch = RecordBatch::try_new(schema.clone(), vec![array]).map_err(write_error)?;
        writer.write(&batch).map_err(write_error)?;
    }
    writer.finish().map_err(write_error)
}
