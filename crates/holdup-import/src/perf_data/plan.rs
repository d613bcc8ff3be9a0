//! A decoding plan for each event: where each field lies is worked out once, not for each record.

use super::attr::{Attr, sample};
use crate::bytes::{u32_at, u64_at};
use crate::linux::Instant;

/// "This field is not there."
const ABSENT: u16 = u16::MAX;

/// Where the fields of an event's samples lie.
#[derive(Debug, Clone)]
pub struct Plan {
    ip: u16,
    tid: u16,
    time: u16,
    cpu: u16,
    /// Bytes before the first field of varying length.
    fixed: u16,
    group_read: bool,
    read_words: u8,
    sample_type: u64,
    read_format: u64,
    branch_type: u64,
    regs_user: u64,
    trailer: Trailer,
}

/// Where time, CPU and thread lie in records other than samples, in bytes from the record's end.
#[derive(Debug, Clone, Copy)]
struct Trailer {
    tid: u16,
    time: u16,
    cpu: u16,
}

/// A decoded sample; its varying parts point into the file's bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample<'a> {
    /// The instruction.
    pub ip: u64,
    /// The process; `u32::MAX` while it exits.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Time in nanoseconds of perf's clock; 0 if absent.
    pub time: u64,
    /// The CPU; `u32::MAX` if absent.
    pub cpu: u32,
    /// The call chain's entries, eight bytes each, with markers.
    pub chain: &'a [u8],
    /// The tracepoint's own fields.
    pub raw: &'a [u8],
    /// User registers, eight bytes each, in the order of the mask's bits.
    pub registers: &'a [u8],
    /// A copy of the user stack's top.
    pub stack: &'a [u8],
}

impl Plan {
    /// The plan for `attr`.
    pub fn new(attr: &Attr) -> Self {
        let mut at = 0;
        let mut field = |bit: u64| {
            let here = if attr.sample_type & bit == 0 { ABSENT } else { at };
            at += if here == ABSENT { 0 } else { 8 };
            here
        };
        field(sample::IDENTIFIER);
        let ip = field(sample::IP);
        let tid = field(sample::TID);
        let time = field(sample::TIME);
        field(sample::ADDR);
        field(sample::ID);
        field(sample::STREAM_ID);
        let cpu = field(sample::CPU);
        field(sample::PERIOD);
        // Value, time enabled, time running, id, lost; a group's reading has a varying number of them.
        let group_read = attr.read_format & 8 != 0;
        let read_words = 1 + (attr.read_format & 0b1_0111).count_ones() as u8;
        Plan {
            ip,
            tid,
            time,
            cpu,
            fixed: at,
            group_read,
            read_words,
            sample_type: attr.sample_type,
            read_format: attr.read_format,
            branch_type: attr.branch_type,
            regs_user: attr.regs_user,
            trailer: Trailer::new(attr),
        }
    }

    /// Whether samples have a time.
    pub fn has_time(&self) -> bool {
        self.time != ABSENT
    }

    /// Whether samples tell their CPU.
    pub fn has_cpu(&self) -> bool {
        self.cpu != ABSENT
    }

    /// Whether samples have a call chain.
    pub fn has_chain(&self) -> bool {
        self.sample_type & sample::CALLCHAIN != 0
    }

    /// Which user registers samples have.
    pub fn register_mask(&self) -> u64 {
        self.regs_user
    }

    /// Decodes a sample; `None` if it is shorter than its event says.
    // Inlined, so that the fields stay in registers: moving the whole sample took a tenth of an import.
    #[inline(always)]
    pub fn sample<'a>(&self, body: &'a [u8]) -> Option<Sample<'a>> {
        let (fixed, mut rest) = body.split_at_checked(self.fixed.into())?;
        let word = |at: u16| if at == ABSENT { 0 } else { u64_at(fixed, at.into()).unwrap_or(0) };
        let thread = word(self.tid);
        let mut s = Sample {
            ip: word(self.ip),
            pid: thread as u32,
            tid: (thread >> 32) as u32,
            time: word(self.time),
            cpu: if self.cpu == ABSENT { u32::MAX } else { word(self.cpu) as u32 },
            ..Sample::default()
        };
        if self.sample_type & sample::READ != 0 {
            rest = self.skip_read(rest)?;
        }
        if self.sample_type & sample::CALLCHAIN != 0 {
            let (count, after) = split_word(rest)?;
            (s.chain, rest) = split(after, count, 8)?;
        }
        if self.sample_type & sample::RAW != 0 {
            let size = u32_at(rest, 0)?;
            (s.raw, rest) = split(rest.get(4..)?, size.into(), 1)?;
        }
        if self.sample_type & (sample::REGS_USER | sample::STACK_USER) != 0 {
            (s.registers, s.stack) = self.user_stack(rest)?;
        }
        Some(s)
    }

    #[inline(never)]
    fn skip_read<'a>(&self, rest: &'a [u8]) -> Option<&'a [u8]> {
        if !self.group_read {
            return rest.get(usize::from(self.read_words) * 8..);
        }
        let (members, rest) = split_word(rest)?;
        let rest = rest.get((self.read_format & 0b11).count_ones() as usize * 8..)?;
        let words = 1 + (self.read_format & 0b1_0100).count_ones() as usize;
        Some(split(rest, members, words * 8)?.1)
    }

    /// Registers and the copy of the stack.
    #[inline(never)]
    fn user_stack<'a>(&self, mut rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let (mut registers, mut copy): (&[u8], &[u8]) = (&[], &[]);
        if self.sample_type & sample::BRANCH_STACK != 0 {
            let (count, after) = split_word(rest)?;
            let index = if self.branch_type >> 17 & 1 == 1 { 8 } else { 0 };
            let entry = if self.branch_type >> 19 & 1 == 1 { 32 } else { 24 };
            rest = split(after.get(index..)?, count, entry)?.1;
        }
        if self.sample_type & sample::REGS_USER != 0 {
            let (abi, after) = split_word(rest)?;
            rest = after;
            if abi != 0 {
                (registers, rest) = split(rest, self.regs_user.count_ones().into(), 8)?;
            }
        }
        if self.sample_type & sample::STACK_USER != 0 {
            let (size, after) = split_word(rest)?;
            if size != 0 {
                let (stack, after) = split(after, size, 1)?;
                let used = usize::try_from(u64_at(after, 0)?).unwrap_or(usize::MAX);
                copy = &stack[..stack.len().min(used)];
            }
        }
        Some((registers, copy))
    }

    /// When and where a record other than a sample was written, from its last bytes.
    pub fn stamp(&self, body: &[u8]) -> Instant {
        let word = |back: u16| {
            let at = (back != ABSENT).then(|| body.len().checked_sub(back.into()))??;
            u64_at(body, at)
        };
        Instant {
            time: word(self.trailer.time).unwrap_or(0),
            cpu: word(self.trailer.cpu).map_or(u32::MAX, |cpu| cpu as u32),
        }
    }

    /// The thread that a record other than a sample was written by.
    pub fn stamp_thread(&self, body: &[u8]) -> Option<(u32, u32)> {
        let at = (self.trailer.tid != ABSENT).then(|| body.len().checked_sub(self.trailer.tid.into()))??;
        Some((u32_at(body, at)?, u32_at(body, at + 4)?))
    }
}

impl Trailer {
    fn new(attr: &Attr) -> Self {
        let mut back = 0;
        let mut field = |bit: u64| {
            if !attr.sample_id_all || attr.sample_type & bit == 0 {
                return ABSENT;
            }
            back += 8;
            back
        };
        field(sample::IDENTIFIER);
        let cpu = field(sample::CPU);
        field(sample::STREAM_ID);
        field(sample::ID);
        let time = field(sample::TIME);
        let tid = field(sample::TID);
        Trailer { tid, time, cpu }
    }
}

#[inline]
fn split_word(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (word, rest) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*word), rest))
}

/// `count` items of `size` bytes, and what follows them.
#[inline]
fn split(bytes: &[u8], count: u64, size: usize) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(usize::try_from(count).ok()?.checked_mul(size)?)
}
