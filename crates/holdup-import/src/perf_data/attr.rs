//! `perf_event_attr`: what one event is and which fields its records have.

use crate::bytes::{u32_at, u64_at};

/// Bits of `sample_type`, named as in `perf_event.h`.
pub mod sample {
    #![allow(missing_docs)]
    pub const IP: u64 = 1 << 0;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const BRANCH_STACK: u64 = 1 << 11;
    pub const REGS_USER: u64 = 1 << 12;
    pub const STACK_USER: u64 = 1 << 13;
    pub const IDENTIFIER: u64 = 1 << 16;
}

/// The smallest `perf_event_attr` that any kernel wrote.
pub const MIN_SIZE: usize = 64;

/// One event's description; only the fields that decide how its records are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attr {
    /// `PERF_TYPE_*`.
    pub kind: u32,
    /// Which event of that type; a tracepoint's id.
    pub config: u64,
    /// Period, or frequency if `freq`.
    pub period: u64,
    /// Whether `period` is a frequency in Hz.
    pub freq: bool,
    /// Bits of [`sample`].
    pub sample_type: u64,
    /// What a counter's reading looks like.
    pub read_format: u64,
    /// Whether records other than samples end with time, CPU and id.
    pub sample_id_all: bool,
    /// Whether forks and exits are recorded.
    pub task: bool,
    /// Whether context switches are recorded as records of their own.
    pub context_switch: bool,
    /// Which branch entries.
    pub branch_type: u64,
    /// Which user registers.
    pub regs_user: u64,
}

/// `PERF_TYPE_HARDWARE`.
pub const HARDWARE: u32 = 0;
/// `PERF_TYPE_SOFTWARE`.
pub const SOFTWARE: u32 = 1;
/// `PERF_TYPE_TRACEPOINT`.
pub const TRACEPOINT: u32 = 2;

const HARDWARE_NAMES: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];
const SOFTWARE_NAMES: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

impl Attr {
    /// From the bytes of a `perf_event_attr` of any size; fields that an old perf did not know are zero.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let known = (u32_at(bytes, 4)? as usize).max(MIN_SIZE);
        let bytes = &bytes[..bytes.len().min(known)];
        let flags = u64_at(bytes, 40)?;
        let flag = |bit: u32| flags >> bit & 1 == 1;
        Some(Attr {
            kind: u32_at(bytes, 0)?,
            config: u64_at(bytes, 8)?,
            period: u64_at(bytes, 16)?,
            freq: flag(10),
            sample_type: u64_at(bytes, 24)?,
            read_format: u64_at(bytes, 32)?,
            sample_id_all: flag(18),
            task: flag(13),
            context_switch: flag(26),
            branch_type: u64_at(bytes, 72).unwrap_or(0),
            regs_user: u64_at(bytes, 80).unwrap_or(0),
        })
    }

    /// The event's name where no description gives it.
    pub fn default_name(&self) -> String {
        let names: &[&str] = match self.kind {
            HARDWARE => &HARDWARE_NAMES,
            SOFTWARE => &SOFTWARE_NAMES,
            _ => &[],
        };
        let known = usize::try_from(self.config).ok().and_then(|i| names.get(i));
        known.map_or_else(|| format!("type {} config {:#x}", self.kind, self.config), |&name| name.to_owned())
    }

    /// How well samples of this event tell where CPU time goes: the smaller the better, `None` for not at all.
    pub fn cpu_time_rank(&self) -> Option<u8> {
        match (self.kind, self.config & 0xffff_ffff) {
            (_, _) if self.period == 0 => None,
            (HARDWARE, 0) => Some(0),
            (SOFTWARE, 0) => Some(1),
            (SOFTWARE, 1) => Some(2),
            (HARDWARE, 9) => Some(3),
            (HARDWARE, 1) => Some(4),
            (4, _) => Some(5),
            (kind, _) if kind > 5 => Some(6),
            _ => None,
        }
    }

    /// Nanoseconds between two samples of a CPU; 0 if that is not known.
    pub fn period_ns(&self) -> u64 {
        match (self.freq, self.kind, self.config) {
            (true, _, _) => 1_000_000_000 / self.period.max(1),
            (false, SOFTWARE, 0 | 1) => self.period,
            _ => 0,
        }
    }
}
