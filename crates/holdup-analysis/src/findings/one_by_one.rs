//! Many that work, and never two of them at once: whoever starts them waits for each before it starts the next.

use holdup_trace::{StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::context::Context;

/// Two may be chance.
const FEWEST: usize = 3;
/// One that does more than this share of the work is what to look at.
const MOST: f64 = 0.5;
/// The same of two that one has started, the second when the first had ended.
const MOST_OF_TWO: f64 = 0.7;
/// Two worked at once for no more than this share of the time in which one did: where one ends and the next begins.
const SELDOM: f64 = 0.1;
/// Of those that work for less of the time than this, it is mere chance that no two did at once.
const OFTEN: f64 = 0.5;

/// Whether they are the main threads of two processes and more that one has started, each when the one before had ended. O(n log n).
fn are_started_in_turn(context: &Context, threads: impl Iterator<Item = ThreadIdx>) -> bool {
    let all: Vec<ThreadIdx> = threads.collect();
    let life = |thread: &ThreadIdx| {
        let row = context.trace.thread(*thread).filter(|row| row.tid == row.pid)?;
        Some((row.start, row.end, context.starter(*thread)?))
    };
    let mut lives: Vec<_> = all.iter().filter_map(life).collect();
    lives.sort_unstable();
    let is_in_turn = lives.windows(2).all(|pair| pair[0].1 <= pair[1].0 && pair[0].2 == pair[1].2);
    lives.len() == all.len() && lives.len() > 1 && is_in_turn
}

/// How many there are of a program.
pub(super) struct OneByOne {
    threads: usize,
    processes: usize,
}

impl OneByOne {
    /// Where the work of `program` is that of many, of which one works at a time. O(samples).
    pub(super) fn of(context: &Context, program: StringId) -> Option<Self> {
        let whole = context.blame.window == (0, context.timeline.end);
        let parallelism = &context.timeline.parallelism;
        let alone = parallelism.get(1).copied().unwrap_or(0);
        let several: u64 = parallelism.iter().skip(2).sum();
        let seldom = (alone as f64) < OFTEN * context.timeline.end as f64;
        if !whole || seldom || several as f64 > SELDOM * alone as f64 {
            return None;
        }
        let mut work: FxHashMap<ThreadIdx, f64> = FxHashMap::default();
        for (thread, _, ns) in context.profile().filter(|(thread, ..)| context.program(*thread) == program) {
            *work.entry(thread).or_default() += ns;
        }
        let (all, most) = work.values().fold((0.0, 0.0), |(all, most): (f64, f64), ns| (all + ns, most.max(*ns)));
        let processes: FxHashSet<u32> = work.keys().map(|thread| context.pid(*thread)).collect();
        let found = OneByOne { threads: work.len(), processes: processes.len() };
        let many = found.threads >= FEWEST && most <= MOST * all;
        (many || most <= MOST_OF_TWO * all && are_started_in_turn(context, work.into_keys())).then_some(found)
    }

    /// Who worked so, of a program of this name.
    pub(super) fn words(&self, name: &str) -> String {
        match (self.threads, self.processes) {
            (threads, processes) if processes >= FEWEST.min(threads) => {
                format!("{processes} {name} processes worked one at a time")
            }
            (threads, _) => format!("{threads} threads of {name} worked one at a time"),
        }
    }

    /// What to do about it, where they run `function`.
    pub(super) fn advice(&self, function: &str) -> String {
        let at_once = if self.processes >= FEWEST.min(self.threads) {
            "make -j down to the last make, xargs -P, several commands in the background"
        } else {
            "a pool, futures that are all begun before the first is waited for"
        };
        format!(
            "Whoever starts them waits for each before the next: start several at a time ({at_once}), or make {function} faster."
        )
    }
}
