//! Reads pieces of the file; no length that it states is believed.

use std::io::{self, SeekFrom};

use super::Read;
use crate::bytes::Cursor;
use crate::input::ReadSeek;

/// Descriptions of a machine are a few MiB; what claims to be larger than this is damage.
const LARGEST_SECTION: u64 = 256 << 20;

/// What is wrong, and where.
#[derive(Debug)]
pub struct Damage {
    /// Offset in the file.
    pub at: u64,
    /// The sentence.
    pub what: String,
}

/// How the file was written.
#[derive(Debug)]
pub struct Head {
    /// The layout's version.
    pub version: u32,
    /// Whether it comes from a machine of the other byte order.
    pub big_endian: bool,
    /// Bytes of a `long` of that machine: 4 or 8.
    pub long: u8,
    /// Bytes of a page of its ring buffers.
    pub page_size: u32,
}

/// A file that is read from front to back, with jumps.
pub struct File {
    from: Box<dyn ReadSeek>,
    at: u64,
    len: u64,
}

impl File {
    /// At the file's beginning.
    pub fn new(mut from: Box<dyn ReadSeek>) -> io::Result<Self> {
        let len = from.seek(SeekFrom::End(0))?;
        from.seek(SeekFrom::Start(0))?;
        Ok(File { from, at: 0, len })
    }

    /// How long it is.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Where the next byte is read.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Goes on at `at`.
    pub fn jump(&mut self, at: u64) -> Result<(), Damage> {
        if at > self.len {
            return Err(Damage { at, what: format!("the file has only {} bytes", self.len) });
        }
        self.from.seek(SeekFrom::Start(at)).map_err(|e| Damage { at, what: e.to_string() })?;
        self.at = at;
        Ok(())
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: u64) -> Result<Vec<u8>, Damage> {
        let left = self.len - self.at;
        if len > left || len > LARGEST_SECTION {
            return Err(self.damage(format!("expected {len} bytes, but {left} are left")));
        }
        let mut bytes = vec![0; len as usize];
        self.from.read_exact(&mut bytes).map_err(|e| self.damage(e.to_string()))?;
        self.at += len;
        Ok(bytes)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        let bytes = self.take(N as u64)?;
        Ok(bytes.first_chunk().copied().unwrap_or([0; N]))
    }

    /// The next `u32`.
    pub fn u32(&mut self) -> Result<u32, Damage> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next `u64`.
    pub fn u64(&mut self) -> Result<u64, Damage> {
        self.array().map(u64::from_le_bytes)
    }

    /// The next text, which ends with a NUL.
    pub fn c_string(&mut self) -> Result<String, Damage> {
        const LONGEST: usize = 4096;
        let mut text = Vec::new();
        loop {
            match self.array::<1>()?[0] {
                0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
                _ if text.len() == LONGEST => return Err(self.damage("expected a short text here".to_owned())),
                byte => text.push(byte),
            }
        }
    }

    /// What is wrong here.
    pub fn damage(&self, what: String) -> Damage {
        Damage { at: self.at, what }
    }

    /// What follows the file's magic of `magic` bytes.
    pub fn take_head(&mut self, magic: u64) -> Result<Head, Damage> {
        self.jump(magic)?;
        let version = self.c_string()?;
        let version = version.parse().map_err(|_| self.damage(format!("expected a version, found `{version}`")))?;
        let [big_endian, long] = self.array()?;
        let page_size = self.u32()?;
        // The other byte order is told of before anything else is.
        if big_endian == 0 && !(matches!(long, 4 | 8) && (1 << 10..=1 << 24).contains(&page_size)) {
            return Err(self.damage(format!("pages of {page_size} bytes with words of {long} are not plausible")));
        }
        Ok(Head { version, big_endian: big_endian != 0, long, page_size })
    }
}

/// Reads `what` from a section that is in memory.
pub fn expect<T>(found: Option<T>, at: u64, what: &str) -> Result<T, Damage> {
    found.ok_or_else(|| Damage { at, what: format!("{what} is cut off") })
}

/// A text of `len` bytes.
pub fn text_of(c: &mut Cursor, len: u64) -> Option<String> {
    c.take(len).map(crate::bytes::text)
}
