//! Where a table's rows live: in memory by chunks, or in an Arrow file of which one batch at a time is read.

use std::borrow::Cow;
use std::io;

use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};

use crate::arrow::{ArrowReader, RawBatch, Section, guarded, open_arrow};
use crate::{Error, Result, Table};

/// Rows in one batch: bounds what a reader holds in memory.
pub(crate) const BATCH_ROWS: usize = 1 << 16;

/// All rows of one table.
#[derive(Debug, Clone)]
pub struct Store<T> {
    chunks: Vec<T>,
    file: Option<Section>,
    rows: u64,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Store { chunks: Vec::new(), file: None, rows: 0 }
    }
}

impl<T: Table> Store<T> {
    /// How many rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The chunks in order. A stored table is read one batch at a time.
    pub fn chunks(&self) -> Chunks<'_, T> {
        let (batches, error) = match self.batches() {
            Ok(batches) => (Some(batches), None),
            Err(e) => (None, Some(e)),
        };
        Chunks { batches, error, next: 0 }
    }

    /// The chunks by number, in any order and from several threads.
    ///
    /// # Errors
    /// If the stored table is damaged.
    pub fn batches(&self) -> Result<Batches<'_, T>> {
        let file = self.file.clone().map(open_arrow).transpose()?;
        Ok(Batches { memory: &self.chunks, file, rows: self.rows })
    }

    /// Iterates over all rows.
    pub fn iter(&self) -> impl Iterator<Item = Result<T::Row>> + '_ {
        self.chunks().flat_map(|chunk| {
            let (chunk, error) = match chunk {
                Ok(chunk) => (Some(chunk), None),
                Err(e) => (None, Some(Err(e))),
            };
            let rows = chunk.into_iter().flat_map(|c| (0..c.len()).map(move |i| Ok(c.row(i))));
            rows.chain(error)
        })
    }

    /// All rows as one table. For dictionaries, which have to fit in memory.
    pub fn load(&self) -> Result<T> {
        let mut all = T::default();
        for chunk in self.chunks() {
            let chunk = chunk?;
            if all.is_empty() {
                all = chunk.into_owned();
            } else {
                chunk.rows().for_each(|r| all.push(r));
            }
        }
        Ok(all)
    }

    /// Brings all rows into memory.
    pub(crate) fn bring(&mut self) -> Result<()> {
        if self.file.is_some() {
            self.chunks = self.chunks().map(|chunk| chunk.map(Cow::into_owned)).collect::<Result<_>>()?;
            self.file = None;
        }
        Ok(())
    }

    /// Shows `to` the ids in the rows that are in memory.
    pub(crate) fn refer(&mut self, to: &mut dyn crate::Refer) {
        self.chunks.iter_mut().for_each(|chunk| chunk.refer(to));
    }

    pub(crate) fn from_section(section: Section, rows: u64) -> Self {
        Store { chunks: Vec::new(), file: Some(section), rows }
    }

    pub(crate) fn from_chunks(chunks: Vec<T>, rows: u64) -> Self {
        Store { chunks, file: None, rows }
    }

    pub(crate) fn from_table(table: T) -> Self {
        let rows = table.len() as u64;
        Store { chunks: vec![table], file: None, rows }
    }

    pub(crate) fn section(&self) -> Option<Section> {
        self.file.clone()
    }
}

/// The chunks of a [`Store`] by number.
pub struct Batches<'a, T> {
    memory: &'a [T],
    file: Option<ArrowReader>,
    rows: u64,
}

impl<'a, T: Table> Batches<'a, T> {
    /// How many rows they have together, by the table's own account.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.file.as_ref().map_or(self.memory.len(), ArrowReader::len)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The chunk with this number; `None` behind the last. A stored one is read and decoded anew each time.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn get(&self, index: usize) -> Result<Option<Cow<'a, T>>> {
        self.get_into(index, &mut RawBatch::default(), None)
    }

    /// The same, in the memory of an older chunk and of what it was read with.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn get_into(&self, index: usize, raw: &mut RawBatch, memory: Option<T>) -> Result<Option<Cow<'a, T>>> {
        let Some(file) = &self.file else { return Ok(self.memory.get(index).map(Cow::Borrowed)) };
        let mut table = memory.unwrap_or_default();
        table.clear();
        let found = guarded(T::NAME, || file.read_raw(index, raw))?;
        if found { table.fill(file, raw).map(|()| Some(Cow::Owned(table))) } else { Ok(None) }
    }
}

/// Iterator over the chunks of a [`Store`].
pub struct Chunks<'a, T> {
    batches: Option<Batches<'a, T>>,
    error: Option<Error>,
    next: usize,
}

impl<'a, T: Table> Iterator for Chunks<'a, T> {
    type Item = Result<Cow<'a, T>>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(e) = self.error.take() {
            return Some(Err(e));
        }
        let chunk = self.batches.as_ref()?.get(self.next).transpose()?;
        self.next += 1;
        if chunk.is_err() {
            self.batches = None;
        }
        Some(chunk)
    }
}

pub(crate) fn arrow_writer<T: Table, W: io::Write>(to: W) -> Result<FileWriter<W>, arrow_schema::ArrowError> {
    arrow_writer_packed::<T, W>(to, true)
}

/// One whose batches are packed with lz4, or not: who packs the whole file packs better what is not packed yet.
pub(crate) fn arrow_writer_packed<T: Table, W: io::Write>(
    to: W,
    packed: bool,
) -> Result<FileWriter<W>, arrow_schema::ArrowError> {
    let how = packed.then_some(CompressionType::LZ4_FRAME);
    FileWriter::try_new_with_options(to, &T::schema(), IpcWriteOptions::default().try_with_compression(how)?)
}

pub(crate) fn write_error(e: impl std::fmt::Display) -> Error {
    Error::Input(format!("writing a table: {e}; is the disk full?"))
}
