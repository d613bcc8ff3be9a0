//! A thread that sleeps in several functions in its turn, as tests do that wait for something each: one sum.

use holdup_trace::{StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::context::Context;
use super::tally::{Group, Tally};

/// So many functions in which one thread sleeps are several,
const SEVERAL: usize = 3;
/// if no one of them has more than this share of the time.
const MOST: f64 = 0.5;

/// The threads that sleep in several functions, in none of them for most of the time: a test after the other, a script's steps. O(groups).
pub(super) fn sleepers(groups: &[(Group, Tally)]) -> FxHashSet<ThreadIdx> {
    let mut slept: FxHashMap<ThreadIdx, Vec<f64>> = FxHashMap::default();
    for (_, tally) in groups.iter().filter(|(group, _)| matches!(group, Group::Timer(..))) {
        alone(tally).into_iter().for_each(|thread| slept.entry(thread).or_default().push(tally.blame().0));
    }
    let are_several = |times: &[f64]| {
        let (all, most) = (times.iter().sum::<f64>(), times.iter().copied().fold(0.0, f64::max));
        times.len() >= SEVERAL && most <= MOST * all
    };
    slept.into_iter().filter(|(_, times)| are_several(times)).map(|(thread, _)| thread).collect()
}

/// The thread that a tally is about, if that is one alone.
pub(super) fn alone(tally: &Tally) -> Option<ThreadIdx> {
    let mut ends = tally.ends().keys();
    ends.next().copied().filter(|_| ends.next().is_none())
}

/// The functions in which they sleep, if in none of them for most of the time: one alone would tell little.
pub(super) fn functions<'a>(context: &Context<'a>, tally: &Tally) -> Vec<&'a str> {
    let mut functions: FxHashMap<StringId, f64> = FxHashMap::default();
    for (stack, weight) in &tally.sites {
        *functions.entry(context.classifier.facts(*stack).application).or_default() += weight;
    }
    let all: f64 = functions.values().sum();
    functions.remove(&StringId::default());
    let mut functions: Vec<_> = functions.into_iter().collect();
    functions.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let are_several = functions.len() >= SEVERAL && functions[0].1 <= MOST * all;
    let names = functions.into_iter().map(|(function, _)| context.trace.text(function));
    if are_several && tally.by_thread.len() == 1 { names.collect() } else { Vec::new() }
}
