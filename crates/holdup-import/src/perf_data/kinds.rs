//! The names of record kinds, as `perf report --stats` prints them.

#![allow(missing_docs)]

pub const MMAP: u32 = 1;
pub const LOST: u32 = 2;
pub const COMM: u32 = 3;
pub const EXIT: u32 = 4;
pub const FORK: u32 = 7;
pub const SAMPLE: u32 = 9;
pub const MMAP2: u32 = 10;
pub const LOST_SAMPLES: u32 = 13;
pub const SWITCH_CPU_WIDE: u32 = 15;
pub const HEADER_ATTR: u32 = 64;
pub const HEADER_TRACING_DATA: u32 = 66;
pub const HEADER_BUILD_ID: u32 = 67;
pub const FINISHED_ROUND: u32 = 68;
pub const AUXTRACE: u32 = 71;
pub const EVENT_UPDATE: u32 = 78;
pub const HEADER_FEATURE: u32 = 80;
pub const COMPRESSED: u32 = 81;
pub const COMPRESSED2: u32 = 83;

const KERNEL_NAMES: [&str; 22] = [
    "MMAP",
    "LOST",
    "COMM",
    "EXIT",
    "THROTTLE",
    "UNTHROTTLE",
    "FORK",
    "READ",
    "SAMPLE",
    "MMAP2",
    "AUX",
    "ITRACE_START",
    "LOST_SAMPLES",
    "SWITCH",
    "SWITCH_CPU_WIDE",
    "NAMESPACES",
    "KSYMBOL",
    "BPF_EVENT",
    "CGROUP",
    "TEXT_POKE",
    "AUX_OUTPUT_HW_ID",
    "CALLCHAIN_DEFERRED",
];
const PERF_NAMES: [&str; 21] = [
    "HEADER_ATTR",
    "HEADER_EVENT_TYPE",
    "HEADER_TRACING_DATA",
    "HEADER_BUILD_ID",
    "FINISHED_ROUND",
    "ID_INDEX",
    "AUXTRACE_INFO",
    "AUXTRACE",
    "AUXTRACE_ERROR",
    "THREAD_MAP",
    "CPU_MAP",
    "STAT_CONFIG",
    "STAT",
    "STAT_ROUND",
    "EVENT_UPDATE",
    "TIME_CONV",
    "HEADER_FEATURE",
    "COMPRESSED",
    "FINISHED_INIT",
    "COMPRESSED2",
    "BPF_METADATA",
];

/// How many records of each kind there were.
#[derive(Debug)]
pub struct Counts([u64; 256]);

impl Default for Counts {
    fn default() -> Self {
        Counts([0; 256])
    }
}

impl Counts {
    /// One more of `kind`.
    #[inline]
    pub fn add(&mut self, kind: u32) {
        self.0[kind.min(255) as usize] += 1;
    }

    /// How many of `kind`.
    pub fn of(&self, kind: u32) -> u64 {
        self.0[kind.min(255) as usize]
    }

    /// Names and counts of the kinds that occurred.
    pub fn named(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        self.0.iter().enumerate().filter(|&(_, &n)| n > 0).map(|(kind, &n)| (name(kind), n))
    }
}

fn name(kind: usize) -> String {
    let known = match kind {
        1..64 => KERNEL_NAMES.get(kind - 1),
        _ => kind.checked_sub(64).and_then(|i| PERF_NAMES.get(i)),
    };
    known.map_or_else(|| format!("record type {kind}"), |&name| name.to_owned())
}
