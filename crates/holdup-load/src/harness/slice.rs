//! What a thread tells of what it measured.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::usage::Usage;
use crate::driver::ServerInfo;
use crate::session::{Notes, Traffic};

/// The longest time that a histogram holds: longer ones count as this. An hour, in nanoseconds.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// A histogram of nanoseconds up to an hour, with three digits.
///
/// # Panics
/// Never: the bounds are fixed, and valid.
#[allow(clippy::expect_used)]
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("fixed bounds are valid")
}

/// Errors of one kind.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct ErrorKind {
    /// The sentence, with its place in the script.
    pub message: String,
    /// How often.
    pub count: u64,
}

/// What a thread measured in one time slice, by the time at which calls ended.
#[derive(Debug)]
pub(super) struct Slice {
    /// Which slice, from 0; calls that ended after the measured time come with [`Slice::TAIL`].
    pub index: u64,
    /// Calls that succeeded.
    pub done: u64,
    /// Calls that failed.
    pub errors: u64,
    /// From the actual start to the end, of calls that succeeded.
    pub service: Histogram<u64>,
    /// From the time at which the call was due; none in a closed loop, where it is the same.
    pub response: Option<Histogram<u64>>,
    /// Failures by their sentences.
    pub kinds: BTreeMap<String, u64>,
}

impl Slice {
    /// The index of what ended after the measured time.
    pub const TAIL: u64 = u64::MAX;

    pub(super) fn new(index: u64, is_open: bool) -> Slice {
        Slice {
            index,
            done: 0,
            errors: 0,
            service: new_histogram(),
            response: is_open.then(new_histogram),
            kinds: BTreeMap::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.done == 0 && self.errors == 0
    }
}

/// How late the generator itself began calls whose slot was free and waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Late {
    /// Calls that waited for their time.
    pub calls: u64,
    /// All of it.
    pub total: Duration,
    /// The worst.
    pub max: Duration,
}

/// What a thread knows when it has ended.
#[derive(Debug)]
pub(super) struct ThreadEnd {
    /// CPU time of the measured time.
    pub usage: Usage,
    /// Statements of the calls that count.
    pub traffic: Traffic,
    /// Since when cycles counted; none if the warm-up never ended.
    pub counted_since: Option<Instant>,
    /// When the thread was done with its cycles.
    pub ended: Instant,
    /// Counted calls that were under way when the run was given up.
    pub unfinished: u64,
    /// How long each call had waited that was due and that no slot took.
    pub unserved: Histogram<u64>,
    /// Calls that were due in the warm-up and that no slot had taken when it was over.
    pub left_behind: u64,
    /// The generator's own delays.
    pub late: Late,
    /// Service times of each function of a mix, in its order; none without a mix.
    pub functions: Vec<Histogram<u64>>,
    /// What the script said.
    pub notes: Notes,
    /// What the server said of itself until then.
    pub server: Option<ServerInfo>,
}

/// The service times of each function, all threads together.
pub(super) fn functions(ends: &[ThreadEnd]) -> Vec<Histogram<u64>> {
    let mut sums: Vec<Histogram<u64>> = Vec::new();
    for end in ends {
        sums.resize_with(end.functions.len().max(sums.len()), new_histogram);
        for (sum, of_thread) in sums.iter_mut().zip(&end.functions) {
            // All histograms have the same bounds.
            let _ = sum.add(of_thread);
        }
    }
    sums
}

/// What the scripts of all threads said.
pub(super) fn notes(ends: &[ThreadEnd]) -> Notes {
    let mut all = Notes::default();
    for end in ends {
        all.add(&end.notes);
    }
    all
}

/// How late all threads together began calls: on average, and at most.
pub(super) fn late(ends: &[ThreadEnd]) -> Option<(Duration, Duration)> {
    let mut all = Late::default();
    for end in ends {
        all.calls += end.late.calls;
        all.total += end.late.total;
        all.max = all.max.max(end.late.max);
    }
    let calls = u32::try_from(all.calls).unwrap_or(u32::MAX);
    (calls > 0).then(|| (all.total / calls, all.max))
}

/// Nanoseconds between two times, at least 1: a histogram has no 0.
pub(super) fn nanos(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(LONGEST_NS).max(1)
}
