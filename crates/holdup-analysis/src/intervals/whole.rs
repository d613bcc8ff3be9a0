//! The whole trace in memory: for questions about single waits.

use holdup_trace::{Result, Trace};

use super::{Health, OwnerSpan, State, Step, Timeline, Wait};
use crate::classify::Classifier;
use crate::focus::Focus;

/// The whole trace as intervals, about 60 bytes for each event.
#[derive(Debug, Default)]
pub struct Intervals {
    /// Changes of state in time order.
    pub steps: Vec<Step>,
    /// All waits, in the order of their starts.
    pub waits: Vec<Wait>,
    /// Who is known to hold which lock when.
    pub owners: Vec<OwnerSpan>,
    /// The state of every thread at the end.
    pub last: Vec<State>,
    /// Number of CPUs.
    pub cpus: usize,
    /// The trace's length in nanoseconds.
    pub end: u64,
    /// What was wrong.
    pub health: Health,
}

/// Builds the intervals of `trace`. O(events log runs).
///
/// # Errors
/// If a table is damaged.
pub fn build(trace: &Trace, focus: &Focus, classifier: &Classifier) -> Result<Intervals> {
    let timeline = Timeline::with_parts(trace, focus, classifier, usize::MAX / 2)?;
    let mut chunk = timeline.reader().chunk(0, None)?;
    let mut owners = std::mem::take(&mut chunk.owners);
    owners.append(&mut chunk.owners_at_end);
    let last = std::mem::take(&mut chunk.last);
    let mut out = chunk.into_output();
    let mut steps = out.steps;
    if !out.inserted.is_empty() {
        // Each behind the steps of its time: the sort is stable.
        steps.append(&mut out.inserted);
        steps.sort_by_key(|s| s.t);
    }
    Ok(Intervals {
        steps,
        waits: out.waits,
        owners,
        last,
        cpus: timeline.cpus,
        end: timeline.end,
        health: timeline.health,
    })
}
