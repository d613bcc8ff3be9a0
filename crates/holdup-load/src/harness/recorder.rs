//! What one thread measured, in time slices.

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::Message;
use super::schedule::Turn;
use super::slice::{Late, Slice, nanos, new_histogram};

/// Kinds of errors that a slice keeps apart; more of them count as others.
const MOST_ERROR_KINDS: usize = 20;

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
    /// Service times of each function of a mix, while there are several.
    functions: Vec<Histogram<u64>>,
}

impl Recorder {
    pub(super) fn new(sender: Sender<Message>, is_open: bool, length: Duration, functions: usize) -> Recorder {
        let current = Slice::new(0, is_open);
        let functions = if functions > 1 { vec![new_histogram(); functions] } else { Vec::new() };
        Recorder { sender, is_open, length, window: None, until: None, current, late: Late::default(), functions }
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
    pub(super) fn done(&mut self, turn: Turn, function: usize, began: Instant, ended: Instant) {
        self.roll(ended);
        self.current.done += 1;
        let service = nanos(began, ended);
        self.current.service.saturating_record(service);
        if let Some(histogram) = self.functions.get_mut(function) {
            histogram.saturating_record(service);
        }
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

    /// Hands out the service times of each function.
    pub(super) fn take_functions(&mut self) -> Vec<Histogram<u64>> {
        std::mem::take(&mut self.functions)
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
