//! The hand-off list of a lock, in time order.

use holdup_trace::{LockId, Nanos, ThreadIdx, Timestamp};
use rustc_hash::FxHashMap;

use super::Study;
use super::activity::who;
use super::end::ended_by;
use super::report::{Handoff, Handoffs};
use super::walk::Parts;
use crate::label;

/// From when until when.
type Span = (Timestamp, Timestamp);

/// The hand-offs around the wait `chosen`, as long as anybody waited for its lock: at most `top`, with that wait's own
/// in the middle. O(waits of the lock log waits of the lock). Fails if the wait is on no lock.
pub(super) fn of(study: &Study, parts: &Parts, chosen: usize, top: usize) -> Result<Handoffs, String> {
    let lock = parts.wait(chosen).lock;
    if lock == LockId::NONE {
        let kind = parts.wait(chosen).kind.name();
        return Err(format!("the wait is on no lock (it is of the kind {kind}): hand-offs need a lock"));
    }
    let mut waits: Vec<usize> = parts.all().filter(|&i| parts.wait(i).lock == lock).collect();
    waits.sort_by_key(|&i| (parts.start(i), i));
    let (from, to) = busy_around(parts, &waits, chosen);
    let held = holds(parts, &waits);
    waits.retain(|&i| !parts.wait(i).open);
    waits.sort_by_key(|&i| (parts.woken(i), i));
    let in_trace = waits.len();
    let spans: Vec<Span> = waits.iter().map(|&i| (parts.start(i), parts.woken(i))).collect();
    waits.retain(|&i| parts.start(i) >= from && parts.woken(i) <= to);
    let own = waits.iter().position(|&i| i == chosen).unwrap_or(0);
    let skipped = own.saturating_sub(top / 2).min(waits.len().saturating_sub(top));
    let shown = waits.iter().skip(skipped).take(top);
    let list = shown.map(|&i| handoff(study, parts, i, held.get(&i).copied(), &spans)).collect();
    Ok(Handoffs {
        lock: label::lock(study.trace, lock),
        from_s: from.seconds(),
        to_s: to.seconds(),
        total: waits.len(),
        skipped,
        in_trace,
        list,
    })
}

/// The longest span around the chosen wait in which at least one thread waited. `waits` are in order of start.
fn busy_around(parts: &Parts, waits: &[usize], chosen: usize) -> Span {
    let target = parts.start(chosen);
    let (mut from, mut to) = (Timestamp::MAX, Timestamp::ZERO);
    for &i in waits {
        let (start, woken) = (parts.start(i), parts.woken(i));
        if start > to && to >= target && from <= target {
            break;
        }
        if from == Timestamp::MAX || start > to {
            (from, to) = (start, woken);
        }
        to = to.max(woken);
    }
    (from, to)
}

/// By wait: from running after it until the thread woke the next one on the lock, if it did so before it waited for
/// the lock again.
fn holds(parts: &Parts, waits: &[usize]) -> FxHashMap<usize, Nanos> {
    let mut events: Vec<(Timestamp, u8, usize)> = Vec::with_capacity(waits.len() * 2);
    for &i in waits.iter().filter(|&&i| !parts.wait(i).open) {
        events.push((parts.woken(i), 0, i));
        events.push((parts.resumed(i), 1, i));
    }
    events.sort_unstable();
    let mut owns: FxHashMap<ThreadIdx, usize> = FxHashMap::default();
    let mut held = FxHashMap::default();
    for (t, what, i) in events {
        if what == 1 {
            owns.insert(parts.wait(i).thread, i);
        } else if let Some(own) = owns.remove(&parts.wait(i).waker)
            && own != i
        {
            held.insert(own, t.since(parts.resumed(own)));
        }
    }
    held
}

fn handoff(study: &Study, parts: &Parts, i: usize, held: Option<Nanos>, spans: &[Span]) -> Handoff {
    let wait = parts.wait(i);
    let t = parts.woken(i);
    let waiting = spans.iter().filter(|(start, woken)| *start <= t && t < *woken).count();
    Handoff {
        t_s: t.seconds(),
        from: wait.waker.is_real().then(|| who(study, wait.waker)),
        ended_by: ended_by(wait),
        to: who(study, wait.thread),
        wait: study.intervals.number(i),
        waited_s: parts.waited(i).seconds(),
        handoff_s: parts.ready(i).seconds(),
        held_s: held.map(Nanos::seconds),
        waiting,
    }
}
