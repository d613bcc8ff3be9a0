//! Which threads use a lock in the same way.

use std::collections::BTreeMap;

use holdup_trace::{LockId, Nanos, ThreadIdx, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

use super::holds::Hold;
use super::{HOLDS, HoldTime, Role};
use crate::findings::{grouped, stem};
use crate::intervals::{Intervals, State};
use crate::{label, segments};

/// A thread that holds a lock so many times longer than most of its name has another role.
const LONGER: u64 = 8;

/// What one thread did.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    ran: Nanos,
    waited: Nanos,
    blocked: Nanos,
    /// Waits for the lock, and holds that ended with waking another.
    waits: u64,
    holds: u64,
    held: Nanos,
}

impl Times {
    fn mean_hold(&self) -> u64 {
        self.held.0 / self.holds.max(1)
    }
}

/// The users of a lock, or of several that are one, by role: those of `culprits` first, then by how long they waited. O(events).
pub(super) fn of(
    trace: &Trace,
    intervals: &Intervals,
    locks: &FxHashSet<LockId>,
    holds: &[Hold],
    culprits: &[ThreadIdx],
) -> Vec<Role> {
    let mut times: FxHashMap<ThreadIdx, Times> = FxHashMap::default();
    for wait in intervals.waits.iter().filter(|w| locks.contains(&w.lock)) {
        let sum = times.entry(wait.thread).or_default();
        // Who has been woken for a lock waits for it until it runs.
        sum.waited += Nanos(wait.length());
        sum.waits += u64::from(wait.goes_on == 0);
    }
    for hold in holds {
        let sum = times.entry(hold.thread).or_default();
        (sum.holds, sum.held) = (sum.holds + 1, sum.held + hold.time.ran + hold.time.blocked);
    }
    segments::each(trace, intervals, |s| {
        let Some(sum) = times.get_mut(&s.thread) else { return };
        let time = Nanos(s.to - s.from);
        match s.state {
            State::Running(_) => sum.ran += time,
            State::Waiting(w) if !locks.contains(&intervals.waits[w as usize].lock) => sum.blocked += time,
            _ => {}
        }
    });
    let mut order: Vec<(usize, Nanos, Role)> = Vec::new();
    for (threads, holds) in with_holds(by_role(trace, &times), holds) {
        let rank = culprits.iter().position(|c| threads.contains(c)).unwrap_or(usize::MAX);
        let role = role(trace, &threads, &times, &holds);
        order.push((rank, role.waited, role));
    }
    order.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)).then(a.2.names.cmp(&b.2.names)));
    order.into_iter().map(|(.., role)| role).collect()
}

type Threads = Vec<ThreadIdx>;

/// Threads of one program with one name, but for a number, apart from those that hold the lock much longer.
fn by_role(trace: &Trace, times: &FxHashMap<ThreadIdx, Times>) -> Vec<Threads> {
    let mut named: BTreeMap<(&str, &str), Threads> = BTreeMap::new();
    let mut threads: Threads = times.keys().copied().collect();
    threads.sort_unstable();
    for thread in threads {
        let name = (stem(label::process_name(trace, thread)), stem(label::thread_name(trace, thread)));
        named.entry(name).or_default().push(thread);
    }
    let by_hold = named.into_values().flat_map(|threads| {
        let mut means: Vec<u64> = threads.iter().map(|t| times[t].mean_hold()).collect();
        means.sort_unstable();
        let usual = means[means.len() / 2];
        let is_long = |t: &ThreadIdx| usual > 0 && times[t].mean_hold() > LONGER * usual;
        let (long, others): (Threads, Threads) = threads.into_iter().partition(is_long);
        [others, long]
    });
    by_hold.filter(|threads| !threads.is_empty()).collect()
}

/// Each role with its holds, in the order of time.
fn with_holds(roles: Vec<Threads>, holds: &[Hold]) -> Vec<(Threads, Vec<HoldTime>)> {
    let role_of: FxHashMap<ThreadIdx, usize> =
        roles.iter().enumerate().flat_map(|(role, threads)| threads.iter().map(move |&t| (t, role))).collect();
    let mut with: Vec<(Threads, Vec<HoldTime>)> = roles.into_iter().map(|threads| (threads, Vec::new())).collect();
    for hold in holds {
        with[role_of[&hold.thread]].1.push(hold.time);
    }
    with
}

fn role(trace: &Trace, threads: &[ThreadIdx], times: &FxHashMap<ThreadIdx, Times>, holds: &[HoldTime]) -> Role {
    let every = holds.len().div_ceil(HOLDS).max(1);
    let mut role = Role {
        names: grouped(threads.iter().map(|&t| label::thread_name(trace, t))),
        threads: threads.len(),
        holds: holds.iter().step_by(every).copied().collect(),
        ..Role::default()
    };
    for thread in threads {
        let t = &times[thread];
        role.takings += t.waits.max(t.holds);
        (role.ran, role.waited, role.blocked) = (role.ran + t.ran, role.waited + t.waited, role.blocked + t.blocked);
    }
    role
}
