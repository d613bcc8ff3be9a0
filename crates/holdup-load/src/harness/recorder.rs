//! What one thread measured, in time slices.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::Message;
use super::schedule::Turn;
use super::usage::Usage;
use crate::session::Traffic;

/// The longest time that a histogram holds: longer ones count as this. An hour, in nanoseconds.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Kinds of errors that a slice keeps apart; more of them count as others.
const MOST_ERROR_KINDS: usize = 20;

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

    fn new(index: u64, is_open: bool) -> Slice {
        Slice {
            index,
            done: 0,
            errors: 0,
            service: new_histogram(),
            response: is_open.then(new_histogram),
            kinds: BTreeMap::new(),
        }
    }

    fn is_empty(&self) -> bool {
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
    /// Statements of the measured time.
    pub traffic: Traffic,
    /// Since when cycles counted; none if the warm-up never ended.
    pub counted_since: Option<Instant>,
    /// When the thread was done with its cycles.
    pub ended: Instant,
    /// Counted calls that were under way when the run was given up.
    pub unfinished: u64,
    /// How long each call had waited that was due and that no slot took.
    pub unserved: Histogram<u64>,
    /// The generator's own delays.
    pub late: Late,
}

/// Fills slices, and sends each when it is over.
pub(super) struct Recorder {
    sender: Sender<Message>,
    is_open: bool,
    length: Duration,
    /// The start of the measured time and its end, once known.
    window: Option<(Instant, Option<Instant>)>,
    /// When the current slice is over.
    until: Option<Instant>,
    current: Slice,
    late: Late,
}

impl Recorder {
    pub(super) fn new(sender: Sender<Message>, is_open: bool, length: Duration) -> Recorder {
        let current = Slice::new(0, is_open);
        Recorder { sender, is_open, length, window: None, until: None, current, late: Late::default() }
    }

    /// Says when the measured time is. Once.
    pub(super) fn begin(&mut self, since: Instant, end: Option<Instant>) {
        if self.window.is_none() {
            self.window = Some((since, end));
            self.until = Some(end.map_or(since + self.length, |end| end.min(since + self.length)));
        }
    }

    /// Records a call that ended.
    #[inline]
    pub(super) fn done(&mut self, turn: Turn, began: Instant, ended: Instant) {
        self.roll(ended);
        self.current.done += 1;
        self.current.service.saturating_record(nanos(began, ended));
        if let Some(response) = &mut self.current.response {
            response.saturating_record(nanos(turn.due, ended));
        }
    }

    /// Records a call that failed.
    pub(super) fn failed(&mut self, ended: Instant, message: String) {
        self.roll(ended);
        self.current.errors += 1;
        let kinds = &mut self.current.kinds;
        let is_known = kinds.len() < MOST_ERROR_KINDS || kinds.contains_key(&message);
        *kinds.entry(if is_known { message } else { "other errors".to_owned() }).or_default() += 1;
    }

    /// Records how late a call began that had waited for its time.
    pub(super) fn began_late(&mut self, by: Duration) {
        self.late.calls += 1;
        self.late.total += by;
        self.late.max = self.late.max.max(by);
    }

    /// The generator's own delays so far.
    pub(super) fn late(&self) -> Late {
        self.late
    }

    /// Sends the current slice if it is over.
    #[inline]
    pub(super) fn roll(&mut self, now: Instant) {
        if self.until.is_some_and(|until| now >= until) {
            self.next_slice(now);
        }
    }

    /// Sends what is left.
    pub(super) fn finish(&mut self) {
        let slice = std::mem::replace(&mut self.current, Slice::new(Slice::TAIL, self.is_open));
        self.until = None;
        self.send(slice);
    }

    #[cold]
    fn next_slice(&mut self, now: Instant) {
        let Some((since, end)) = self.window else { return };
        let (index, until) = if end.is_some_and(|end| now >= end) {
            (Slice::TAIL, None)
        } else {
            let index = (now - since).as_nanos() / self.length.as_nanos();
            let until = since + self.length.saturating_mul(u32::try_from(index + 1).unwrap_or(u32::MAX));
            (index as u64, Some(end.map_or(until, |end| end.min(until))))
        };
        let slice = std::mem::replace(&mut self.current, Slice::new(index, self.is_open));
        self.until = until;
        self.send(slice);
    }

    fn send(&self, slice: Slice) {
        if !slice.is_empty() {
            // Nobody listens any more only when the run has failed.
            let _ = self.sender.send(Message::Slice(Box::new(slice)));
        }
    }
}

/// Nanoseconds between two times, at least 1: a histogram has no 0.
pub(super) fn nanos(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(LONGEST_NS).max(1)
}
