//! Who ran instead of a thread that could have run.

use holdup_trace::ThreadIdx;
use rustc_hash::FxHashMap;

use super::context::Context;
use super::spans::{common, merged, overlap};
use super::tally::Tally;
use crate::intervals::State;

/// Share of the blame from which on an owner that does not run is the finding.
const STARVED: f64 = 0.6;

/// Whether what the waiters miss is mostly a CPU for the one they wait for. On a machine that is merely busy with
/// other programs everything starves, and that is not the finding: either a CPU was free that the owner did not
/// use, or threads of the focus itself took its place for a third of the time.
pub(super) fn is_starved(context: &Context, tally: &Tally) -> bool {
    if tally.not_running_ns <= STARVED * tally.rank_ns {
        return false;
    }
    if tally.not_running_idle_ns > 0.5 * tally.not_running_ns {
        return true;
    }
    let culprits: Vec<_> = tally.by_thread.keys().copied().collect();
    let (mut own, mut all) = (0, 0);
    let (within, _) = tally.spans(context.blame.window);
    for (thread, ns) in antagonists(context, &culprits, &within) {
        all += ns;
        own += if context.focus.contains(thread) { ns } else { 0 };
    }
    own * 3 > all
}

/// Threads that ran on the CPU for which `threads` were runnable `within` these spans, by nanoseconds of overlap, the
/// greatest first. O(steps).
pub(super) fn antagonists(context: &Context, threads: &[ThreadIdx], within: &[(u64, u64)]) -> Vec<(ThreadIdx, u64)> {
    let intervals = context.intervals;
    let mut is_one_of_them = vec![false; intervals.last.len()];
    threads.iter().for_each(|thread| is_one_of_them[thread.index()] = true);
    let mut since = vec![0u64; intervals.last.len()];
    let mut runnable: Vec<Vec<(u64, u64)>> = vec![Vec::new(); intervals.cpus];
    for step in &intervals.steps {
        if let State::Runnable(cpu) = step.before()
            && is_one_of_them[step.thread.index()]
            && let Some(spans) = runnable.get_mut(cpu.index())
        {
            spans.extend(common(within, since[step.thread.index()], step.t));
        }
        since[step.thread.index()] = step.t;
    }
    runnable.iter_mut().for_each(|spans| *spans = merged(std::mem::take(spans), 0).0);
    since.fill(0);
    let mut found: FxHashMap<ThreadIdx, u64> = FxHashMap::default();
    for step in &intervals.steps {
        if let State::Running(cpu) = step.before()
            && !is_one_of_them[step.thread.index()]
            && let Some(spans) = runnable.get(cpu.index())
        {
            let overlap = overlap(spans, since[step.thread.index()], step.t);
            if overlap > 0 {
                *found.entry(step.thread).or_default() += overlap;
            }
        }
        since[step.thread.index()] = step.t;
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|&(thread, ns)| (std::cmp::Reverse(ns), thread));
    found
}
