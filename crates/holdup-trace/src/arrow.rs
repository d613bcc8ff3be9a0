//! Arrow files, of which one batch at a time is read.

mod raw;
mod reader;

use std::io::{self, Read, Seek, SeekFrom};

use arrow_schema::ArrowError;

use crate::bytes::Bytes;
use crate::{Error, Result};
pub use raw::RawBatch;
pub use reader::ArrowReader;

/// A part of a file, read by position so that many readers can share one handle.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    file: Bytes,
    start: u64,
    len: u64,
    at: u64,
}

impl Section {
    pub(crate) fn new(file: Bytes, start: u64, len: u64) -> Self {
        Section { file, start, len, at: 0 }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// `length` bytes from `start` on, which the caller knows to be there.
    fn exactly(&mut self, start: u64, length: usize) -> io::Result<Vec<u8>> {
        self.seek(SeekFrom::Start(start))?;
        let mut bytes = vec![0; length];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl Read for Section {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let want = buf.len().min(usize::try_from(self.len.saturating_sub(self.at)).unwrap_or(usize::MAX));
        let got = self.file.read_at(&mut buf[..want], self.start + self.at)?;
        self.at += got as u64;
        Ok(got)
    }
}

impl Seek for Section {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        let target = match pos {
            SeekFrom::Start(n) => Some(n),
            SeekFrom::End(n) => self.len.checked_add_signed(n),
            SeekFrom::Current(n) => self.at.checked_add_signed(n),
        };
        self.at = target.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "seek before the start"))?;
        Ok(self.at)
    }
}

pub(crate) fn open_arrow(section: Section) -> Result<ArrowReader> {
    guarded("opening", || ArrowReader::new(section))
}

thread_local! {
    /// Whether this thread runs a decoder whose panics are caught.
    static GUARDED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Keeps the panics that [`guarded`] catches off standard error.
fn silence() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                usual(info);
            }
        }));
    });
}

/// Runs an Arrow decoder, whose own checks of damaged buffers end in a panic here and there.
pub(crate) fn guarded<R>(what: &str, f: impl FnOnce() -> Result<R, ArrowError>) -> Result<R> {
    silence();
    GUARDED.set(true);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    GUARDED.set(false);
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(e)) => Err(Error::Input(format!("Arrow table ({what}): {e}"))),
        Err(_) => Err(Error::Input(format!("Arrow table ({what}): damaged beyond decoding"))),
    }
}

fn bad(what: impl Into<String>) -> ArrowError {
    ArrowError::ParseError(what.into())
}
