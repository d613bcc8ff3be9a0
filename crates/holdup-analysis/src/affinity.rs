//! On which CPUs each thread may run.

use holdup_trace::{Cpu, ThreadIdx, Trace};
use rustc_hash::FxHashMap;

/// A set of CPUs, as a dense number; 0 is all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SetId(u32);

impl SetId {
    /// All CPUs.
    pub const ALL: SetId = SetId(0);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Some of the CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CpuSet {
    /// As Linux writes it (`0-3,8`); empty for all.
    text: String,
    /// First and last of each range.
    ranges: Vec<(u16, u16)>,
}

impl CpuSet {
    /// From a list such as `0-3,8`; nothing of what is no such list.
    pub fn parse(text: &str) -> Self {
        let range = |part: &str| {
            let (from, to) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
            let (from, to) = (from.parse().ok()?, to.parse().ok()?);
            (from <= to).then_some((from, to))
        };
        CpuSet { text: text.trim().to_owned(), ranges: text.split(',').filter_map(range).collect() }
    }

    /// Whether it holds `cpu`.
    pub fn contains(&self, cpu: Cpu) -> bool {
        self.ranges.is_empty() || self.ranges.iter().any(|&(from, to)| (from..=to).contains(&cpu.0))
    }

    /// How many of the first `cpus` it holds.
    pub(crate) fn count(&self, cpus: usize) -> u32 {
        (0..cpus).filter(|&cpu| self.contains(Cpu(cpu as u16))).count() as u32
    }

    /// As Linux writes it.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The sets in use, and which threads they are for.
#[derive(Debug, Default)]
pub struct Affinity {
    sets: Vec<CpuSet>,
    /// Of threads that may not run everywhere: from when on which set, in nanoseconds.
    of: FxHashMap<ThreadIdx, Vec<(u64, SetId)>>,
    known: bool,
}

impl Affinity {
    /// What the trace tells.
    pub fn new(_trace: &Trace) -> Self {
        Affinity { sets: vec![CpuSet::default()], of: FxHashMap::default(), known: false }
    }

    /// The sets, the one of all CPUs first.
    pub(crate) fn sets(&self) -> &[CpuSet] {
        &self.sets
    }

    /// On which CPUs the thread may run at `t`, in nanoseconds since the trace's start.
    pub fn of(&self, thread: ThreadIdx, t: u64) -> SetId {
        let Some(changes) = self.of.get(&thread) else { return SetId::ALL };
        let later = changes.partition_point(|&(from, _)| from <= t);
        changes.get(later.saturating_sub(1)).map_or(SetId::ALL, |&(_, set)| set)
    }

    /// Whether the trace tells at all.
    pub fn is_known(&self) -> bool {
        self.known
    }
}
