//! Reads a table row by row, one chunk in memory at a time, from any place on.

use std::borrow::Cow;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::Scope;

use holdup_trace::tables::{Futexes, KernelLocks, Samples, Switches, Waits, Wakes};
use holdup_trace::{Batches, RawBatch, Result, Table, Timestamp};

/// A table in time order.
pub(super) trait Timed: Table {
    /// Its first column.
    fn times(&self) -> &[Timestamp];
}

macro_rules! timed {
    ($($table:ty),+) => {
        $(impl Timed for $table {
            fn times(&self) -> &[Timestamp] { &self.t }
        })+
    };
}
timed!(Switches, Wakes, Samples, Waits, Futexes, KernelLocks);

/// A place in a table: the number of the chunk, and the row in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    chunk: usize,
    row: usize,
}

/// Chunks decoded ahead by a thread of their own: how many at most.
const AHEAD: usize = 2;

enum Source<'a, T: Table> {
    /// With the room to unpack in.
    Here(&'a Batches<'a, T>, Box<RawBatch>),
    /// Chunks come here, and their memory goes back there.
    Ahead(Receiver<Result<Option<Cow<'a, T>>>>, Sender<T>),
}

/// A position in a table.
pub(super) struct Cursor<'a, T: Timed> {
    source: Source<'a, T>,
    chunk: Option<Cow<'a, T>>,
    at: Place,
    next: u64,
}

impl<'a, T: Timed> Cursor<'a, T> {
    /// At `place` of `batches`.
    pub(super) fn new(batches: &'a Batches<'a, T>, place: Place) -> Result<Self> {
        Self::open(Source::Here(batches, Box::default()), place)
    }

    /// At the beginning, with a thread that decodes what comes next.
    pub(super) fn ahead<'s>(batches: &'a Batches<'a, T>, scope: &'s Scope<'s, '_>) -> Result<Self>
    where
        'a: 's,
        T: Sync,
    {
        let (sender, receiver) = sync_channel(AHEAD);
        let (back, used) = channel();
        scope.spawn(move || {
            let (mut index, mut raw) = (0, RawBatch::default());
            // An error and the end are the last that is sent; who does not want more hangs up.
            loop {
                let chunk = batches.get_into(index, &mut raw, used.try_recv().ok());
                let last = !matches!(chunk, Ok(Some(_)));
                if sender.send(chunk).is_err() || last {
                    return;
                }
                index += 1;
            }
        });
        Self::open(Source::Ahead(receiver, back), Place::default())
    }

    fn open(source: Source<'a, T>, place: Place) -> Result<Self> {
        let mut cursor = Cursor { source, chunk: None, at: place, next: u64::MAX };
        cursor.load()?;
        Ok(cursor)
    }

    /// Goes to `place`, back or on; within a chunk it is for nothing. Only where chunks are not decoded ahead.
    pub(super) fn seek(&mut self, place: Place) -> Result<()> {
        let here = self.chunk.as_ref().filter(|_| place.chunk == self.at.chunk);
        let next = here.and_then(|chunk| chunk.times().get(place.row));
        self.at = place;
        match next {
            Some(t) => {
                self.next = t.nanos();
                Ok(())
            }
            None => self.load(),
        }
    }

    /// The time of the current row in nanoseconds; the greatest value at the end.
    #[inline]
    pub(super) fn time(&self) -> u64 {
        self.next
    }

    /// Where it is.
    pub(super) fn place(&self) -> Place {
        self.at
    }

    /// Whether the current row is the first of its chunk.
    pub(super) fn is_at_chunk(&self) -> bool {
        self.at.row == 0
    }

    /// The current row, and moves on.
    #[inline]
    pub(super) fn take(&mut self) -> Result<Option<T::Row>> {
        let Some(chunk) = &self.chunk else { return Ok(None) };
        let row = chunk.row(self.at.row);
        self.at.row += 1;
        match chunk.times().get(self.at.row) {
            Some(t) => self.next = t.nanos(),
            None => {
                self.at = Place { chunk: self.at.chunk + 1, row: 0 };
                self.load()?;
            }
        }
        Ok(Some(row))
    }

    /// Decodes the chunk at the current place; skips empty ones.
    fn load(&mut self) -> Result<()> {
        loop {
            let memory = match self.chunk.take() {
                Some(Cow::Owned(table)) => Some(table),
                _ => None,
            };
            self.chunk = match &mut self.source {
                Source::Here(batches, raw) => batches.get_into(self.at.chunk, raw, memory)?,
                Source::Ahead(receiver, back) => {
                    // The thread may be done: then nobody needs the memory.
                    memory.into_iter().for_each(|table| drop(back.send(table)));
                    // It sends all it has; a closed channel is the end.
                    receiver.recv().unwrap_or(Ok(None))?
                }
            };
            let Some(chunk) = &self.chunk else {
                self.next = u64::MAX;
                return Ok(());
            };
            if let Some(t) = chunk.times().get(self.at.row) {
                self.next = t.nanos();
                return Ok(());
            }
            self.at = Place { chunk: self.at.chunk + 1, row: 0 };
        }
    }
}
