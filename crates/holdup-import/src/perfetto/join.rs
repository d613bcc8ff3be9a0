//! Stacks that a profiler took when threads left their CPUs, and the switches that ftrace saw meanwhile: two recorders, each
//! with a clock of its own, whose snapshots may be off by more than a thread runs. So the distance between the two is measured
//! first: every stack has its switch at the same distance, and no other distance is as frequent.

use holdup_trace::{ChainId, Event, SampleEvent, TraceBuilder};
use rustc_hash::{FxHashMap, FxHashSet};

use super::sequence::Timebase;
use crate::linux::cpus::cpu;
use crate::linux::sink::Sink;

/// Distances further than this are not looked at, in nanoseconds.
const FARTHEST: u64 = 4_000_000;
/// Distances as much alike are one.
const BIN: i64 = 10_000;
/// The common one is the middle of so much of these: a thread that switches often has others of its switches beside it.
const FINE: i64 = 1_000;
/// How far from the common distance a switch may be, where the profiler says that it sampled switches.
const NEAR: u64 = 200_000;
/// The same where it does not say so.
const SAME: u64 = 10_000;
/// Fewer stacks tell no common distance, and more tell it no better.
const FEWEST: usize = 20;
const ENOUGH: usize = 4_000;
/// Switches of a thread that are looked at for one stack.
const MOST: usize = 64;

/// A stack of a thread.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    /// When, by the trace's clock.
    pub time: u64,
    /// The CPU; `u32::MAX` if it is not said.
    pub cpu: u32,
    /// The thread.
    pub tid: u32,
    /// The stack.
    pub chain: ChainId,
    /// The instruction.
    pub ip: u64,
    /// What it was taken at.
    pub base: Timebase,
    /// How many rounds it was held for.
    pub rounds: u8,
}

/// Stacks that wait for their events.
#[derive(Debug, Default)]
pub struct Join {
    taken: Vec<Taken>,
    /// Stacks whose event was not found.
    pub unmatched: u64,
    /// The common distance of the last round, in nanoseconds.
    pub distance: i64,
}

/// What a stack may belong to: when it was, and where it is held.
type Candidates = FxHashMap<(bool, u32), Vec<(u64, usize)>>;

impl Join {
    /// A stack.
    pub fn add(&mut self, taken: Taken) {
        self.taken.push(taken);
    }

    /// Gives the stacks so far to the events that are held; to be called before those are let go. `last` at the trace's end.
    pub fn finish_round(&mut self, sink: &mut Sink, last: bool) {
        let taken = std::mem::take(&mut self.taken);
        if taken.is_empty() {
            return;
        }
        let candidates = candidates(&taken, sink.builder);
        if let Some(distance) = common_distance(&taken, &candidates) {
            self.distance = distance;
        }
        let mut chains: FxHashMap<usize, ChainId> = FxHashMap::default();
        for mut stack in taken {
            match self.nearest(&stack, &candidates, &chains) {
                Some(at) => drop(chains.insert(at, stack.chain)),
                // Without a word what it is, and without a switch: the thread was running.
                None if stack.base == Timebase::Unknown => sample(&stack, sink),
                None if stack.rounds == 0 && !last => {
                    stack.rounds += 1;
                    self.taken.push(stack);
                }
                None => self.unmatched += 1,
            }
        }
        for (at, (_, event)) in sink.builder.held_mut().enumerate() {
            match (chains.get(&at), event) {
                (Some(&chain), Event::Switch(switch)) => switch.chain = chain,
                (Some(&chain), Event::Wake(wake)) => wake.chain = chain,
                _ => {}
            }
        }
    }

    /// The event that has the place in time of `stack`, unless another stack was nearer to it.
    fn nearest(&self, stack: &Taken, candidates: &Candidates, chains: &FxHashMap<usize, ChainId>) -> Option<usize> {
        let (reach, distance) = if stack.base == Timebase::Unknown { (SAME, 0) } else { (NEAR, self.distance) };
        let time = stack.time.saturating_add_signed(distance);
        let events = candidates.get(&(stack.base == Timebase::Waking, stack.tid))?;
        let from = events.partition_point(|&(t, _)| t < time.saturating_sub(reach));
        let within = events.get(from..)?.iter().take_while(|&&(t, _)| t <= time.saturating_add(reach));
        let free = within.filter(|(_, at)| !chains.contains_key(at));
        free.min_by_key(|&&(t, _)| t.abs_diff(time)).map(|&(_, at)| at)
    }
}

/// A CPU sample.
pub fn sample(stack: &Taken, sink: &mut Sink) {
    let &Taken { tid, ip, chain, .. } = stack;
    sink.timed(stack.time, SampleEvent { cpu: cpu(stack.cpu), tid, ip, bp: 0, chain });
}

/// The held switches and wake-ups of the threads that have stacks, in time order.
fn candidates(taken: &[Taken], builder: &mut TraceBuilder) -> Candidates {
    let tids: FxHashSet<u32> = taken.iter().map(|stack| stack.tid).collect();
    let mut found = Candidates::default();
    for (at, (t, event)) in builder.held_mut().enumerate() {
        let who = match event {
            Event::Switch(e) if e.chain == ChainId::NONE => (false, e.prev),
            Event::Wake(e) if e.chain == ChainId::NONE => (true, e.waker),
            _ => continue,
        };
        if tids.contains(&who.1) {
            found.entry(who).or_default().push((t, at));
        }
    }
    found.values_mut().for_each(|events| events.sort_unstable());
    found
}

/// The distance from stacks to events that is by far the most frequent.
fn common_distance(taken: &[Taken], candidates: &Candidates) -> Option<i64> {
    let of_switches: Vec<&Taken> = taken.iter().filter(|stack| stack.base == Timebase::Switch).collect();
    // From everywhere: the switches of the first are often let go already, and those of the last not there yet.
    let chosen = || of_switches.iter().step_by(of_switches.len().div_ceil(ENOUGH).max(1));
    let mut distances = Vec::new();
    for stack in chosen() {
        let Some(events) = candidates.get(&(false, stack.tid)) else { continue };
        let from = events.partition_point(|&(t, _)| t < stack.time.saturating_sub(FARTHEST));
        let near = events.get(from..).unwrap_or(&[]).iter();
        for &(t, _) in near.take_while(|&&(t, _)| t <= stack.time.saturating_add(FARTHEST)).take(MOST) {
            distances.push(t.cast_signed().wrapping_sub(stack.time.cast_signed()));
        }
    }
    distances.sort_unstable();
    let near = densest(&distances, BIN)?;
    let same = densest(near, FINE)?;
    let stacks = chosen().count();
    (stacks >= FEWEST && near.len() * 10 >= stacks).then(|| same[same.len() / 2])
}

/// The densest window of `width` in sorted distances; of equals the nearest to none. Linear.
fn densest(distances: &[i64], width: i64) -> Option<&[i64]> {
    let mut end = 0;
    let windows = distances.iter().enumerate().map(|(from, &first)| {
        while distances.get(end).is_some_and(|&d| d < first.saturating_add(width)) {
            end += 1;
        }
        &distances[from..end]
    });
    windows.max_by_key(|window| (window.len(), std::cmp::Reverse(window[0].unsigned_abs())))
}
