//! On which CPUs each thread may run, and how urgent it is.

use holdup_trace::tables::Placement;
use holdup_trace::{Cpu, StringId, Table, ThreadIdx, Trace};
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

/// Priority and control group of a thread, as they were last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Priority {
    /// Its nice value.
    pub nice: i16,
    /// Its scheduling policy: 0 and 3 share CPUs, 1, 2 and 6 come before those, 5 comes last.
    pub policy: u8,
    /// Its control group.
    pub group: StringId,
}

/// The sets in use, and which threads they are for.
#[derive(Debug, Default)]
pub struct Affinity {
    sets: Vec<CpuSet>,
    /// Of threads that may not run everywhere: from when on which set, in nanoseconds.
    of: FxHashMap<ThreadIdx, Vec<(u64, SetId)>>,
    /// By thread.
    priorities: Vec<Option<Priority>>,
    known: bool,
}

impl Affinity {
    /// What the trace tells. A thread of which it tells nothing has what it inherited. O(rows + threads).
    pub fn new(trace: &Trace) -> Self {
        let threads = trace.threads.len();
        let mut found =
            Affinity { sets: vec![CpuSet::default()], priorities: vec![None; threads], ..Affinity::default() };
        let mut ids: FxHashMap<StringId, SetId> = FxHashMap::default();
        let mut changes: FxHashMap<ThreadIdx, Vec<(u64, SetId)>> = FxHashMap::default();
        for row in trace.placements.iter().flatten().filter(|row| row.thread.index() < threads) {
            let set = *ids.entry(row.cpus).or_insert_with(|| found.add(trace.text(row.cpus), trace.meta.cpus));
            changes.entry(row.thread).or_default().push((row.from.nanos(), set));
            let Placement { nice, policy, group, .. } = row;
            found.priorities[row.thread.index()] = Some(Priority { nice, policy, group });
            found.known = true;
        }
        for (i, thread) in trace.threads.rows().enumerate().filter(|_| found.known) {
            let (own, parent) = (ThreadIdx(i as u32), thread.parent);
            if found.priorities[i].is_none() && parent.index() < i {
                found.priorities[i] = found.priorities[parent.index()];
                let set = at(changes.get(&parent), thread.start.nanos());
                changes.insert(own, vec![(0, set)]);
            }
        }
        changes.retain(|_, sets| sets.iter().any(|(_, set)| *set != SetId::ALL));
        found.of = changes;
        found
    }

    /// The number of a set: one that holds all CPUs is the one of all.
    fn add(&mut self, text: &str, cpus: u16) -> SetId {
        let set = CpuSet::parse(text);
        let all = (0..cpus).all(|cpu| set.contains(Cpu(cpu)));
        if all || self.sets.len() >= MOST_SETS {
            return SetId::ALL;
        }
        self.sets.push(set);
        SetId(self.sets.len() as u32 - 1)
    }

    /// The sets, the one of all CPUs first.
    pub(crate) fn sets(&self) -> &[CpuSet] {
        &self.sets
    }

    /// On which CPUs the thread may run at `t`, in nanoseconds since the trace's start.
    pub fn of(&self, thread: ThreadIdx, t: u64) -> SetId {
        at(self.of.get(&thread), t)
    }

    /// The last set of CPUs on which the thread may run, as Linux lists them; none for all.
    pub fn restricted(&self, thread: ThreadIdx) -> Option<&str> {
        let (_, set) = self.of.get(&thread)?.last()?;
        self.sets.get(set.index()).map(CpuSet::text).filter(|text| !text.is_empty())
    }

    /// Priority and control group of a thread, if they are known.
    pub fn priority(&self, thread: ThreadIdx) -> Option<Priority> {
        self.priorities.get(thread.index()).copied().flatten()
    }

    /// Whether the trace tells at all.
    pub fn is_known(&self) -> bool {
        self.known
    }
}

/// Sets that are told apart; those that come later are taken for all CPUs.
const MOST_SETS: usize = 256;

fn at(changes: Option<&Vec<(u64, SetId)>>, t: u64) -> SetId {
    let Some(changes) = changes else { return SetId::ALL };
    let later = changes.partition_point(|&(from, _)| from <= t);
    changes.get(later.saturating_sub(1)).map_or(SetId::ALL, |&(_, set)| set)
}
