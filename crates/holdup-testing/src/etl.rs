//! Writes ETW logs, for tests: what Windows would have recorded of a schedule. From the published layouts (evntrace.h's headers, the MOF
//! classes of the kernel's events, [MS-XCA] for packed buffers), not from holdup's reader.

mod body;
mod example;
mod pack;

pub use body::*;
pub use example::KERNEL;

use std::collections::BTreeMap;

/// Ticks of the log's clock in a millisecond.
pub const MS: u64 = 10_000;
/// Reading of the log's clock when the log begins.
pub const START: u64 = 1 << 40;
/// Bytes of a buffer's header.
const BUFFER_HEADER: usize = 72;

/// Which header a record has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// 16 bytes: when.
    PerfInfo,
    /// 32 bytes: when, and by which thread of which process.
    System {
        /// The thread.
        tid: u32,
        /// Its process.
        pid: u32,
    },
    /// 24 bytes: the same without CPU times.
    Compact {
        /// The thread.
        tid: u32,
    },
    /// 48 bytes of a provider of the old kind.
    Full {
        /// Its GUID.
        guid: [u8; 16],
        /// The opcode.
        opcode: u8,
    },
    /// 80 bytes of a provider with a manifest.
    Event {
        /// Its GUID.
        guid: [u8; 16],
        /// The event's id.
        id: u16,
    },
}

/// How buffers are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// As they are, as Windows 7 does: all of one size.
    Plain,
    /// By plain LZ77.
    Lz77,
    /// By LZ77 with Huffman codes, here of literals alone.
    Huffman,
}

/// A log that comes into being.
#[derive(Debug, Clone)]
pub struct Log {
    /// CPUs of the machine.
    pub cpus: u16,
    /// Bytes of a buffer.
    pub buffer_size: usize,
    /// Whether pointers have 64 bits.
    pub wide: bool,
    /// How buffers are kept.
    pub packing: Packing,
    /// Events that Windows says it lost.
    pub lost_events: u32,
    records: BTreeMap<u16, Vec<(u64, Vec<u8>)>>,
}

impl Log {
    /// Of a machine with that many CPUs.
    pub fn new(cpus: u16) -> Log {
        let records = BTreeMap::new();
        Log { cpus, buffer_size: 4096, wide: true, packing: Packing::Plain, lost_events: 0, records }
    }

    /// Adds a record of `hook` on `cpu`, `ticks` after the log's beginning.
    pub fn add(&mut self, cpu: u16, ticks: u64, header: Header, (hook, version): (u16, u16), body: &[u8]) {
        let record = self.record(START + ticks, header, (hook, version), body);
        self.records.entry(cpu).or_default().push((ticks, record));
    }

    /// Adds bytes that are no record of a kind that is here.
    pub fn add_raw(&mut self, cpu: u16, ticks: u64, bytes: &[u8]) {
        self.records.entry(cpu).or_default().push((ticks, bytes.to_vec()));
    }

    fn record(&self, time: u64, header: Header, (hook, version): (u16, u16), body: &[u8]) -> Vec<u8> {
        let kind = |wide: u8, narrow: u8| if self.wide { wide } else { narrow };
        let mut bytes = Vec::new();
        let kernel = |kind: u8, size: usize| {
            let size = (size + body.len()) as u16;
            [&version.to_le_bytes()[..], &[kind, 0xc0], &size.to_le_bytes(), &hook.to_le_bytes()].concat()
        };
        match header {
            Header::PerfInfo => {
                bytes.extend(kernel(kind(0x11, 0x10), 16));
                bytes.extend(time.to_le_bytes());
            }
            Header::System { tid, pid } => {
                bytes.extend(kernel(kind(2, 1), 32));
                bytes.extend([&tid.to_le_bytes()[..], &pid.to_le_bytes(), &time.to_le_bytes(), &[0; 8]].concat());
            }
            Header::Compact { tid } => {
                bytes.extend(kernel(kind(4, 3), 24));
                bytes.extend([&tid.to_le_bytes()[..], &[0; 4], &time.to_le_bytes()].concat());
            }
            Header::Full { guid, opcode } => {
                bytes.extend(((48 + body.len()) as u16).to_le_bytes());
                bytes.extend([kind(0x14, 0x0a), 0xc0, opcode, 0]);
                bytes.extend([&version.to_le_bytes()[..], &[0; 8], &time.to_le_bytes(), &guid, &[0; 8]].concat());
            }
            Header::Event { guid, id } => {
                bytes.extend(((80 + body.len()) as u16).to_le_bytes());
                bytes.extend([kind(0x13, 0x12), 0xc0]);
                bytes.extend([&[0; 12][..], &time.to_le_bytes(), &guid, &id.to_le_bytes(), &[version as u8]].concat());
                bytes.resize(80, 0);
            }
        }
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(8), 0xff);
        bytes
    }

    /// The file.
    pub fn finish(mut self) -> Vec<u8> {
        let first = self.record(START, Header::System { tid: 0, pid: 0 }, (0, 2), &self.log_record());
        // Not aligned: the log's own record is the buffer's only one.
        let mut file = self.buffer(&first, 0, 0, 4);
        for (cpu, mut records) in std::mem::take(&mut self.records) {
            records.sort_by_key(|&(ticks, _)| ticks);
            let mut buffer = Vec::new();
            let mut number = 0;
            for (_, record) in records {
                if !buffer.is_empty() && buffer.len() + record.len() > self.buffer_size - BUFFER_HEADER {
                    number += 1;
                    file.extend(self.buffer(&buffer, cpu, number, 0));
                    buffer.clear();
                }
                buffer.extend(record);
            }
            file.extend(self.buffer(&buffer, cpu, number + 1, 0));
        }
        file
    }

    fn buffer(&self, records: &[u8], cpu: u16, number: u64, kind: u16) -> Vec<u8> {
        let used = BUFFER_HEADER + records.len();
        let packed = match self.packing {
            _ if kind == 4 => None,
            Packing::Plain => None,
            Packing::Lz77 => Some(pack::lz77(records)),
            Packing::Huffman => Some(pack::huffman(records)),
        };
        let (size, flags) = match &packed {
            Some(packed) => (BUFFER_HEADER + packed.len(), 0x60_u16),
            None if kind == 4 => (used, 0),
            None => (self.buffer_size.max(used), 0),
        };
        // A CPU's number is a byte, and the alignment the next one, unless the flag says otherwise.
        let context = if flags & 0x20 != 0 { cpu } else { cpu | 8 << 8 };
        let mut bytes = Vec::new();
        bytes.extend((size as u32).to_le_bytes());
        bytes.extend((used as u32).to_le_bytes());
        bytes.extend((used as u32).to_le_bytes());
        bytes.extend([0; 12]);
        bytes.extend(number.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(context.to_le_bytes());
        bytes.extend(1_u16.to_le_bytes());
        bytes.extend(3_u32.to_le_bytes());
        bytes.extend((used as u32).to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.resize(BUFFER_HEADER, 0);
        bytes.extend(packed.as_deref().unwrap_or(records));
        bytes.resize(size, 0xff);
        bytes
    }

    /// `TRACE_LOGFILE_HEADER`.
    fn log_record(&self) -> Vec<u8> {
        const FILETIME: u64 = 133_000_000_000_000_000;
        let mut body = Vec::new();
        let words = [self.buffer_size as u32, 10, 19_045, self.cpus.into()];
        words.iter().for_each(|word| body.extend(word.to_le_bytes()));
        body.extend(0_u64.to_le_bytes());
        let pointer = if self.wide { 8 } else { 4 };
        let words = [156_250, 0, 0, 1, 1, pointer, self.lost_events, 3000];
        words.iter().for_each(|word: &u32| body.extend(word.to_le_bytes()));
        body.resize(body.len() + 2 * pointer as usize + 172 + 4, 0);
        // Boot time, ticks a second, start time, the kind of clock, lost buffers.
        [0, 1000 * MS, FILETIME].iter().for_each(|time| body.extend(time.to_le_bytes()));
        [1_u32, 0].iter().for_each(|word| body.extend(word.to_le_bytes()));
        body
    }
}
