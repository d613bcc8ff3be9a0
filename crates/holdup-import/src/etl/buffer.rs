//! The buffers of an `.etl`: where they are, whose they are, and their records' bytes.

use std::io::{Read, Seek, SeekFrom};

use holdup_trace::{Error, Result};

use super::{huffman, xpress};
use crate::bytes::{u16_at, u32_at};
use crate::input::ReadSeek;

/// Bytes of a buffer's header.
pub const HEADER: usize = 72;
/// Windows allows buffers of 16 MB.
pub const LARGEST: u32 = 16 << 20;

/// `ETW_BUFFER_FLAG`.
mod flag {
    pub const EVENTS_LOST: u16 = 0x2;
    pub const BUFFER_LOST: u16 = 0x4;
    pub const PROC_INDEX: u16 = 0x20;
    pub const COMPRESSED: u16 = 0x40;
}

/// The buffer type of the one that begins the file.
pub const TYPE_HEADER: u16 = 4;

/// A buffer, as its header tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// Where it begins in the file.
    pub offset: u64,
    /// How many bytes it has there.
    size: u32,
    /// How many bytes of it are used, unpacked and with the header.
    used: u32,
    flags: u16,
    /// The CPU whose records it holds.
    pub cpu: u16,
    /// The session that wrote it: merged files hold several.
    pub logger: u16,
}

impl Buffer {
    /// From its header; `None` if that can't be one.
    pub fn parse(header: &[u8], offset: u64) -> Option<Buffer> {
        let (size, used) = (u32_at(header, 0)?, u32_at(header, 0x30)?);
        let flags = u16_at(header, 0x34)?;
        // Before Windows 8 the CPU was a byte, and its alignment the next one.
        let mask = if flags & flag::PROC_INDEX != 0 { u16::MAX } else { 0xff };
        let cpu = u16_at(header, 0x28)? & mask;
        let sound = (HEADER as u32..=LARGEST).contains(&size) && used <= LARGEST;
        sound.then_some(Buffer { offset, size, used, flags, cpu, logger: u16_at(header, 0x2a)? })
    }

    /// Where the next one begins.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.size)
    }

    /// Whether its records are packed.
    pub fn is_packed(&self) -> bool {
        self.flags & flag::COMPRESSED != 0
    }

    /// Whether Windows could not write events before or in this buffer.
    pub fn follows_loss(&self) -> bool {
        self.flags & (flag::EVENTS_LOST | flag::BUFFER_LOST) != 0
    }

    /// Bytes that its records take in memory.
    pub fn room(&self) -> usize {
        let whole = if self.is_packed() { self.used } else { self.used.min(self.size) };
        (whole as usize).saturating_sub(HEADER)
    }
}

/// Whether `head` begins an `.etl`: a header buffer, whose first record is the log's own.
pub fn is_etl(head: &[u8]) -> bool {
    let first = || {
        let buffer = Buffer::parse(head, 0)?;
        let kind = u16_at(head, 0x36)?;
        let record = head.get(HEADER..)?;
        let header_type = *record.get(2)?;
        let marked = *record.get(3)? & 0x80 != 0;
        let log = u16_at(record, 6)? == 0 && u16_at(record, 4)? as usize >= super::log_header::SMALLEST;
        Some(!buffer.is_packed() && kind == TYPE_HEADER && marked && matches!(header_type, 1 | 2) && log)
    };
    first().unwrap_or(false)
}

/// Why a buffer's records cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// The file ends in it.
    Cut,
    /// What is packed cannot be unpacked.
    Damaged,
}

/// Reads buffers from the file.
pub struct Loader {
    file: Box<dyn ReadSeek>,
    /// Bytes of the file.
    pub len: u64,
    at: u64,
    packed: Vec<u8>,
}

impl Loader {
    /// Of an open file.
    pub fn new(path: &std::path::Path, mut file: Box<dyn ReadSeek>) -> Result<Self> {
        let len = file.seek(SeekFrom::End(0)).map_err(|e| Error::input(path, format!("cannot be read: {e}")))?;
        Ok(Loader { file, len, at: len, packed: Vec::new() })
    }

    /// The buffer at `offset`: `Ok(None)` at the end, `Err` if there is no sound header.
    pub fn header(&mut self, offset: u64) -> Result<Option<Buffer>, ()> {
        if offset >= self.len {
            return Ok(None);
        }
        let mut header = Vec::with_capacity(HEADER);
        self.read(offset, HEADER, &mut header);
        Buffer::parse(&header, offset).map(Some).ok_or(())
    }

    /// Puts the records of a buffer into `to`. Where only a part can be had it is there, and the reason comes back.
    pub fn load(&mut self, buffer: &Buffer, to: &mut Vec<u8>) -> Result<(), Unread> {
        let from = buffer.offset + HEADER as u64;
        let size = buffer.room();
        if !buffer.is_packed() {
            self.read(from, size, to);
            return if to.len() < size { Err(Unread::Cut) } else { Ok(()) };
        }
        let mut packed = std::mem::take(&mut self.packed);
        let wanted = buffer.size as usize - HEADER;
        self.read(from, wanted, &mut packed);
        let cut = packed.len() < wanted;
        // Windows packs by plain LZ77. Nothing in the buffer tells of Huffman codes but that the other way fails.
        let unpacked = (xpress::unpack(&packed, size, to) && begins_with_record(to))
            || (huffman::unpack(&packed, size, to) && begins_with_record(to));
        self.packed = packed;
        match unpacked {
            true => return Ok(()),
            false => to.clear(),
        }
        Err(if cut { Unread::Cut } else { Unread::Damaged })
    }

    /// Up to `len` bytes from `offset`; fewer where the file ends or cannot be read.
    fn read(&mut self, offset: u64, len: usize, to: &mut Vec<u8>) {
        to.clear();
        if self.at != offset && self.file.seek(SeekFrom::Start(offset)).is_err() {
            return;
        }
        // What cannot be read is missing like what is not there, and is counted so.
        drop(self.file.by_ref().take(len as u64).read_to_end(to));
        self.at = offset + to.len() as u64;
    }
}

fn begins_with_record(bytes: &[u8]) -> bool {
    bytes.is_empty() || bytes.get(3).is_some_and(|flags| flags & 0x80 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(size: u32, used: u32, context: u16, flags: u16) -> Vec<u8> {
        let mut header = vec![0; HEADER];
        header[..4].copy_from_slice(&size.to_le_bytes());
        header[0x30..0x34].copy_from_slice(&used.to_le_bytes());
        header[0x28..0x2a].copy_from_slice(&context.to_le_bytes());
        header[0x34..0x36].copy_from_slice(&flags.to_le_bytes());
        header
    }

    #[test]
    fn the_cpu_is_a_byte_or_two() {
        let cpu = |flags| Buffer::parse(&header(1 << 16, 100, 2048 + 6, flags), 0).map(|b| b.cpu);
        assert_eq!((cpu(0), cpu(flag::PROC_INDEX)), (Some(6), Some(2054)));
    }

    #[test]
    fn sizes_are_bounded() {
        let room = |size, used, flags| Buffer::parse(&header(size, used, 0, flags), 0).map(|b| b.room());
        assert_eq!((room(71, 71, 0), room(LARGEST + 1, 0, 0), room(100, LARGEST + 1, 0)), (None, None, None));
        assert_eq!((room(100, 5000, 0), room(100, 5000, 0x40), room(100, 10, 0)), (Some(28), Some(4928), Some(0)));
    }
}
