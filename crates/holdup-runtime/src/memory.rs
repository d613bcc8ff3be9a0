//! The memory of a live process.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// It can be read while the process lives.
#[derive(Debug)]
pub(crate) struct Memory(File);

impl Memory {
    pub(crate) fn of(pid: u32) -> Option<Memory> {
        File::open(format!("/proc/{pid}/mem")).ok().map(Memory)
    }

    /// Exactly `length` bytes.
    pub(crate) fn read(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.0.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    }

    /// As much of `bytes` as there is.
    pub(crate) fn read_some<'a>(&self, address: u64, bytes: &'a mut [u8]) -> Option<&'a [u8]> {
        let len = self.0.read_at(bytes, address).ok()?;
        bytes.get(..len)
    }

    /// One word.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, address).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// The first `limit` bytes of a text of `length` bytes, which may be anything; what was cut ends in an ellipsis.
    pub(crate) fn text(&self, address: u64, length: u64, limit: usize) -> Option<String> {
        let bytes = self.read(address, length.min(limit as u64) as usize)?;
        // It may be cut within a character.
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if length > limit as u64 {
            text.push('…');
        }
        Some(text)
    }

    /// The text at `address` up to its first zero byte, of at most 64 bytes; it may be anything.
    pub(crate) fn name(&self, address: u64) -> Option<Vec<u8>> {
        let mut bytes = [0; 64];
        let text = self.read_some(address, &mut bytes)?;
        Some(text[..text.iter().position(|&byte| byte == 0)?].to_vec())
    }
}

/// The word at a place in what was read.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

/// The same of 4 bytes.
pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_le_bytes(*chunk))
}

/// The same of 2 bytes.
pub(crate) fn quarter(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|chunk| u16::from_le_bytes(*chunk))
}
