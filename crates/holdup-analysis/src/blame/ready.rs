//! What CPUs there were for threads that could run: idle ones, and ones that others used.
//!
//! A thread that could run needs one of a *set* of CPUs: the one on which it will run, or all that it may use. For each
//! set a running integral tells how long one of its CPUs was idle, and how long none was but others used some. What that
//! means for a thread is the difference between two readings: a change of a CPU costs as many steps as sets hold it, and
//! none for the threads that are ready.

use holdup_trace::{Cpu, ThreadIdx};

use super::forest::Mark;
use crate::affinity::{Affinity, SetId};

/// What a CPU is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Nothing.
    Idle,
    /// A thread of the focus, or what is not known.
    Own,
    /// A thread of somebody else.
    Other,
}

/// What a set's CPUs have come to, for one thread that is ready.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chances {
    /// While one of them was idle.
    pub(super) idle: Mark,
    /// While none was, but others used some.
    pub(super) taken: Mark,
}

impl Chances {
    fn since(&self, earlier: &Chances) -> Chances {
        Chances { idle: self.idle.since(&earlier.idle), taken: self.taken.since(&earlier.taken) }
    }
}

/// The CPUs of one set.
#[derive(Debug, Clone, Copy, Default)]
struct Set {
    idle: u32,
    other: u32,
    /// Up to when `sums` are complete.
    settled: Mark,
    sums: Chances,
}

impl Set {
    fn read(&self, now: &Mark) -> Chances {
        let mut sums = self.sums;
        let passed = now.since(&self.settled);
        if self.idle > 0 {
            sums.idle.add(&passed);
        } else if self.other > 0 {
            sums.taken.add(&passed);
        }
        sums
    }

    fn settle(&mut self, now: &Mark) {
        // One thread comes as another goes.
        if now.t == self.settled.t {
            return;
        }
        self.sums = self.read(now);
        self.settled = *now;
    }

    fn count(&mut self, what: Use) -> Option<&mut u32> {
        match what {
            Use::Idle => Some(&mut self.idle),
            Use::Other => Some(&mut self.other),
            Use::Own => None,
        }
    }
}

/// Readings at the instant from which on a thread is ready, going backwards.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reading {
    cpu: Cpu,
    allowed: SetId,
    pub(super) at: Mark,
    own: Chances,
    all: Chances,
    some: Chances,
}

/// What a thread that could run missed meanwhile.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Missed {
    /// All of the time.
    pub(super) all: Mark,
    /// The CPU on which it was to run, which was idle.
    pub(super) own: Mark,
    /// Another that was idle, on which it was allowed.
    pub(super) allowed: Mark,
    /// CPUs that were idle or that others used, on none of which it was allowed.
    pub(super) barred: Mark,
    /// CPUs that others used.
    pub(super) taken: Mark,
}

/// All CPUs, by the sets that hold them.
#[derive(Debug)]
pub(super) struct Ready<'a> {
    affinity: &'a Affinity,
    used: Vec<Use>,
    /// By CPU: the sets of the affinity that hold it, as indices of `sets`.
    holding: Vec<Vec<u32>>,
    /// One for each CPU, then one for each set of the affinity.
    sets: Vec<Set>,
}

impl<'a> Ready<'a> {
    /// All CPUs idle.
    pub(super) fn new(affinity: &'a Affinity, cpus: usize) -> Self {
        let single = std::iter::repeat_n(Set { idle: 1, ..Set::default() }, cpus);
        let several = affinity.sets().iter().map(|set| Set { idle: set.count(cpus), ..Set::default() });
        let holding = |cpu: usize| {
            let sets = affinity.sets().iter().enumerate().filter(|(_, set)| set.contains(Cpu(cpu as u16)));
            sets.map(|(i, _)| (cpus + i) as u32).collect()
        };
        let holding = (0..cpus).map(holding).collect();
        Ready { affinity, used: vec![Use::Idle; cpus], holding, sets: single.chain(several).collect() }
    }

    /// From `now` on the CPU is used for something else.
    #[inline]
    pub(super) fn set_use(&mut self, cpu: Cpu, to: Use, now: &Mark) {
        let Some(used) = self.used.get_mut(cpu.index()) else { return };
        let from = std::mem::replace(used, to);
        if from == to {
            return;
        }
        let several = self.holding[cpu.index()].iter().map(|&i| i as usize);
        for i in std::iter::once(cpu.index()).chain(several) {
            let set = &mut self.sets[i];
            set.settle(now);
            set.count(from).into_iter().for_each(|n| *n -= 1);
            set.count(to).into_iter().for_each(|n| *n += 1);
        }
    }

    /// Whether there is such a CPU, and it is idle.
    pub(super) fn is_idle(&self, cpu: Cpu) -> bool {
        self.used.get(cpu.index()) == Some(&Use::Idle)
    }

    /// What a thread that is to run on `cpu` reads now.
    pub(super) fn read(&self, thread: ThreadIdx, cpu: Cpu, t: u64, now: &Mark) -> Reading {
        let allowed = self.affinity.of(thread, t);
        // What was allowed may change while it is ready: only a CPU of the set that is looked at can be the thread's own.
        let is_allowed = self.affinity.sets().get(allowed.index()).is_none_or(|set| set.contains(cpu));
        self.reading(if is_allowed { cpu } else { Cpu::NONE }, allowed, now)
    }

    fn reading(&self, cpu: Cpu, allowed: SetId, now: &Mark) -> Reading {
        let set = |i: usize| self.sets.get(i).map_or_else(Chances::default, |set| set.read(now));
        let several = self.used.len();
        let own = if cpu.index() < several { set(cpu.index()) } else { Chances::default() };
        Reading { cpu, allowed, at: *now, own, all: set(several), some: set(several + allowed.index()) }
    }

    /// What it has missed since `earlier`.
    pub(super) fn missed(&self, earlier: &Reading, now: &Mark) -> Missed {
        let read = self.reading(earlier.cpu, earlier.allowed, now);
        let own = read.own.since(&earlier.own).idle;
        let some = read.some.since(&earlier.some);
        let all = read.all.since(&earlier.all);
        let passed = read.at.since(&earlier.at);
        let allowed = some.idle.since(&own);
        // Where a CPU is idle, what others use may still be a part of what it misses.
        let rank = some.taken.rank - some.taken.cpu + some.idle.rank - some.idle.cpu;
        let taken = Mark { cpu: 0.0, rank, ..some.taken };
        let mut barred = all.idle.since(&some.idle);
        barred.t = barred.t.wrapping_add(all.taken.since(&some.taken).t);
        barred.rank = passed.rank - some.idle.cpu - rank;
        Missed { all: passed, own, allowed, barred, taken }
    }
}
