//! The fields of a record's body, one after the other.

use crate::bytes::Cursor;

/// Reads fields; pointers have the width of the machine that logged them.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    rest: Cursor<'a>,
    wide: bool,
}

impl<'a> Fields<'a> {
    /// Of a body.
    pub fn new(body: &'a [u8], wide: bool) -> Self {
        Fields { rest: Cursor::new(body), wide }
    }

    /// Leaves out `len` bytes.
    pub fn skip(&mut self, len: usize) -> Option<()> {
        self.rest.take(len as u64).map(|_| ())
    }

    /// Leaves out `count` pointers.
    pub fn skip_pointers(&mut self, count: usize) -> Option<()> {
        self.skip(count * if self.wide { 8 } else { 4 })
    }

    /// A byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.rest.u8()
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.rest.u32()
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.rest.u64()
    }

    /// A pointer.
    pub fn pointer(&mut self) -> Option<u64> {
        if self.wide { self.u64() } else { self.u32().map(u64::from) }
    }

    /// Sixteen bytes.
    pub fn guid(&mut self) -> Option<[u8; 16]> {
        self.rest.take(16)?.try_into().ok()
    }

    /// Text of one byte a character, up to NUL or the end.
    pub fn text(&mut self) -> String {
        let rest = self.rest.rest();
        let len = rest.iter().position(|&b| b == 0).unwrap_or(rest.len());
        let text = self.rest.take(len as u64).map(|t| String::from_utf8_lossy(t).into_owned());
        self.rest.u8();
        text.unwrap_or_default()
    }

    /// Text of two bytes a character, up to NUL or the end.
    pub fn wide_text(&mut self) -> String {
        let (units, _) = self.rest.rest().as_chunks::<2>();
        let units = units.iter().map(|unit| u16::from_le_bytes(*unit)).take_while(|&unit| unit != 0);
        let text: String = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        let len = 2 * (text.encode_utf16().count() + 1);
        let len = len.min(self.rest.rest().len());
        self.rest.take(len as u64);
        text
    }

    /// Leaves out a security identifier: four bytes of nothing, or two pointers and its authorities.
    pub fn skip_sid(&mut self) -> Option<()> {
        let mut ahead = *self;
        if ahead.u32()? == 0 {
            *self = ahead;
            return Some(());
        }
        self.skip_pointers(2)?;
        let _revision = self.u8()?;
        let authorities = usize::from(self.u8()?);
        self.skip(6 + 4 * authorities)
    }
}
