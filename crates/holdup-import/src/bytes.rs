//! Little-endian integers at offsets that a file gave, so that may lie anywhere.

/// The `u16` at `at`.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The `u32` at `at`.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The `u64` at `at`.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The text up to the first NUL or the end.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Reads one thing after the other.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// From the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Cursor { rest: bytes }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(len).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|b| b[0])
    }

    /// The next `u32`.
    pub fn u32(&mut self) -> Option<u32> {
        u32_at(self.take(4)?, 0)
    }

    /// The next `u64`.
    pub fn u64(&mut self) -> Option<u64> {
        u64_at(self.take(8)?, 0)
    }

    /// The bytes up to the next NUL, which is skipped.
    pub fn c_string(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|&b| b == 0)?;
        let text = self.take(end as u64)?;
        self.take(1)?;
        Some(text)
    }

    /// perf's string: its padded length as `u32`, then the padded text.
    pub fn string(&mut self) -> Option<String> {
        let len = self.u32()?;
        self.take(len.into()).map(text)
    }
}
