//! What threads of one process did to each other, added up: by place that spins, and by what is written atomically.

use holdup_trace::{StackId, StringId, ThreadIdx};
use rustc_hash::FxHashMap;

/// A place that spins: a process, and a function, or the file of a function without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Site {
    pub(crate) pid: u32,
    pub(crate) function: StringId,
}

/// What happened at one place that spins; times in nanoseconds of spinning CPU time.
#[derive(Debug, Default)]
pub(crate) struct Spun {
    /// By thread that spun.
    pub(crate) threads: FxHashMap<ThreadIdx, f64>,
    /// By stack with which it spun.
    pub(crate) stacks: FxHashMap<StackId, f64>,
    /// By thread of the same process that worked meanwhile, and its stack; none where no sample tells.
    pub(crate) worked: FxHashMap<(ThreadIdx, StackId), f64>,
    /// By thread of the same process that was ready and had no CPU, where none worked.
    pub(crate) ready: FxHashMap<ThreadIdx, f64>,
    /// The part of that in which another program had a CPU.
    pub(crate) crowded: f64,
    /// While all others of the process that ran spun, too, and none was ready.
    pub(crate) others_spun: f64,
    /// While no other thread of the process ran or was ready.
    pub(crate) alone: f64,
    /// The part of all that in which it did not even spin, but gave its CPU to other programs.
    pub(crate) gave: f64,
    /// When.
    pub(crate) spans: Vec<(u64, u64)>,
}

impl Spun {
    /// All of it.
    pub(crate) fn total(&self) -> f64 {
        self.threads.values().sum()
    }

    /// Adds what an earlier part tells, or another place.
    pub(crate) fn add(&mut self, other: &Spun) {
        other.threads.iter().for_each(|(k, ns)| *self.threads.entry(*k).or_default() += ns);
        other.stacks.iter().for_each(|(k, ns)| *self.stacks.entry(*k).or_default() += ns);
        other.worked.iter().for_each(|(k, ns)| *self.worked.entry(*k).or_default() += ns);
        other.ready.iter().for_each(|(k, ns)| *self.ready.entry(*k).or_default() += ns);
        self.crowded += other.crowded;
        self.others_spun += other.others_spun;
        self.alone += other.alone;
        self.gave += other.gave;
        self.spans.extend(&other.spans);
    }
}

/// What is written atomically: a cache line of a process, or what a function writes, where that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Target {
    /// Process, and address divided by a line's length.
    Line(u32, u64),
    /// By a function, at addresses that were in registers.
    By(Site),
}

/// What happened at one place that changes memory atomically; times in nanoseconds of CPU time.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// By stack, all samples on or behind an atomic instruction.
    pub(crate) stacks: FxHashMap<StackId, f64>,
    /// By thread, while another one of the process was at such an instruction, too.
    pub(crate) threads: FxHashMap<ThreadIdx, f64>,
    /// The part of that in which both changed one variable.
    pub(crate) same: f64,
    /// The part in which they changed two variables of one cache line.
    pub(crate) beside: f64,
    /// By variable.
    pub(crate) variables: FxHashMap<u64, f64>,
    /// When.
    pub(crate) spans: Vec<(u64, u64)>,
}

impl Written {
    /// While another thread of the process was at such an instruction, too.
    pub(crate) fn together(&self) -> f64 {
        self.threads.values().sum()
    }

    /// Adds what an earlier part tells.
    pub(crate) fn add(&mut self, other: &Written) {
        other.stacks.iter().for_each(|(k, ns)| *self.stacks.entry(*k).or_default() += ns);
        other.threads.iter().for_each(|(k, ns)| *self.threads.entry(*k).or_default() += ns);
        other.variables.iter().for_each(|(k, ns)| *self.variables.entry(*k).or_default() += ns);
        self.same += other.same;
        self.beside += other.beside;
        self.spans.extend(&other.spans);
    }
}

/// What threads of one process did to each other while both ran.
#[derive(Debug, Default)]
pub(crate) struct Meanwhile {
    /// Where threads spun.
    pub(crate) spun: FxHashMap<Site, Spun>,
    /// What else threads missed while they gave way again and again, by thread: it has no place of its own.
    pub(crate) gave: FxHashMap<ThreadIdx, Spun>,
    /// Where they changed memory atomically.
    pub(crate) written: FxHashMap<Target, Written>,
}

impl Meanwhile {
    /// Adds what an earlier part tells.
    pub(crate) fn add(&mut self, earlier: &Meanwhile) {
        earlier.spun.iter().for_each(|(site, spun)| self.spun.entry(*site).or_default().add(spun));
        earlier.gave.iter().for_each(|(thread, spun)| self.gave.entry(*thread).or_default().add(spun));
        earlier.written.iter().for_each(|(site, written)| self.written.entry(*site).or_default().add(written));
    }

    /// Nanoseconds of CPU time by thread that only waited: it spun, or was at a cache line that another one changed, too.
    pub(crate) fn waited(&self) -> FxHashMap<ThreadIdx, f64> {
        let contended = self.written.values().filter(|w| w.threads.len() > 1).map(|w| &w.threads);
        let mut waited: FxHashMap<ThreadIdx, f64> = FxHashMap::default();
        for (thread, ns) in self.spun.values().map(|spun| &spun.threads).chain(contended).flatten() {
            *waited.entry(*thread).or_default() += ns;
        }
        waited
    }
}
