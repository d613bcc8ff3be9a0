//! Short stalls: stretches in which threads wait unusually long, or a server is away from its events unusually long.
//!
//! Totals hide what users feel: a server that stops for 100 ms once a second. What is *unusual* is told by the waits of
//! the same kind of the same program for the same other program ([`classes`]): at least ten times the middle one, and
//! rare. What an unusual wait was for is asked at evenly spread instants of it ([`walk`]): the end of its chain at each.
//!
//! ```text
//!   client  .▪.▪.▪...............▪.▪.▪     waits 50 µs, 50 µs, 100 ms: the last is one in a thousand
//!   server  ▪.▪.▪.▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪.▪.▪      and is at work all that time: in the function that its samples show
//!                 ↑  ↑  ↑  ↑  ↑            the instants
//! ```
//!
//! Parts of the trace are looked at one by one, and what crosses their borders is put together when they are added up.
//! Memory: a histogram for each class, and the longest waits of each.

mod busy;
mod callers;
mod classes;
mod look;
mod record;
mod walk;

use holdup_trace::ThreadIdx;

use crate::blame::Study;
use crate::classify::WaitKind;
use crate::focus::is_recorder;
use crate::intervals::{Chunk, Wait};

use busy::Stretches;
use callers::Callers;
use classes::{Class, Classes};
use look::Look;
use record::Records;
pub(crate) use record::{End, How, Record};

/// Nobody feels what is shorter, in nanoseconds.
const SHORTEST_NS: u64 = 10_000_000;
/// A wait is asked at so many instants what it is for.
const INSTANTS: u64 = 16;

/// What is known of the waits of the parts that were looked at.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    classes: Classes,
    records: Records,
    stretches: Stretches,
    callers: Callers,
}

impl Seen {
    /// From one part. O(waits + steps); memory for what is said above, and for the part's steps where a wait is long.
    pub(crate) fn of(chunk: &Chunk, study: &Study) -> Self {
        let mut seen = Seen::default();
        let look = Look::new(chunk, study);
        seen.add_waits(&look);
        seen.stretches = busy::of(&look, &mut seen.classes, &mut seen.records);
        seen
    }

    /// Adds what an earlier part tells.
    pub(crate) fn absorb(&mut self, earlier: Seen) {
        self.classes.absorb(earlier.classes);
        self.records.absorb(earlier.records);
        self.stretches.absorb(earlier.stretches, &mut self.classes, &mut self.records);
        self.callers.absorb(earlier.callers);
        self.records.prune();
    }

    /// Whether those whom a thread serves are no threads of this machine, so that no wait of theirs is known.
    pub(crate) fn serves_elsewhere(&self, thread: ThreadIdx) -> bool {
        self.callers.are_elsewhere(thread)
    }

    /// The unusual ones, in the order of their beginnings.
    pub(crate) fn unusual(&self) -> Vec<&Record> {
        let mut found: Vec<&Record> = self.records.iter().filter(|r| self.is_unusual(r)).collect();
        found.sort_unstable_by_key(|r| (r.from, r.thread, r.is_busy()));
        found
    }

    fn is_unusual(&self, record: &Record) -> bool {
        // Who serves several waits at home for the next of them, whatever keeps that one.
        let serves = record.is_input() && self.callers.are_several(record.thread);
        !serves && record.holds_up() && self.classes.is_unusual(record.class, record.length())
    }

    fn add_waits(&mut self, look: &Look) {
        let waits = look.chunk.waits();
        let new = waits.len() - look.chunk.waits_begun().len();
        let mut begins = look.beginnings();
        for (i, wait) in waits.iter().enumerate() {
            let from = begins.of(i as u32, wait);
            if i >= new && wait.kind == WaitKind::Input && !look.study.focus.is_kernel(wait.waker) && !wait.open {
                self.callers.add(look.trace(), wait);
            }
            if !is_asked(look, wait) || wait.goes_on != 0 {
                continue;
            }
            let class = Class::of_wait(look.trace(), wait);
            let length = wait.woken.saturating_sub(from);
            if i >= new && look.is_inside(from, wait.woken) {
                self.classes.add(class, length);
            }
            if length >= SHORTEST_NS && look.is_inside(from, wait.woken) {
                let ends = walk::ends(look, from, wait.woken, |t| walk::of_own_wait(look, wait, t));
                let focus = look.study.focus;
                if focus.contains(wait.thread) || ends.iter().any(|(end, _)| focus.contains(end.thread)) {
                    let record = Record { thread: wait.thread, from, to: wait.woken, class, ends };
                    self.records.add(record, look.is_whole(from, wait.woken));
                }
            }
        }
    }
}

/// Whether the wait could be held up by anybody: not for the end of a child, not in the idling of the kernel or of a runtime.
fn is_asked(look: &Look, wait: &Wait) -> bool {
    let classifier = look.study.classifier;
    let kept = look.study.focus.is_kernel(wait.thread) || classifier.role(wait.thread).is_some();
    // The recorder waits for the end of the recording.
    let pid = look.trace().thread(wait.thread).map_or(0, |thread| thread.pid);
    let kept = kept || is_recorder(look.trace(), pid);
    let never = wait.exempt || wait.idle_state || wait.open || kept || classifier.facts(wait.stack).parked;
    // What no thread ended holds up only where it is a disk or a lock.
    let ended = wait.waker.is_real() || matches!(wait.kind, WaitKind::Disk | WaitKind::PageFault | WaitKind::Lock);
    !never && ended
}
