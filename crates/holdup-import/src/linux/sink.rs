//! Gives events to the builder, and settles when those without a time happened.

use holdup_trace::{Cpu, Event, LossKind, LostEvent, Nanos, Result, TraceBuilder};

/// Rounds before everything older than the first round's events has been seen.
const ROUNDS_UNTIL_START_IS_KNOWN: u8 = 2;
/// Times further from the first one than this (52 days) are damage.
const PLAUSIBLE: u64 = 1 << 52;

/// Where the importer's events go.
///
/// Sources describe what existed before the recording (threads, mappings) without a time. Those events are held back
/// until the earliest time of the trace is certain, and then pushed just before it.
pub struct Sink<'b> {
    /// The builder. Events go through [`timed`](Self::timed) and [`maybe_timed`](Self::maybe_timed).
    pub builder: &'b mut TraceBuilder,
    early: Option<Vec<Event>>,
    rounds: u8,
    earliest: u64,
    latest: u64,
}

impl<'b> Sink<'b> {
    /// Into `builder`.
    pub fn new(builder: &'b mut TraceBuilder) -> Self {
        Sink { builder, early: Some(Vec::new()), rounds: 0, earliest: u64::MAX, latest: 0 }
    }

    /// Whether `t` can be a time of this trace.
    #[inline]
    pub fn is_plausible(&self, t: u64) -> bool {
        t != 0 && t != u64::MAX && (self.latest == 0 || t.abs_diff(self.latest) < PLAUSIBLE)
    }

    /// An event at `t`, which must be [plausible](Self::is_plausible).
    #[inline]
    pub fn timed(&mut self, t: u64, event: impl Into<Event>) {
        self.earliest = self.earliest.min(t);
        self.latest = self.latest.max(t);
        self.builder.push(t, event);
    }

    /// An event of a record that may have no time: the trace's start, or what was read last.
    pub fn maybe_timed(&mut self, t: u64, event: impl Into<Event>) {
        if self.is_plausible(t) {
            self.timed(t, event);
        } else if let Some(early) = &mut self.early {
            early.push(event.into());
        } else {
            self.builder.push(self.latest, event);
        }
    }

    /// The time of the first event; `None` if there was none.
    pub fn start(&self) -> Option<u64> {
        (self.latest != 0).then_some(self.earliest)
    }

    /// The latest time so far.
    pub fn latest(&self) -> u64 {
        self.latest
    }

    /// `count` records of `cpu` were lost in the `span` nanoseconds before `t`.
    pub fn lost(&mut self, t: u64, cpu: Cpu, span: u64, count: u64, what: &str) {
        let what = self.builder.string(what);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.maybe_timed(t, LostEvent { kind: LossKind::Events, cpu, span: Nanos(span), count, what });
    }

    /// `count` records were lost after all that was read.
    pub fn lost_behind(&mut self, count: u64, what: &str) {
        self.lost(self.latest, Cpu::NONE, 0, count, what);
    }

    /// `count` records were lost anywhere in the trace so far.
    pub fn lost_anywhere(&mut self, count: u64, what: &str) {
        let span = self.latest - self.start().unwrap_or(self.latest);
        self.lost(self.latest, Cpu::NONE, span, count, what);
    }

    /// The source has written all its buffers once more.
    pub fn finish_round(&mut self) -> Result<()> {
        // Rounds before the first event tell nothing about the start.
        self.rounds = self.rounds.saturating_add(u8::from(self.latest != 0));
        if self.rounds >= ROUNDS_UNTIL_START_IS_KNOWN {
            self.release();
        }
        self.builder.finish_round()
    }

    /// Pushes what was held back. Also to be called at the end.
    pub fn release(&mut self) {
        let start = if self.latest == 0 { 1 } else { self.earliest.saturating_sub(1) };
        for event in self.early.take().unwrap_or_default() {
            self.builder.push(start, event);
        }
    }
}
