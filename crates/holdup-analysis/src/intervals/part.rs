//! A part of the trace: where it begins, and all that is known there.

use holdup_trace::{Cpu, LockId, ThreadIdx, Trace};
use rustc_hash::FxHashMap;

use super::losses::Loss;
use super::machine::Machine;
use super::now::{CpuNow, Early, ThreadNow};
use super::output::{Late, Output};
use super::owners::{OwnerSpan, Owners};
use super::releases::Release;
use super::standing::Standing;
use super::state::{Packed, State};
use super::streams::Places;
use super::wait::Wait;

/// A thread at the border, in 16 bytes: there may be a hundred thousand at each of a thousand borders.
#[derive(Debug, Clone, Copy)]
struct Thread {
    since: u64,
    state: Packed,
    cpu: Cpu,
}

/// The beginning of a part. Following the events from here on gives the same as following all of them.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) from: u64,
    pub(super) places: Places,
    threads: Box<[Thread]>,
    early: Vec<(ThreadIdx, Early)>,
    cpus: Vec<CpuNow>,
    owners: Vec<OwnerSpan>,
    /// The waits that come over the border, in the order of their threads: as they are known here, and their numbers.
    pub(super) carried: Vec<(Wait, u32)>,
    /// How many waits begin here.
    pub(super) begun: u64,
    /// Who releases each lock first in this part, by lock.
    pub(super) releases: Vec<Release>,
    /// What was learned later of this part; waits by number.
    pub(super) late: Vec<Late>,
    /// Waits of later parts in which waits of this one may go on, by number.
    pub(super) beyond: Vec<(ThreadIdx, u32)>,
}

impl Part {
    /// What `machine` knows at `from`; `carried` are the waits that are not over.
    pub(super) fn begin(machine: &Machine, from: u64, places: Places, carried: Vec<(Wait, u32)>) -> Self {
        let thread = |now: &ThreadNow| Thread { since: now.since, state: Packed::new(now.state), cpu: now.cpu };
        Part {
            from,
            places,
            threads: machine.threads.iter().map(thread).collect(),
            early: machine.early.iter().map(|(&thread, &early)| (thread, early)).collect(),
            cpus: machine.cpus.clone(),
            owners: machine.owners.present(from),
            carried,
            ..Part::default()
        }
    }

    /// Follows the events from here on, with the memory of `out`.
    pub(super) fn resume<'a>(
        &self,
        trace: &'a Trace,
        losses: &'a [Loss],
        standing: &Standing,
        out: Output,
    ) -> Machine<'a> {
        let mut machine = Machine::new(trace, losses, out);
        if self.threads.is_empty() {
            // The first part has nothing else before it.
            standing.begin(&mut machine);
            return machine;
        }
        for (now, then) in machine.threads.iter_mut().zip(&self.threads) {
            let state = then.state.state();
            let last = state.wait().map_or(0, |i| i + 1);
            *now = ThreadNow { state, since: then.since, cpu: then.cpu, waits: [last, 0], woke: false };
        }
        machine.early = FxHashMap::from_iter(self.early.iter().copied());
        machine.cpus.clone_from(&self.cpus);
        machine.owners = Owners::resume(&self.owners);
        machine.out.waits.extend(self.carried.iter().map(|(wait, _)| *wait));
        machine.restore_came();
        machine
    }
}

/// The waits that are not over, in the order of their threads; each thread's state then names its place in this list.
pub(super) fn carry(machine: &mut Machine, mut number: impl FnMut(u32, &Wait) -> u32) -> Vec<(Wait, u32)> {
    let mut carried = Vec::new();
    let waits = &machine.out.waits;
    for now in &mut machine.threads {
        now.state = now.state.with_wait(|i| {
            let wait = waits[i as usize];
            carried.push((wait, number(i, &wait)));
            carried.len() as u32 - 1
        });
        now.waits = [now.state.wait().map_or(0, |i| i + 1), 0];
    }
    carried
}

/// Where each thread's wait is at the end of a part, in the order of the threads.
pub(super) fn open_waits(threads: &[ThreadNow]) -> impl Iterator<Item = u32> + '_ {
    threads.iter().filter_map(|now| now.state.wait())
}

/// A change that nobody's steps tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// A CPU's records begin (`false`) or cease (`true`) to be lost here; the flag is what was before.
    Lost(Cpu, bool),
    /// The owner is known until here.
    OwnerEnds(LockId, ThreadIdx),
    /// The owner is known from here on.
    OwnerBegins(LockId, ThreadIdx),
}

/// The steps, waits and samples of one part.
#[derive(Debug)]
pub struct Chunk {
    /// When it begins, in nanoseconds since the trace's start.
    pub from: u64,
    /// When it ends; what happens at this instant belongs to the next.
    pub to: u64,
    pub(super) out: Output,
    /// Index of the first wait that begins here.
    begun: usize,
    /// The waits that go on behind the end, in the order in which they come first in the next part.
    pub(super) leaving: Vec<u32>,
    /// Other changes in time order.
    pub extras: Vec<(u64, Extra)>,
    /// What each thread does just before the end.
    pub last: Vec<State>,
    /// Who is known to own which lock just before the end.
    pub owners_at_end: Vec<OwnerSpan>,
    /// Who releases the locks next for which threads wait at the end.
    pub releasers: Vec<(LockId, ThreadIdx)>,
    /// The spans in which owners are known.
    pub owners: Vec<OwnerSpan>,
    /// Which CPUs are lost just before the end.
    pub lost_at_end: Vec<bool>,
}

impl Chunk {
    pub(super) fn new(part: &Part, to: u64) -> Self {
        Chunk {
            from: part.from,
            to,
            out: Output::default(),
            begun: part.carried.len(),
            leaving: Vec::new(),
            extras: Vec::new(),
            last: Vec::new(),
            owners_at_end: Vec::new(),
            releasers: Vec::new(),
            owners: Vec::new(),
            lost_at_end: Vec::new(),
        }
    }

    /// Changes in time order.
    pub fn steps(&self) -> &[super::Step] {
        &self.out.steps
    }

    /// Changes in time order, each behind all of [`steps`](Self::steps) at its time.
    pub fn inserted(&self) -> &[super::Step] {
        &self.out.inserted
    }

    /// The waits that steps name by index.
    pub fn waits(&self) -> &[Wait] {
        &self.out.waits
    }

    /// The waits that begin here.
    pub fn waits_begun(&self) -> &[Wait] {
        &self.out.waits[self.begun..]
    }

    /// CPU samples in time order.
    pub fn samples(&self) -> &[holdup_trace::tables::Sample] {
        &self.out.samples
    }

    /// The memory, to be used again.
    pub(super) fn into_output(self) -> Output {
        self.out
    }
}
