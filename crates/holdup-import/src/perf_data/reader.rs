//! Cuts a stream of bytes into records, through one buffer that is used over and over.

use std::io::{self, Read};

use crate::bytes::{u16_at, u32_at};

/// Read at once. Larger chunks fall out of the cache before they are decoded.
const CHUNK: usize = 1 << 18;
/// Bytes of a record's header: type, misc, size.
pub const RECORD_HEADER: usize = 8;

/// One record.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// `PERF_RECORD_*`.
    pub kind: u32,
    /// Flags by kind.
    pub misc: u16,
    /// What follows the header.
    pub body: &'a [u8],
}

/// Why there is no next record.
#[derive(Debug)]
pub enum Stop {
    /// The input ended inside a record that claims this many bytes.
    Cut(usize),
    /// A record claims fewer bytes than its header has.
    BadSize(u16),
    /// The input failed.
    Io(io::Error),
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Cut(size) => write!(f, "the input ends inside a record of {size} bytes"),
            Stop::BadSize(size) => write!(f, "a record claims {size} bytes, at least {RECORD_HEADER} expected"),
            Stop::Io(e) => write!(f, "reading failed: {e}"),
        }
    }
}

/// The record at the beginning of `bytes` with its size; `Ok(None)` if more bytes are needed.
#[inline]
pub fn first_record(bytes: &[u8]) -> Result<Option<(Record<'_>, usize)>, Stop> {
    let (Some(kind), Some(misc), Some(size)) = (u32_at(bytes, 0), u16_at(bytes, 4), u16_at(bytes, 6)) else {
        return Ok(None);
    };
    if usize::from(size) < RECORD_HEADER {
        return Err(Stop::BadSize(size));
    }
    let record = bytes.get(RECORD_HEADER..size.into());
    Ok(record.map(|body| (Record { kind, misc, body }, size.into())))
}

/// Records from a stream.
pub struct Records<R> {
    from: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
}

impl<R: Read> Records<R> {
    /// Records of `from`, whose first byte is byte `offset` of the file.
    pub fn new(from: R, offset: u64) -> Self {
        Records { from, buffer: vec![0; CHUNK], start: 0, end: 0, offset }
    }

    /// Where in the file the next record begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next record, or `None` at the end.
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Stop> {
        let complete = |bytes: &[u8]| Ok(first_record(bytes)?.map(|(_, size)| size));
        let size = match complete(&self.buffer[self.start..self.end])? {
            Some(size) => size,
            None => {
                self.fill().map_err(Stop::Io)?;
                match complete(&self.buffer[self.start..self.end])? {
                    Some(size) => size,
                    None if self.start == self.end => return Ok(None),
                    None => {
                        let claimed = u16_at(&self.buffer[self.start..self.end], 6);
                        return Err(Stop::Cut(claimed.unwrap_or(RECORD_HEADER as u16).into()));
                    }
                }
            }
        };
        let bytes = &self.buffer[self.start..self.start + size];
        self.start += size;
        self.offset += size as u64;
        Ok(first_record(bytes)?.map(|(record, _)| record))
    }

    /// Moves what is left to the buffer's beginning and fills up the rest.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < self.buffer.len() {
            match self.from.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// The next `len` bytes, which are no record. Never allocates much more than the input has.
    pub fn take(&mut self, len: u64) -> Result<Vec<u8>, Stop> {
        let mut bytes = Vec::new();
        self.each_part(len, |part| bytes.extend_from_slice(part))?;
        Ok(bytes)
    }

    /// Skips the next `len` bytes, which are no record.
    pub fn skip(&mut self, len: u64) -> Result<(), Stop> {
        self.each_part(len, |_| ())
    }

    fn each_part(&mut self, mut len: u64, mut each: impl FnMut(&[u8])) -> Result<(), Stop> {
        while len > 0 {
            if self.start == self.end {
                self.fill().map_err(Stop::Io)?;
                if self.start == self.end {
                    return Err(Stop::Cut(usize::try_from(len).unwrap_or(usize::MAX)));
                }
            }
            let part = usize::try_from(len).unwrap_or(usize::MAX).min(self.end - self.start);
            each(&self.buffer[self.start..self.start + part]);
            self.start += part;
            self.offset += part as u64;
            len -= part as u64;
        }
        Ok(())
    }
}
