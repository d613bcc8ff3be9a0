//! How long threads are away from where they await events: from one homecoming to the next.
//!
//! A server with one thread answers nobody while it is away. Its clients may be on another machine, or be one thread
//! that waits for twenty connections at once: then no wait tells of the stall.

use holdup_trace::ThreadIdx;
use rustc_hash::{FxHashMap, FxHashSet};

use super::classes::{Class, Classes};
use super::look::Look;
use super::record::{End, Record, Records};
use super::{SHORTEST_NS, walk};
use crate::intervals::{Place, Wait};

/// What a part tells of a stretch of work that crosses one of its borders.
#[derive(Debug)]
struct Edge {
    /// When the stretch ends, or begins.
    t: u64,
    class: Class,
    ends: Vec<(End, u64)>,
}

/// By thread: the first time that it comes home, and the last time that it leaves if it does not come back.
#[derive(Debug, Default)]
pub(super) struct Stretches {
    comes: FxHashMap<ThreadIdx, Edge>,
    leaves: FxHashMap<ThreadIdx, Edge>,
}

/// Whether a thread that waits so awaits its next event.
fn is_home(look: &Look, wait: &Wait) -> bool {
    let trace = look.trace();
    let pid = |thread: ThreadIdx| trace.threads.pid.get(thread.index()).copied();
    let outside = !wait.waker.is_real() || pid(wait.waker) != pid(wait.thread);
    let asked = look.study.focus.contains(wait.thread) && !look.study.focus.is_kernel(wait.thread);
    wait.place == Place::Home && wait.kind.is_for_input() && outside && asked && !wait.exempt
}

/// Adds the stretches that lie in the part to `classes` and `records`, and returns those that cross its borders.
pub(super) fn of(look: &Look, classes: &mut Classes, records: &mut Records) -> Stretches {
    let mut found = Stretches::default();
    let mut left: FxHashMap<ThreadIdx, u64> = FxHashMap::default();
    let mut came: FxHashSet<ThreadIdx> = FxHashSet::default();
    for wait in look.chunk.waits().iter().filter(|w| is_home(look, w)) {
        let class = class_of(look, wait.thread);
        if wait.start >= look.chunk.from {
            match left.remove(&wait.thread) {
                Some(from) => add(look, wait.thread, from, wait.start, classes, records),
                None if !came.contains(&wait.thread) => {
                    let ends = piece(look, wait.thread, look.chunk.from, wait.start);
                    found.comes.insert(wait.thread, Edge { t: wait.start, class, ends });
                }
                None => {}
            }
        }
        came.insert(wait.thread);
        if !wait.open && wait.resumed < look.chunk.to {
            left.insert(wait.thread, wait.resumed);
        }
    }
    for (thread, t) in left {
        let ends = piece(look, thread, t, look.chunk.to);
        found.leaves.insert(thread, Edge { t, class: class_of(look, thread), ends });
    }
    found
}

fn class_of(look: &Look, thread: ThreadIdx) -> Class {
    Class::Busy(look.trace().threads.pid.get(thread.index()).copied().unwrap_or(0))
}

fn add(look: &Look, thread: ThreadIdx, from: u64, to: u64, classes: &mut Classes, records: &mut Records) {
    if !look.is_inside(from, to) {
        return;
    }
    let class = class_of(look, thread);
    classes.add(class, to.saturating_sub(from));
    if to.saturating_sub(from) >= SHORTEST_NS {
        let ends = walk::ends(look, from, to, |t| walk::of_work(look, thread, t));
        records.add(Record { thread, from, to, class, ends }, true);
    }
}

/// What a stretch that crosses a border is about in this part. A short piece says too little to be asked.
fn piece(look: &Look, thread: ThreadIdx, from: u64, to: u64) -> Vec<(End, u64)> {
    if to.saturating_sub(from) < SHORTEST_NS / 4 {
        return Vec::new();
    }
    walk::ends(look, from, to, |t| walk::of_work(look, thread, t))
}

impl Stretches {
    /// Puts together what the border between an earlier part and this has cut.
    pub(super) fn absorb(&mut self, earlier: Stretches, classes: &mut Classes, records: &mut Records) {
        for (thread, leaves) in earlier.leaves {
            let Some(comes) = self.comes.remove(&thread) else { continue };
            let mut record = Record { thread, from: leaves.t, to: comes.t, class: leaves.class, ends: leaves.ends };
            record.join(comes.ends);
            classes.add(record.class, record.length());
            if record.length() >= SHORTEST_NS {
                records.add(record, true);
            }
        }
        // Who came home in the earlier part came home there first.
        self.comes.extend(earlier.comes);
    }
}
