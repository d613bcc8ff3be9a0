//! A case, run: threads in roles with so much work each, one lock or several.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Barrier, mpsc};
use std::time::Duration;

use holdup_sync::Gate;

use super::burn;
use crate::Result;
use crate::harness::clock;
use crate::harness::random::Random;
use crate::locks::{self, Lock, Visitor};

/// What a thread does for a while: it runs, then it waits for something that is not the lock. Nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Part {
    pub(super) ran: f64,
    pub(super) blocked: f64,
}

/// Threads that use the lock in the same way.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Role {
    pub(super) threads: usize,
    /// Takings of the lock, by all of them together.
    pub(super) takings: f64,
    /// Between two takings.
    pub(super) gap: Part,
    /// One after the other, and again from the first.
    pub(super) holds: Vec<Part>,
}

/// What to run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    pub(super) roles: Vec<Role>,
    pub(super) lock: &'static str,
    /// The lock is cut into so many; a thread keeps to one.
    pub(super) partitions: usize,
    /// So many threads may be at the lock at once; 0 for all.
    pub(super) admitted: usize,
}

/// What came out.
#[derive(Debug, Clone)]
pub(super) struct Done {
    pub(super) elapsed_s: f64,
    /// For all of its work.
    pub(super) whole_s: f64,
    /// At the lock or its gate, by all threads together.
    pub(super) waited_s: f64,
}

impl Done {
    /// Threads that waited, on average.
    pub(super) fn waiting(&self) -> f64 {
        self.waited_s / self.elapsed_s
    }
}

/// A lock of any kind.
trait AnyLock: Sync + Send {
    fn with(&self, who: usize, section: &mut dyn FnMut());
}

impl<L: Lock> AnyLock for L {
    fn with(&self, who: usize, section: &mut dyn FnMut()) {
        Lock::with(self, who, section);
    }
}

struct Boxed;

impl Visitor for Boxed {
    type Out = Box<dyn AnyLock>;

    fn visit<L: Lock>(self, lock: L, _: Option<L>) -> Self::Out {
        Box::new(lock)
    }
}

/// Runs until all work is done; for `limit_s` at most: some locks hand over to a thread that has no CPU, each time. What is not
/// done by then would have taken as long in proportion.
///
/// # Errors
/// The kernel refuses a lock of the kind.
pub(super) fn run(plan: &Plan, limit_s: f64) -> Result<Done> {
    let threads: usize = plan.roles.iter().map(|r| r.threads).sum();
    let locks: Result<Vec<_>> = (0..plan.partitions.max(1)).map(|_| locks::visit(plan.lock, threads, Boxed)).collect();
    let locks = locks?;
    let gate = (plan.admitted > 0).then(|| Gate::new(plan.admitted as u32));
    let left: Vec<AtomicI64> = plan.roles.iter().map(|r| AtomicI64::new(r.takings.round() as i64)).collect();
    let (waited, start, over) = (AtomicU64::new(0), Barrier::new(threads + 1), AtomicBool::new(false));
    let (tell, ended) = mpsc::channel::<()>();
    let mut began = 0;
    burn::calibrate();
    std::thread::scope(|scope| {
        let roles =
            plan.roles.iter().zip(&left).flat_map(|(role, left)| (0..role.threads).map(move |i| (role, left, i)));
        for (who, (role, left, i)) in roles.enumerate() {
            let (lock, gate) = (&*locks[who % locks.len()], gate.as_ref());
            let worker = Worker { role, left, who, first: i, lock, gate, over: &over };
            let (waited, start, tell) = (&waited, &start, tell.clone());
            scope.spawn(move || {
                burn::sleep_precisely();
                start.wait();
                waited.fetch_add(worker.work(), Relaxed);
                drop(tell);
            });
        }
        drop(tell);
        began = clock::now_ns();
        start.wait();
        // Nobody ever tells anything: the channel ends with the last worker.
        _ = ended.recv_timeout(Duration::from_secs_f64(limit_s));
        over.store(true, Relaxed);
    });
    let elapsed_s = (clock::now_ns() - began) as f64 / 1e9;
    let done = plan.roles.iter().zip(left).map(|(role, left)| share_done(role, left.into_inner()));
    Ok(Done { elapsed_s, whole_s: elapsed_s / done.fold(1.0, f64::min), waited_s: waited.into_inner() as f64 / 1e9 })
}

/// The share of a role's takings that were made, when so many are left.
fn share_done(role: &Role, left: i64) -> f64 {
    let all = role.takings.round().max(1.0);
    ((all - left.max(0) as f64) / all).max(1.0 / (2.0 * all))
}

/// How often it is looked whether to leave the rest, in nanoseconds.
const PIECE_NS: f64 = 20e6;

struct Worker<'a> {
    role: &'a Role,
    left: &'a AtomicI64,
    who: usize,
    first: usize,
    lock: &'a dyn AnyLock,
    gate: Option<&'a Gate>,
    /// Whether to leave the rest.
    over: &'a AtomicBool,
}

impl Worker<'_> {
    /// Takes its share of what is left, and tells for how many nanoseconds it waited.
    fn work(&self) -> u64 {
        let (mut waited, mut chance) = (0, Random::new(self.who as u64));
        // Threads of a role begin with different holds.
        let mut hold = self.first * self.role.holds.len() / self.role.threads;
        while !self.over.load(Relaxed) && self.left.fetch_sub(1, Relaxed) > 0 {
            // Evenly from half to one and a half of the mean: threads that all do the same for the same time march in step.
            let factor = 0.5 + chance.share();
            self.spend(Part { ran: self.role.gap.ran * factor, blocked: self.role.gap.blocked * factor });
            let from = clock::now_ns();
            let permit = self.gate.map(Gate::enter);
            self.lock.with(self.who, &mut || {
                waited += clock::now_ns() - from;
                if let Some(part) = self.role.holds.get(hold) {
                    self.spend(*part);
                }
            });
            drop(permit);
            hold = (hold + 1) % self.role.holds.len().max(1);
        }
        waited
    }

    /// In pieces: a recording can hold a wait of hours.
    fn spend(&self, part: Part) {
        let pieces = |all: f64, each: fn(f64)| {
            let mut left = all;
            while left >= 1.0 && !self.over.load(Relaxed) {
                each(left.min(PIECE_NS));
                left -= PIECE_NS;
            }
        };
        pieces(part.ran, burn::burn);
        pieces(part.blocked, burn::sleep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(partitions: usize) -> Plan {
        let hold = Part { ran: 0.0, blocked: 2e6 };
        let role = Role { threads: 4, takings: 20.0, gap: Part::default(), holds: vec![hold] };
        Plan { roles: vec![role], lock: "std", partitions, admitted: 0 }
    }

    #[test]
    fn a_lock_is_held_by_one_at_a_time_and_its_parts_by_several() {
        let one = run(&plan(1), 10.0).expect("a plain mutex");
        assert!(one.elapsed_s >= 0.04, "20 holds of 2 ms, one after the other: {one:?}");
        assert!(one.waiting() > 2.0 && one.waiting() < 4.0, "{one:?}");
        let four = run(&plan(4), 10.0).expect("plain mutexes");
        assert!(four.elapsed_s < one.elapsed_s && four.waiting() < 1.0, "{four:?}");
    }

    #[test]
    fn what_takes_too_long_is_left() {
        let some = run(&plan(1), 0.01).expect("a plain mutex");
        assert!(some.elapsed_s < 0.04 && some.whole_s > some.elapsed_s, "{some:?}");
    }

    #[test]
    fn a_hold_of_hours_ends_with_the_run() {
        let mut long = plan(1);
        long.roles[0].holds = vec![Part { ran: 0.0, blocked: 3.6e12 }, Part { ran: 3.6e12, blocked: 0.0 }];
        let some = run(&long, 0.05).expect("a plain mutex");
        assert!(some.elapsed_s < 5.0, "{some:?}");
    }

    #[test]
    fn a_gate_admits_so_many() {
        let gated = run(&Plan { admitted: 1, ..plan(4) }, 10.0).expect("plain mutexes");
        assert!(gated.elapsed_s >= 0.04, "{gated:?}");
    }
}
