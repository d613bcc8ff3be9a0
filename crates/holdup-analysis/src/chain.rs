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
use crate::intervals::{self, Intervals};
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

/// Follows the chain of one wait. `path` is only repeated in the answer. O(events).
///
/// Fails if the trace is damaged, if there is no such wait, thread or time, or if hand-offs are asked for of a wait
/// that is on no lock.
pub fn chain(trace: &Trace, path: &str, options: &Options, disassembler: &dyn Disassembler) -> Result<Chain> {
    let refuse = |what: String| Error::Input(format!("{path}: {what}"));
    let focus = Focus::find(trace, options.focus.as_deref()).map_err(refuse)?;
    let classifier = Classifier::new(trace);
    let intervals = intervals::build(trace, &focus, &classifier)?;
    let study = Study { trace, focus: &focus, intervals: &intervals, classifier: &classifier, disassembler };
    study.chain(path, options)
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
    /// Follows the chain of one wait; waits are numbered as in the intervals. O(intervals).
    ///
    /// # Errors
    /// As [`chain`].
    pub fn chain(&self, path: &str, options: &Options) -> Result<Chain> {
        follow(self, path, options)
    }
}

fn follow(study: &Study, path: &str, options: &Options) -> Result<Chain> {
    let refuse = |what: String| Error::Input(format!("{path}: {what}"));
    let Study { trace, focus, intervals, .. } = *study;
    let parts = walk::Parts::new(intervals);
    let picked = pick::pick(study, &parts, &options.start).map_err(refuse)?;
    let links = walk::walk(study, &parts, picked.wait, picked.at);
    let (hops, end, shares) = activity::describe(study, &parts, &links)?;
    let top = if options.top == 0 { DEFAULT_TOP } else { options.top };
    let listed = options.follow.then(|| handoffs::of(study, &parts, picked.wait, top)).transpose();
    Ok(Chain {
        schema: "holdup.chain/1",
        trace: TraceFacts {
            start_s: 0.0,
            path: path.to_owned(),
            format: trace.meta.format.clone(),
            duration_s: walk::at(intervals.end).seconds(),
            cpus: intervals.cpus,
            focus: focus.name().to_owned(),
        },
        at_s: picked.at.map(Timestamp::seconds),
        also_waiting: picked.others,
        note: picked.note,
        hops,
        end,
        shares,
        handoffs: listed.map_err(refuse)?,
    })
}
