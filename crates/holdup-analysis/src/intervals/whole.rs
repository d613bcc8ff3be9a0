//! The whole trace, or some parts of it, in memory: for questions about single waits.

use holdup_trace::{Result, Trace};

use super::{Health, OwnerSpan, State, Step, Timeline, Wait};
use crate::classify::Classifier;
use crate::focus::Focus;

/// A trace, or some parts of it, as intervals: about 60 bytes for each event.
#[derive(Debug, Default)]
pub struct Intervals {
    /// Changes of state in time order.
    pub steps: Vec<Step>,
    /// All waits, in the order of their starts.
    pub waits: Vec<Wait>,
    /// How many of these begin before [`from`](Self::from).
    pub carried: usize,
    /// The number in the whole trace of the first one behind those.
    pub first_wait: u64,
    /// Who is known to hold which lock when.
    pub owners: Vec<OwnerSpan>,
    /// The state of every thread at the end.
    pub last: Vec<State>,
    /// Number of CPUs.
    pub cpus: usize,
    /// When they begin, in nanoseconds since the trace's start.
    pub from: u64,
    /// When they end: the trace's length in nanoseconds, if they are all.
    pub end: u64,
    /// What was wrong.
    pub health: Health,
}

impl Intervals {
    /// The number that wait `index` has in the whole trace; those that begin earlier have none here.
    pub fn number(&self, index: usize) -> Option<u64> {
        Some(self.first_wait + index.checked_sub(self.carried)? as u64)
    }

    /// The index of the wait of this number.
    pub fn index(&self, number: u64) -> Option<usize> {
        let index = self.carried + usize::try_from(number.checked_sub(self.first_wait)?).ok()?;
        (index < self.waits.len()).then_some(index)
    }
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
        ..Intervals::default()
    })
}
