//! Reads a table row by row, one chunk in memory at a time.

use std::borrow::Cow;

use holdup_trace::{Result, Store, Table, Timestamp};

/// A position in a table.
pub(crate) struct Cursor<'a, T: Table> {
    chunks: holdup_trace::Chunks<'a, T>,
    chunk: Option<Cow<'a, T>>,
    row: usize,
    time: fn(&T, usize) -> Timestamp,
    next: u64,
}

impl<'a, T: Table> Cursor<'a, T> {
    pub(crate) fn new(store: &'a Store<T>, time: fn(&T, usize) -> Timestamp) -> Result<Self> {
        let mut cursor = Cursor { chunks: store.chunks(), chunk: None, row: 0, time, next: 0 };
        cursor.load()?;
        Ok(cursor)
    }

    /// The time of the current row in nanoseconds; the greatest value at the end.
    pub(crate) fn time(&self) -> u64 {
        self.next
    }

    /// The current row, and moves on.
    pub(crate) fn take(&mut self) -> Result<Option<T::Row>> {
        let Some(chunk) = &self.chunk else { return Ok(None) };
        let row = chunk.row(self.row);
        self.row += 1;
        if self.row < chunk.len() {
            self.next = (self.time)(chunk, self.row).nanos();
        } else {
            self.load()?;
        }
        Ok(Some(row))
    }

    fn load(&mut self) -> Result<()> {
        self.row = 0;
        loop {
            self.chunk = self.chunks.next().transpose()?;
            match &self.chunk {
                Some(chunk) if chunk.is_empty() => {}
                Some(chunk) => {
                    self.next = (self.time)(chunk, 0).nanos();
                    return Ok(());
                }
                None => {
                    self.next = u64::MAX;
                    return Ok(());
                }
            }
        }
    }
}
