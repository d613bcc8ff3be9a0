//! `locks`: every contended acquisition of a lock, with what could be seen of the holds around it.

use holdup_trace::{LockId, LockKind, StackId, ThreadIdx, Trace, WakeContext};
use rustc_hash::FxHashMap;

use super::frames::Part;
use super::{Actor, Def, Get, Provider, def};
use crate::classify::WaitKind;
use crate::explore::relation::MISSING;
use crate::explore::relation::Unit::{Id, Instant, Nanos, Text};
use crate::explore::waits::Waits;
use crate::explore::{Explorer, Result};
use crate::intervals::{OwnerSpan, Wait};

pub(super) struct Locks;

/// A contended acquisition. Parts of a wait that timed out in between are one.
pub(super) struct Acquisition {
    index: usize,
    wait: Wait,
    start: u64,
    kind: LockKind,
    hold: u64,
    owner: Option<OwnerSpan>,
}

impl Acquisition {
    fn owner(&self) -> ThreadIdx {
        self.owner.map_or(ThreadIdx::NONE, |o| o.owner)
    }
}

fn owner(r: &Acquisition) -> Actor {
    Actor(r.owner(), WakeContext::Unknown)
}

fn waker(r: &Acquisition) -> Actor {
    Actor(r.wait.waker, r.wait.context)
}

fn stack(r: &Acquisition) -> StackId {
    r.wait.stack
}

fn waker_stack(r: &Acquisition) -> StackId {
    r.wait.waker_stack
}

impl Provider for Locks {
    type Row = Acquisition;

    const COLUMNS: &'static [Def<Acquisition>] = &[
        def("id", Id, &[], "The wait's number, for `holdup chain --wait`.", Get::Number(|r| r.index as u64)),
        def("start", Instant, &[], "When it began to wait.", Get::Number(|r| r.start)),
        def("end", Instant, &[], "When it ran again; the trace's end if never.", Get::Number(|r| r.wait.resumed)),
        def("lock", Text, &[], "The lock: its name, or kind and address.", Get::Lock(|r| r.wait.lock)),
        def("kind", Text, &[], "What kind of lock.", Get::Word(|r| r.kind.name())),
        def("process", Text, &["New Process"], "Whose process.", Get::Process(|r| r.wait.thread.into())),
        def("pid", Id, &["New Process Id"], "Its number.", Get::ThreadNumber(|r| r.wait.thread, |t| t.pid)),
        def("thread", Text, &["New Thread Name"], "Who acquired it.", Get::Thread(|r| r.wait.thread.into())),
        def("tid", Id, &["New Thread Id"], "Its number.", Get::ThreadNumber(|r| r.wait.thread, |t| t.tid)),
        def(
            "wait",
            Nanos,
            &["Waits"],
            "From blocking to being woken.",
            Get::Number(|r| r.wait.woken.saturating_sub(r.start)),
        ),
        def(
            "hand-off",
            Nanos,
            &["Ready"],
            "From being woken to running.",
            Get::Number(|r| if r.wait.open { MISSING } else { r.wait.resumed.saturating_sub(r.wait.woken) }),
        ),
        def(
            "hold",
            Nanos,
            &[],
            "From running again to waking the next waiter of the lock; unknown if it woke none.",
            Get::Number(|r| r.hold),
        ),
        def("owner-process", Text, &[], "Whose process held the lock meanwhile.", Get::Process(owner)),
        def("owner", Text, &[], "Who was seen to hold it, as far as the lock tells.", Get::Thread(owner)),
        def("owner-tid", Id, &[], "The owner's number.", Get::ThreadNumber(Acquisition::owner, |t| t.tid)),
        def(
            "owner-held",
            Nanos,
            &[],
            "From when that owner was first seen until it let go.",
            Get::Number(|r| r.owner.map_or(MISSING, |o| o.to - o.from)),
        ),
        def("waker-process", Text, &["Readying Process"], "The process that released it.", Get::Process(waker)),
        def("waker-thread", Text, &["Readying Thread Name"], "The thread that released it.", Get::Thread(waker)),
        def("waker-tid", Id, &["Readying Thread Id"], "Its number.", Get::ThreadNumber(|r| r.wait.waker, |t| t.tid)),
        def(
            "waker-function",
            Text,
            &[],
            "The innermost function of the application where it was released.",
            Get::Stack(waker_stack, Part::Application),
        ),
        def("waker-site", Text, &[], "The same with its source line.", Get::Stack(waker_stack, Part::Site)),
        def(
            "waker-stack",
            Text,
            &["Readying Thread Stack", "Ready Thread Stack"],
            "Where it was released, the innermost function first.",
            Get::Stack(waker_stack, Part::Whole),
        ),
        def(
            "function",
            Text,
            &[],
            "The innermost function of the application where it blocked.",
            Get::Stack(stack, Part::Application),
        ),
        def("site", Text, &[], "The same with its source line.", Get::Stack(stack, Part::Site)),
        def(
            "stack",
            Text,
            &["New Thread Stack"],
            "Where it blocked, the innermost function first.",
            Get::Stack(stack, Part::Whole),
        ),
        def(
            "depth:N",
            Text,
            &[],
            "The N-th function of that stack from the outermost.",
            Get::StackAt(stack, Part::Depth),
        ),
        def(
            "inner:N",
            Text,
            &[],
            "The N-th function of that stack from the innermost.",
            Get::StackAt(stack, Part::Inner),
        ),
    ];

    fn thread(row: &Acquisition) -> ThreadIdx {
        row.wait.thread
    }

    fn span(row: &Acquisition) -> (u64, u64) {
        (row.start, row.wait.resumed)
    }

    fn scan(explorer: &Explorer, each: &mut dyn FnMut(&Acquisition) -> Result<()>) -> Result<()> {
        let mut rows = acquisitions(explorer)?;
        find_holds(&mut rows);
        rows.iter().try_for_each(each)
    }
}

/// All contended acquisitions in the order of their starts. O(n log n).
fn acquisitions(explorer: &Explorer) -> Result<Vec<Acquisition>> {
    // Where a wait that goes on after a time-out began: it does so in the next one of its thread.
    let mut began: FxHashMap<ThreadIdx, u64> = FxHashMap::default();
    let mut rows = Vec::new();
    let timeline = explorer.followed()?;
    let mut waits = Waits::of(&timeline);
    while let Some((index, wait)) = waits.next()? {
        if wait.kind != WaitKind::Lock {
            continue;
        }
        let start = began.remove(&wait.thread).unwrap_or(wait.start);
        if wait.goes_on != 0 {
            began.insert(wait.thread, start);
            continue;
        }
        let kind = lock_kind(explorer.trace, wait.lock);
        rows.push(Acquisition { index, wait, start, kind, hold: MISSING, owner: None });
    }
    let mut owners: FxHashMap<LockId, Vec<OwnerSpan>> = FxHashMap::default();
    for span in waits.owners() {
        owners.entry(span.lock).or_default().push(span);
    }
    for row in &mut rows {
        let spans = owners.get(&row.wait.lock);
        row.owner = spans.and_then(|spans| owner_within(spans, row.start, row.wait.woken));
    }
    rows.sort_by_key(|r| (r.start, r.index));
    Ok(rows)
}

/// The first owner known between `from` and `to`; `spans` of one lock do not overlap and are in time order.
fn owner_within(spans: &[OwnerSpan], from: u64, to: u64) -> Option<OwnerSpan> {
    let at = spans.partition_point(|s| s.to <= from);
    spans.get(at).filter(|s| s.from <= to).copied()
}

fn lock_kind(trace: &Trace, lock: LockId) -> LockKind {
    trace.locks.kind.get(lock.index()).copied().unwrap_or_default()
}

/// What happens at a lock, in the order in which it is looked at when several things happen at once.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    Blocks,
    Released,
    Acquired,
}

/// Holds: from running again to waking the next waiter, if nobody else got the lock in between.
fn find_holds(rows: &mut [Acquisition]) {
    let mut moments: Vec<(u64, Moment, usize)> = Vec::with_capacity(rows.len() * 3);
    for (i, row) in rows.iter().enumerate() {
        moments.push((row.start, Moment::Blocks, i));
        if !row.wait.open {
            moments.push((row.wait.woken, Moment::Released, i));
            moments.push((row.wait.resumed, Moment::Acquired, i));
        }
    }
    moments.sort_unstable();
    let mut holders: FxHashMap<LockId, usize> = FxHashMap::default();
    for (t, moment, i) in moments {
        let Wait { lock, thread, waker, .. } = rows[i].wait;
        let holder = holders.get(&lock).copied();
        let is = |thread| holder.is_some_and(|h: usize| rows[h].wait.thread == thread);
        match moment {
            Moment::Acquired => {
                holders.insert(lock, i);
            }
            // Whoever waits for the lock has let it go.
            Moment::Blocks if is(thread) => {
                holders.remove(&lock);
            }
            Moment::Released if is(waker) => {
                holders.remove(&lock);
                if let Some(holder) = holder {
                    rows[holder].hold = t.saturating_sub(rows[holder].wait.resumed);
                }
            }
            _ => {}
        }
    }
}
