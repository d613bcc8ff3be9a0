//! Who outside of the focus waits for somebody in it that sleeps: the clients of a server that alone is looked at.

use std::cmp::Reverse;

use holdup_trace::StringId;
use rustc_hash::FxHashMap;

use super::context::Context;
use super::spans::levels;
use super::tally::Tally;
use crate::blame::Asks;
use crate::label::threads;

/// They wait for this share of the time in which it sleeps, or it does not do so while they wait.
const MOSTLY: f64 = 0.5;
/// So many instants tell.
const FEWEST: usize = 5;

/// The program that mostly waits, and how many of its threads do at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outsiders {
    program: StringId,
    at_once: usize,
}

impl Outsiders {
    /// As the subject of a sentence.
    pub(super) fn words(self, context: &Context) -> String {
        format!("{} of {}", threads(self.at_once), context.trace.text(self.program))
    }

    /// What to do, where `function` of `process` sleeps.
    pub(super) fn advice(self, tally: &Tally, process: &str, function: &str) -> String {
        let one_for_all = "One thread answers all of them, and sleeps for each: let more of them answer at once (threads, workers). Or see";
        let see = if self.at_once > 1 && tally.by_thread.len() == 1 { one_for_all } else { "See" };
        format!("{see} why {process} sleeps in {function} before it answers.")
    }
}

/// Those in the middle of whose work the chain of waits ends at these sleepers: who waits for work of its own is no client. O(askers + spans).
pub(super) fn of(context: &Context, tally: &Tally) -> Option<Outsiders> {
    let askers = tally.subjects().filter_map(|key| context.blame.askers.get(key)).flatten();
    let mut at: FxHashMap<(StringId, u32), usize> = FxHashMap::default();
    for asker in askers.filter(|asker| asker.asks == Asks::One && !context.focus.contains(asker.thread)) {
        *at.entry((context.program(asker.thread), asker.instant)).or_default() += 1;
    }
    let mut of: FxHashMap<StringId, Vec<usize>> = FxHashMap::default();
    at.into_iter().for_each(|((program, _), waiting)| of.entry(program).or_default().push(waiting));
    let (program, mut waiting) = of.into_iter().max_by_key(|(program, at)| (at.len(), Reverse(*program)))?;
    waiting.sort_unstable();
    let is_most = waiting.len() as f64 >= MOSTLY * instants(context, tally);
    (is_most && waiting.len() >= FEWEST).then(|| Outsiders { program, at_once: waiting[waiting.len() / 2] })
}

/// How many of the instants at which it was looked who asks whom lie where they slept.
fn instants(context: &Context, tally: &Tally) -> f64 {
    let spans: Vec<_> = tally.subjects().filter_map(|key| context.blame.spans.get(key)).map(Vec::as_slice).collect();
    let slept: f64 = levels(&spans).iter().skip(1).sum();
    let (from, to) = context.blame.window;
    slept / (to - from).max(1) as f64 * context.blame.instants as f64
}
