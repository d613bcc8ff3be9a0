//! Collects a table's rows and seals them by batches, into memory or into an unnamed file.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_ipc::writer::FileWriter;

use crate::arrow::Section;
use crate::background::Background;
use crate::bytes::Bytes;
use crate::store::{BATCH_ROWS, arrow_writer, write_error};
use crate::{Error, Result, Store, Table};

/// Batches of a table that stay in memory where longer tables go to a file: three million rows, about 100 MB.
const KEPT: usize = 48;
/// Emptied batches that are kept for new rows.
const SPARE: usize = 3;

/// A table that is filled row by row.
pub(crate) struct Filler<T> {
    open: T,
    sealed: Vec<T>,
    rows: u64,
    spill: Option<(Arc<Spill<T>>, Background)>,
    overflow: Option<Overflow>,
}

/// Where a table goes that becomes too long for memory.
struct Overflow {
    directory: PathBuf,
    background: Background,
    /// More batches are too many.
    kept: usize,
}

/// The file that batches go to. They are packed and written beside what makes them: a third of the work of an import.
struct Spill<T> {
    file: Arc<File>,
    state: Mutex<State<T>>,
}

struct State<T> {
    writer: FileWriter<BufWriter<File>>,
    /// Written batches, emptied: the next ones need not grow, and touch no new memory.
    spare: Vec<T>,
    /// The first batch that could not be written.
    failed: Option<Error>,
}

impl<T: Table> Filler<T> {
    /// One that keeps all rows in memory.
    pub fn in_memory() -> Self {
        Filler { open: T::default(), sealed: Vec::new(), rows: 0, spill: None, overflow: None }
    }

    /// One that writes batches into `directory`, in the background.
    pub fn in_file(directory: &Path, background: Background) -> Result<Self> {
        let spill = Spill::open(directory).map_err(|e| spill_error(directory, e, "choose another output folder"))?;
        Ok(Filler { spill: Some((Arc::new(spill), background)), ..Self::in_memory() })
    }

    /// One that keeps rows in memory until they are too many, and writes all batches into `directory` then.
    pub fn overflowing(directory: &Path, background: Background) -> Self {
        let overflow = Overflow { directory: directory.to_owned(), background, kept: KEPT };
        Filler { overflow: Some(overflow), ..Self::in_memory() }
    }

    /// Appends a row. The error may be that of a batch before.
    #[inline]
    pub fn push(&mut self, row: T::Row) -> Result<()> {
        self.open.push(row);
        if self.open.len() >= BATCH_ROWS { self.next_batch() } else { Ok(()) }
    }

    #[cold]
    fn next_batch(&mut self) -> Result<()> {
        self.seal()?;
        // Columns that grow are copied and leave holes behind; this batch will hardly be shorter than the one before.
        self.open.reserve(BATCH_ROWS);
        Ok(())
    }

    fn seal(&mut self) -> Result<()> {
        let chunk = std::mem::take(&mut self.open);
        self.rows += chunk.len() as u64;
        match &self.spill {
            _ if chunk.is_empty() => {}
            None => {
                self.sealed.push(chunk);
                return self.check_length();
            }
            Some((spill, background)) => {
                let writing = spill.clone();
                background.run(move || writing.write(chunk));
                let mut state = spill.state();
                self.open = state.spare.pop().unwrap_or_default();
                if let Some(e) = state.failed.take() {
                    return Err(e);
                }
            }
        }
        Ok(())
    }

    /// Moves the table to a file if it has become too long for memory.
    fn check_length(&mut self) -> Result<()> {
        let Some(overflow) = self.overflow.take_if(|overflow| self.sealed.len() > overflow.kept) else { return Ok(()) };
        let Overflow { directory, background, .. } = overflow;
        let spill =
            Spill::open(&directory).map_err(|e| spill_error(&directory, e, "set TMPDIR to a folder with room"))?;
        let spill = Arc::new(spill);
        for chunk in self.sealed.drain(..) {
            let writing = spill.clone();
            background.run(move || writing.write(chunk));
        }
        self.spill = Some((spill, background));
        Ok(())
    }

    /// The complete table.
    pub fn finish(mut self) -> Result<Store<T>> {
        self.seal()?;
        let Some((spill, background)) = self.spill else {
            return Ok(Store::from_chunks(self.sealed, self.rows));
        };
        let ours = spill.clone();
        background.result(move || ours.finish()).unwrap_or_else(|| Err(write_error("its thread ended")))?;
        let len = spill.file.metadata().map_err(|e| Error::Input(format!("temporary table: {e}")))?.len();
        Ok(Store::from_section(Section::new(Bytes::File(spill.file.clone()), 0, len), self.rows))
    }
}

impl<T: Table> Spill<T> {
    fn open(directory: &Path) -> io::Result<Self> {
        let file = holdup_base::output::temporary(directory)?;
        let to = BufWriter::with_capacity(1 << 18, file.try_clone()?);
        let writer = arrow_writer::<T, _>(to).map_err(io::Error::other)?;
        let state = Mutex::new(State { writer, spare: Vec::new(), failed: None });
        Ok(Spill { file: Arc::new(file), state })
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        // What a panic left half done is a batch that fails its check when it is read.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, mut chunk: T) {
        let batch = chunk.to_batch();
        chunk.clear();
        let mut state = self.state();
        if state.failed.is_none() {
            state.failed = state.writer.write(&batch).map_err(write_error).err();
        }
        if state.spare.len() < SPARE {
            state.spare.push(chunk);
        }
    }

    fn finish(&self) -> Result<()> {
        let mut state = self.state();
        match state.failed.take() {
            Some(e) => Err(e),
            None => state.writer.finish().map_err(write_error),
        }
    }
}

fn spill_error(directory: &Path, e: impl std::fmt::Display, advice: &str) -> Error {
    Error::input(directory, format!("cannot hold temporary tables: {e}; {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{ThreadName, ThreadNames};
    use crate::{StringId, ThreadIdx, Timestamp};

    fn row(i: u32) -> ThreadName {
        ThreadName { t: Timestamp::from_nanos_since_start(i.into()), thread: ThreadIdx(i % 7), name: StringId(i % 11) }
    }

    #[test]
    fn rows_come_back_from_a_file_as_from_memory() {
        let folder = tempfile::tempdir().unwrap();
        let mut spilled = Filler::<ThreadNames>::in_file(folder.path(), Background::default()).unwrap();
        let mut kept = Filler::<ThreadNames>::in_memory();
        let count = BATCH_ROWS as u32 * 5 + 3;
        for i in 0..count {
            spilled.push(row(i)).unwrap();
            kept.push(row(i)).unwrap();
        }
        for table in [spilled.finish().unwrap(), kept.finish().unwrap()] {
            assert_eq!(table.rows(), u64::from(count));
            assert!(table.iter().map(|r| r.unwrap()).eq((0..count).map(row)));
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the file has no name");
    }

    #[test]
    fn a_table_that_becomes_too_long_moves_to_a_file() {
        let folder = tempfile::tempdir().unwrap();
        for (batches, is_in_file) in [(2, false), (5, true)] {
            let mut filler = Filler::<ThreadNames>::overflowing(folder.path(), Background::default());
            filler.overflow.as_mut().unwrap().kept = 3;
            let count = BATCH_ROWS as u32 * batches + 3;
            (0..count).for_each(|i| filler.push(row(i)).unwrap());
            let table = filler.finish().unwrap();
            assert_eq!((table.section().is_some(), table.rows()), (is_in_file, count.into()));
            assert!(table.iter().map(|r| r.unwrap()).eq((0..count).map(row)));
        }
    }

    #[test]
    fn a_table_that_is_too_long_needs_its_folder() {
        let mut filler = Filler::<ThreadNames>::overflowing(Path::new("/nowhere"), Background::default());
        filler.overflow.as_mut().unwrap().kept = 1;
        let pushed = (0..BATCH_ROWS as u32 * 3).try_for_each(|i| filler.push(row(i)));
        let error = pushed.expect_err("there is no such folder").to_string();
        assert!(error.contains("/nowhere") && error.contains("set TMPDIR"), "{error}");
    }

    #[test]
    fn a_batch_that_cannot_be_written_is_an_error() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let to = BufWriter::with_capacity(1 << 18, full.try_clone().unwrap());
        let writer = arrow_writer::<ThreadNames, _>(to).unwrap();
        let state = Mutex::new(State::<ThreadNames> { writer, spare: Vec::new(), failed: None });
        let spill = Arc::new(Spill { file: Arc::new(full), state });
        let mut filler = Filler { spill: Some((spill, Background::default())), ..Filler::in_memory() };
        let pushed = (0..BATCH_ROWS as u32 * 9).try_for_each(|i| filler.push(row(i)));
        let error = pushed.and_then(|()| filler.finish().map(drop)).expect_err("the device is full");
        assert!(error.to_string().contains("is the disk full?"), "{error}");
    }
}
