//! The readying chain of one wait: who ended it, what that thread had waited for before, and so on, hop by hop.
//!
//! ```text
//!   waiter  ──────────────────waits──────────────────▶│ runs
//!   third                  ──────────waits──────▶│runs┘ wakes the waiter
//!   second      ──waits──▶│      runs            └ wakes the third
//!   timer       ──────────┘
//! ```
//!
//! The walk goes backwards from the wait's end. Each hop answers for the time from the end of its own last wait to
//! the wake-up that it gave. A wait that no thread ended answers for itself, and the chain goes on with what its thread did
//! before; a thread that has no earlier wait leads to its creator. So all of the wait is in one part or another. [`handoffs`] lists what happened at the wait's lock.

mod activity;
mod end;
mod handoffs;
mod pick;
mod report;
mod walk;

pub(crate) use end::kind as kind_of_end;

use holdup_trace::{Error, Result, Timestamp, Trace};

use crate::classify::Classifier;
use crate::code::Disassembler;
use crate::focus::Focus;
use crate::intervals::{Intervals, Timeline, Wait};
use crate::report::TraceFacts;
pub use report::{Behind, Chain, Did, Edge, End, EndKind, Handoff, Handoffs, Hop, Share, Start, WaitFacts, Who};

/// Hand-offs listed when the caller does not say how many.
const DEFAULT_TOP: usize = 20;

/// Which chain.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it begins.
    pub start: Start,
    /// Only waits of this process, by name or pid, and its children are looked for.
    pub focus: Option<String>,
    /// Whether to list the hand-offs of the wait's lock.
    pub follow: bool,
    /// At most this many hand-offs; 0 for the default.
    pub top: usize,
}

/// Events through which a chain is followed: half a gigabyte of intervals, twice if the wait ends behind those in which it was found.
const MOST_EVENTS: usize = 1 << 23;

/// What cannot be, as long as parts are made anew as they were.
const GONE: &str = "this wait is not in the trace any more";

/// Follows the chain of one wait. `path` is only repeated in the answer. O(events); of a long trace those are in memory that lie
/// before the wait's end, some 60 bytes for each, up to a gigabyte.
///
/// Fails if the trace is damaged, if there is no such wait, thread or time, or if hand-offs are asked for of a wait
/// that is on no lock.
pub fn chain(trace: &Trace, path: &str, options: &Options, disassembler: &dyn Disassembler) -> Result<Chain> {
    let refuse = |what: String| Error::Input(format!("{path}: {what}"));
    let focus = Focus::find(trace, options.focus.as_deref()).map_err(refuse)?;
    let classifier = Classifier::new(trace);
    let timeline = Timeline::new(trace, &focus, &classifier)?;
    let seen = match options.start {
        Start::Wait(number) => timeline.part_of_wait(number).unwrap_or(0),
        Start::At { seconds, .. } => timeline.part_at(Timestamp::from_seconds(seconds).nanos()),
    };
    let range = timeline.up_to(seen, MOST_EVENTS);
    let intervals = timeline.range(range.clone())?;
    let study = Study { trace, focus: &focus, intervals: &intervals, classifier: &classifier, disassembler };
    let (waits, parts) = (timeline.first_wait(timeline.len()), walk::Parts::new(&intervals));
    let picked = pick::pick(&study, &parts, &options.start, waits).map_err(refuse)?;
    let top = options.follow.then_some(if options.top == 0 { DEFAULT_TOP } else { options.top });
    let wait = intervals.waits[picked.wait];
    let end = timeline.part_at(wait.resumed);
    if range.contains(&end) {
        return follow(&study, &parts, path, picked, top);
    }
    let intervals = timeline.range(timeline.up_to(end, MOST_EVENTS))?;
    let place = place_of(&intervals, &wait).ok_or_else(|| refuse(GONE.to_owned()))?;
    let (study, picked) = (Study { intervals: &intervals, ..study }, pick::Picked { wait: place, ..picked });
    follow(&study, &walk::Parts::new(&intervals), path, picked, top)
}

/// Where a wait is among others that were made anew.
fn place_of(intervals: &Intervals, wait: &Wait) -> Option<usize> {
    intervals.waits.iter().position(|w| w.thread == wait.thread && w.start == wait.start)
}

/// A trace of which some intervals are known, ready to be asked for chains.
#[derive(Clone, Copy)]
pub struct Study<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Whose waits are looked for.
    pub focus: &'a Focus,
    /// All intervals, or those of the time in which the wait lies.
    pub intervals: &'a Intervals,
    /// What stacks tell.
    pub classifier: &'a Classifier<'a>,
    /// What reads code.
    pub disassembler: &'a dyn Disassembler,
}

impl Study<'_> {
    /// Follows the chain of one of the waits. O(intervals).
    ///
    /// # Errors
    /// If the trace is damaged, or the wait is not among the intervals.
    pub fn chain(&self, path: &str, wait: &Wait) -> Result<Chain> {
        let place = place_of(self.intervals, wait);
        let place = place.ok_or_else(|| Error::Input(format!("{path}: {GONE}")))?;
        let parts = walk::Parts::new(self.intervals);
        follow(self, &parts, path, pick::Picked::of(&parts, place), None)
    }
}

/// Follows the chain of a wait, with at most `top` hand-offs of its lock, if these are wanted.
fn follow(study: &Study, parts: &walk::Parts, path: &str, picked: pick::Picked, top: Option<usize>) -> Result<Chain> {
    let refuse = |what: String| Error::Input(format!("{path}: {what}"));
    let Study { trace, focus, intervals, .. } = *study;
    let note = match parts.start(picked.wait) < walk::at(intervals.from) {
        false => picked.note,
        true => format!(
            "the wait is longer than what is followed at once: the chain is told from {:.3} s on",
            walk::at(intervals.from).seconds()
        ),
    };
    let links = walk::walk(study, parts, picked.wait, picked.at);
    let (hops, end, shares) = activity::describe(study, parts, &links)?;
    let listed = top.map(|top| handoffs::of(study, parts, picked.wait, top)).transpose();
    Ok(Chain {
        schema: "holdup.chain/1",
        trace: TraceFacts {
            start_s: 0.0,
            path: path.to_owned(),
            format: trace.meta.format.clone(),
            duration_s: walk::at(trace.meta.duration_ns).seconds(),
            cpus: intervals.cpus,
            focus: focus.name().to_owned(),
        },
        at_s: picked.at.map(Timestamp::seconds),
        also_waiting: picked.others,
        note,
        hops,
        end,
        shares,
        handoffs: listed.map_err(refuse)?,
    })
}
