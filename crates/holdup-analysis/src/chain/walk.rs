//! The walk from a wait's end backwards.

use holdup_trace::{Nanos, ThreadIdx, Timestamp};
use rustc_hash::FxHashSet;

use super::Study;
use super::report::Edge;
use crate::intervals::{Intervals, OwnerSpan, Wait};

/// A chain is cut after this many hops.
const MOST_HOPS: usize = 100_000;

/// Waits by thread, with those that timed out and went on joined to one.
pub(super) struct Parts<'a> {
    intervals: &'a Intervals,
    /// By thread, in time order: the last part of each wait.
    of_thread: Vec<Vec<u32>>,
    /// By wait: its first part.
    first: Vec<u32>,
}

impl<'a> Parts<'a> {
    /// O(waits).
    pub(super) fn new(intervals: &'a Intervals) -> Self {
        let waits = &intervals.waits;
        let mut first: Vec<u32> = (0..waits.len() as u32).collect();
        let mut of_thread = vec![Vec::new(); intervals.last.len()];
        for (i, wait) in waits.iter().enumerate() {
            match wait.goes_on.checked_sub(1).map(|next| next as usize).filter(|&next| next > i && next < first.len()) {
                Some(next) => first[next] = first[i],
                None => of_thread[wait.thread.index()].push(i as u32),
            }
        }
        Parts { intervals, of_thread, first }
    }

    /// The last part of the wait that holds part `i`.
    pub(super) fn last(&self, mut i: usize) -> usize {
        while let Some(next) = self.wait(i).goes_on.checked_sub(1).map(|n| n as usize).filter(|&n| n > i) {
            i = next;
        }
        i
    }

    /// All waits, by their last parts.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> + '_ {
        let waits = &self.intervals.waits;
        (0..waits.len()).filter(|&i| waits[i].goes_on == 0)
    }

    pub(super) fn wait(&self, i: usize) -> &'a Wait {
        &self.intervals.waits[i]
    }

    /// When the wait with the last part `i` began.
    pub(super) fn start(&self, i: usize) -> Timestamp {
        at(self.wait(self.first[i] as usize).start)
    }

    /// When it was ended; the trace's end if it never was.
    pub(super) fn woken(&self, i: usize) -> Timestamp {
        at(self.wait(i).woken)
    }

    /// When the thread ran again; the trace's end if it never did.
    pub(super) fn resumed(&self, i: usize) -> Timestamp {
        at(self.wait(i).resumed)
    }

    /// From its beginning until it was ended.
    pub(super) fn waited(&self, i: usize) -> Nanos {
        self.woken(i).since(self.start(i))
    }

    /// From being ended until the thread ran.
    pub(super) fn ready(&self, i: usize) -> Nanos {
        self.resumed(i).since(self.woken(i))
    }

    /// The thread's last wait that began before `until` and did not end before `from`.
    fn before(&self, thread: ThreadIdx, from: Timestamp, until: Timestamp) -> Option<usize> {
        let own = self.of_thread.get(thread.index())?;
        let after = own.partition_point(|&i| self.start(i as usize) < until);
        let last = *own[..after].last()? as usize;
        (self.woken(last) > from).then_some(last)
    }
}

/// An instant as the intervals tell it.
pub(super) fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos_since_start(nanos)
}

/// One thread of a chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) thread: ThreadIdx,
    pub(super) edge: Edge,
    /// Since when it answers: the end of its own wait, else the start of the first wait.
    pub(super) from: Timestamp,
    /// Up to when: it ended the wait of the hop before, or ceased to own its lock.
    pub(super) until: Timestamp,
    /// The last part of the wait by which the chain goes on.
    pub(super) wait: Option<usize>,
    /// How much of the first wait lies in that wait and is answered for by no thread: a disk, a timer, the network.
    pub(super) alone: Nanos,
}

/// Why a chain goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// It has come to the beginning of the first wait.
    Begin,
    /// What was before is not known.
    Unknown,
    /// The last wait has been in the chain before.
    Circle,
    /// There are more hops than anybody reads.
    Cut,
}

/// A chain.
pub(super) struct Links {
    pub(super) links: Vec<Link>,
    /// The span of the first wait.
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    pub(super) at: Option<Timestamp>,
    pub(super) stop: Stop,
    /// What of the first wait is answered for by none of them.
    pub(super) rest: Nanos,
}

/// Walks from the end of the wait `first` backwards to its beginning; at the instant `at`, if there is one, through the owners
/// of locks. Each instant of the wait is in one link, or in the rest. O(hops log waits).
pub(super) fn walk(study: &Study, parts: &Parts, first: usize, at: Option<Timestamp>) -> Links {
    let wait = parts.wait(first);
    let (from, to) = (parts.start(first), parts.woken(first));
    let until = parts.resumed(first);
    let begin = Link { thread: wait.thread, edge: Edge::Start, from: to, until, wait: Some(first), alone: Nanos::ZERO };
    let mut walk = Walk { study, parts, at, from, cursor: to, links: vec![begin] };
    let stop = walk.go(first);
    Links { rest: walk.cursor.since(from), links: walk.links, from, to, at, stop }
}

struct Walk<'s, 'a> {
    study: &'s Study<'a>,
    parts: &'s Parts<'a>,
    at: Option<Timestamp>,
    from: Timestamp,
    /// All of the first wait behind it is answered for.
    cursor: Timestamp,
    links: Vec<Link>,
}

impl Walk<'_, '_> {
    fn go(&mut self, first: usize) -> Stop {
        let mut seen = FxHashSet::from_iter([first]);
        let mut here = Some(first);
        loop {
            let Some((thread, edge, until)) = self.next(here) else { return Stop::Unknown };
            if let Some(last) = self.links.last_mut() {
                last.alone += self.cursor.since(until);
            }
            self.cursor = until;
            // A first wait without length is followed to its waker all the same.
            if until <= self.from && (edge == Edge::Before || here != Some(first)) {
                return Stop::Begin;
            }
            let wait = self.parts.before(thread, self.from, until);
            let since = wait.map_or(self.born(thread), |w| self.parts.woken(w)).clamp(self.from.min(until), until);
            self.links.push(Link { thread, edge, from: since, until, wait, alone: Nanos::ZERO });
            self.cursor = since;
            if since <= self.from {
                return Stop::Begin;
            }
            if wait.is_some_and(|w| !seen.insert(w)) {
                return Stop::Circle;
            }
            if self.links.len() >= MOST_HOPS {
                return Stop::Cut;
            }
            here = wait;
        }
    }

    /// Who answers for the time before the cursor, and from when on backwards: who ended the wait, else the same thread before
    /// it. For a thread that has no earlier wait, who created it.
    fn next(&self, wait: Option<usize>) -> Option<(ThreadIdx, Edge, Timestamp)> {
        let Some(wait) = wait else {
            let last = self.links.last()?;
            let parent = self.study.trace.thread(last.thread)?.parent;
            return parent.is_real().then_some((parent, Edge::Creator, self.cursor));
        };
        let ender = ender(self.study, self.parts, wait, self.at, self.cursor);
        let before = || (self.parts.wait(wait).thread, Edge::Before, self.parts.start(wait).max(self.from));
        let (thread, edge, until) = ender.unwrap_or_else(before);
        Some((thread, edge, until.min(self.cursor)))
    }

    fn born(&self, thread: ThreadIdx) -> Timestamp {
        self.study.trace.thread(thread).map_or(self.from, |row| row.start)
    }
}

/// Who ends a wait, and when it ceases to hold it up: inside a lock wait the owner at the instant asked for, or where
/// no waker is known; else the waker.
fn ender(
    study: &Study,
    parts: &Parts,
    wait: usize,
    at: Option<Timestamp>,
    cursor: Timestamp,
) -> Option<(ThreadIdx, Edge, Timestamp)> {
    let w = parts.wait(wait);
    let (start, woken) = (parts.start(wait), parts.woken(wait));
    let known = w.waker.is_real() && w.waker != w.thread && w.waker.index() < study.intervals.last.len();
    let instant = at.filter(|t| (start..woken).contains(t));
    let instant = instant.or((!known).then_some(start));
    if let Some(span) = instant.and_then(|t| owner(study, w, t))
        && span.owner != w.waker
        // Between its release and the wake-up others answer, who are found by their wakers.
        && (!known || self::at(span.to) >= cursor.min(woken))
    {
        return Some((span.owner, Edge::Owner, self::at(span.to).min(woken)));
    }
    known.then_some((w.waker, Edge::Waker, woken))
}

fn owner<'a>(study: &Study<'a>, w: &Wait, t: Timestamp) -> Option<&'a OwnerSpan> {
    let holds = |s: &&OwnerSpan| s.lock == w.lock && s.owner != w.thread && self::at(s.from) <= t && t < self::at(s.to);
    study.intervals.owners.iter().find(holds)
}
