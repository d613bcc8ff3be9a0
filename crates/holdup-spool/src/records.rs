//! The 24-byte records that the kernel's programs write; `bpf/recorder.h` of holdup-record is the other half, and
//! `cargo xtask tidy` compares them.
//!
//! Each is three words. The first holds the time (56 bits of nanoseconds), the lap bit of the ring, which only the
//! ring's reader cares for, and the kind (7 bits). Some are *prefixes*: they add to the next record of their CPU.

/// Bytes of a record.
pub const SIZE: usize = 24;
/// The bit of the first word that alternates with each lap of the ring.
pub const LAP: u64 = 1 << bit::LAP;
/// A tid or pid in a part of a word: the kernel has none that are greater.
pub(crate) const TID_MASK: u32 = 0xffffff;

/// Kinds of record.
#[allow(missing_docs)]
pub mod kind {
    pub const SWITCH: u8 = 1;
    pub const WAKE: u8 = 2;
    pub const FUTEX: u8 = 3;
    pub const WAKE_KEY: u8 = 4;
    pub const WAKE_STACK: u8 = 5;
    pub const BLOCKED: u8 = 6;
    pub const SAMPLE: u8 = 7;
    pub const MORE: u8 = 8;
    pub const LOCK: u8 = 9;
    pub const BLOCK_IO: u8 = 10;
    pub const FORK: u8 = 11;
    pub const NAME: u8 = 12;
    pub const EXIT: u8 = 13;
    pub const MISSED_SWITCH: u8 = 14;
    pub const INNER: u8 = 15;
    pub const SPAN: u8 = 16;
    pub const SPAN_WHOLE: u8 = 17;
    pub const STANDING: u8 = 18;
}

/// Where the parts of a record's words begin, in bits.
pub(crate) mod bit {
    pub(crate) const LAP: u32 = 56;
    pub(crate) const KIND: u32 = 57;
    pub(crate) const SECOND: u32 = 24;
    pub(crate) const CALL: u32 = 48;
    pub(crate) const PID: u32 = 16;
    pub(crate) const IO_WAIT: u32 = 40;
    pub(crate) const OPERATION: u32 = 48;
    pub(crate) const PRIVATE: u32 = 56;
    pub(crate) const TIMED: u32 = 57;
    pub(crate) const OWNER: u32 = 32;
    pub(crate) const KEY_OPERATION: u32 = 32;
    pub(crate) const CONTEXT: u32 = 48;
    pub(crate) const LOCK_KIND: u32 = 48;
    pub(crate) const BEGIN: u32 = 56;
    pub(crate) const ISSUER: u32 = 40;
    pub(crate) const ISSUE: u32 = 63;
    pub(crate) const BYTES: u32 = 32;
    pub(crate) const PARTS: u32 = 40;
    pub(crate) const PROCESS: u32 = 32;
}

/// A record's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds of the recording's clock.
    pub t: u64,
    /// One of [`kind`].
    pub kind: u8,
    /// The second word.
    pub a: u64,
    /// The third word.
    pub b: u64,
}

impl Record {
    /// From the bytes in a ring or a spool.
    pub fn decode(bytes: &[u8; SIZE]) -> Record {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let first = word(0);
        Record { t: first & (LAP - 1), kind: (first >> bit::KIND) as u8, a: word(8), b: word(16) }
    }

    /// The bytes, with the lap bit clear.
    pub fn encode(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        let first = (self.t & (LAP - 1)) | (u64::from(self.kind) << bit::KIND);
        for (at, word) in [first, self.a, self.b].into_iter().enumerate() {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// All records of a block; bytes left over at its end are ignored.
    pub fn all(bytes: &[u8]) -> impl Iterator<Item = Record> + '_ {
        bytes.as_chunks::<SIZE>().0.iter().map(Record::decode)
    }
}
