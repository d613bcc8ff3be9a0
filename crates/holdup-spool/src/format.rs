//! What a spool's blocks look like, for writing and for reading.

use serde::{Deserialize, Serialize};

use holdup_trace::{Host, RecorderCost};

/// The first bytes of a spool.
pub(crate) const MAGIC: [u8; 8] = *b"holdspl1";
/// The first bytes of each block.
pub(crate) const MARK: u32 = 0x6b6c_6248;
/// Bytes of a block's header.
pub(crate) const HEADER: usize = 20;
/// No block is longer, stored or unpacked; a longer length in a file is damage.
pub(crate) const LONGEST: usize = 4 << 20;

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Header = 1,
    Records = 2,
    Stacks = 3,
    Side = 4,
    Round = 5,
    Footer = 6,
    Ring = 7,
}

impl Kind {
    pub(crate) fn from_code(code: u8) -> Option<Kind> {
        use Kind::*;
        [Header, Records, Stacks, Side, Round, Footer, Ring].into_iter().find(|&k| k as u8 == code)
    }
}

/// How the bytes of a block are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Packing {
    None = 0,
    Lz4 = 1,
    /// Records: see [`crate::pack`].
    Records = 2,
    /// Words of eight bytes, of which many are zero.
    Words = 3,
}

impl Packing {
    fn from_code(code: u8) -> Option<Packing> {
        [Packing::None, Packing::Lz4, Packing::Records, Packing::Words].into_iter().find(|&p| p as u8 == code)
    }
}

/// A block's header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    pub kind: Kind,
    pub packing: Packing,
    pub cpu: u16,
    pub stored: usize,
    pub raw: usize,
    pub crc: u32,
}

impl Block {
    /// The header with the checksum of `payload`.
    pub(crate) fn encode(&self, payload: &[u8]) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0..4].copy_from_slice(&MARK.to_le_bytes());
        bytes[4] = self.kind as u8;
        bytes[5] = self.packing as u8;
        bytes[6..8].copy_from_slice(&self.cpu.to_le_bytes());
        bytes[8..12].copy_from_slice(&(self.stored as u32).to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.raw as u32).to_le_bytes());
        let crc = checksum(&bytes[..16], payload);
        bytes[16..20].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// `None` if this is no block's header.
    pub(crate) fn decode(bytes: &[u8; HEADER]) -> Option<Block> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let block = Block {
            kind: Kind::from_code(bytes[4])?,
            packing: Packing::from_code(bytes[5])?,
            cpu: u16::from_le_bytes([bytes[6], bytes[7]]),
            stored: word(8) as usize,
            raw: word(12) as usize,
            crc: word(16),
        };
        (word(0) == MARK && block.stored <= LONGEST && block.raw <= LONGEST).then_some(block)
    }
}

pub(crate) fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(header);
    crc.update(payload);
    crc.finalize()
}

/// What is known when a recording begins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// The clock's reading when recording began, in nanoseconds.
    pub start_ns: u64,
    /// How far the time of day was ahead of it then, in nanoseconds.
    pub time_of_day_ns: Option<u64>,
    /// The machine.
    pub host: Host,
    /// Number of CPUs.
    pub cpus: u16,
    /// By which hooks events are recorded.
    pub hooks: Vec<String>,
    /// Waits shorter than this have no stack.
    pub min_wait_ns: u64,
    /// The sampling period; 0 without samples.
    pub sample_period_ns: u64,
    /// The command that is recorded.
    pub command: Vec<String>,
    /// The root processes of the focus.
    pub focus_pids: Vec<u32>,
    /// The recorder's process.
    pub recorder_pid: u32,
}

/// What is known when it has ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Footer {
    /// The clock's reading at the end.
    pub end_ns: u64,
    /// The command's exit code; 128 + n for signal n.
    pub exit_code: Option<i32>,
    /// What recording cost.
    pub recorder: RecorderCost,
    /// CPU seconds that the host took from this virtual machine meanwhile; `None` if the kernel does not tell.
    pub stolen_cpu_s: Option<f64>,
    /// What the user should know.
    pub notes: Vec<String>,
}
