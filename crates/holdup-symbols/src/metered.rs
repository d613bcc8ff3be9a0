//! [`Metered`]: a reader of DWARF at whose reads a [`Meter`] is asked whether to go on.
//!
//! Debug information is a set of programs: a few bytes can name the same megabytes a thousand times, and every row or
//! entry is some read. So a bound on reads, and on what may stay in memory after each, bounds what they can do.

use std::borrow::Cow;
use std::sync::Arc;

use gimli::{Error, Reader, ReaderOffsetId, Result};

use crate::meter::Meter;

/// A reader whose reads are counted.
#[derive(Debug, Clone)]
pub(crate) struct Metered<R> {
    inner: R,
    meter: Arc<Meter>,
    /// Bytes that may stay in memory after one read.
    weight: u64,
}

impl<R: Reader<Offset = usize>> Metered<R> {
    pub fn new(inner: R, meter: &Arc<Meter>, weight: u64) -> Metered<R> {
        Metered { inner, meter: meter.clone(), weight }
    }

    fn asked(&self, weight: u64) -> Result<()> {
        // The error of a file that ends too early: it seems to end here.
        if self.meter.read(weight) { Ok(()) } else { Err(Error::UnexpectedEof(self.inner.offset_id())) }
    }
}

impl<R: Reader<Offset = usize>> Reader for Metered<R> {
    type Endian = R::Endian;
    type Offset = usize;

    fn endian(&self) -> R::Endian {
        self.inner.endian()
    }

    fn len(&self) -> usize {
        self.inner.len()
    }

    fn empty(&mut self) {
        self.inner.empty();
    }

    fn truncate(&mut self, len: usize) -> Result<()> {
        self.inner.truncate(len)
    }

    fn offset_from(&self, base: &Self) -> usize {
        self.inner.offset_from(&base.inner)
    }

    fn offset_id(&self) -> ReaderOffsetId {
        self.inner.offset_id()
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        self.inner.lookup_offset_id(id)
    }

    fn find(&self, byte: u8) -> Result<usize> {
        // A string without an end is searched through again and again: each part counts.
        let found = self.inner.find(byte)?;
        (0..found / 256).try_for_each(|_| self.asked(0))?;
        Ok(found)
    }

    fn skip(&mut self, len: usize) -> Result<()> {
        self.asked(0)?;
        self.inner.skip(len)
    }

    fn split(&mut self, len: usize) -> Result<Self> {
        let inner = self.inner.split(len)?;
        Ok(Metered { inner, meter: self.meter.clone(), weight: self.weight })
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        self.inner.to_slice()
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        self.asked(self.len() as u64)?;
        self.inner.to_string()
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        // Who asks keeps it: the paths of a line table.
        self.asked(self.len() as u64)?;
        self.inner.to_string_lossy()
    }

    fn read_slice(&mut self, buf: &mut [u8]) -> Result<()> {
        self.asked(self.weight)?;
        self.inner.read_slice(buf)
    }
}
