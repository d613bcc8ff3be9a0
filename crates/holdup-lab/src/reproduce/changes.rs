//! What could be done about a lock.

use super::Recorded;
use super::run::{Part, Plan};
use crate::{Error, Result, hint, locks};

/// A change of the case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// The first role does this share of its work under the lock, and waits there that share as often; the rest is not done.
    Hold(f64),
    /// The first role does its work before it takes the lock.
    Outside,
    /// The lock is cut into so many, and each thread uses one of them.
    Partition(usize),
    /// So many threads may be at the lock at once.
    Gate(usize),
    /// Another kind of lock.
    Lock(&'static str),
    /// This share of the threads of the largest role, for the same work.
    Threads(f64),
}

/// What is left of a hold whose work is done outside: a copy, a pointer, a number.
const INSIDE: f64 = 0.02;
/// Of so many holds some are left as they are.
const ROW: usize = 64;

impl Change {
    /// The changed case.
    pub(super) fn to(self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        match self {
            Change::Hold(share) => plan.roles[0].holds = shorter(&plan.roles[0].holds, share),
            Change::Outside => {
                let role = &mut plan.roles[0];
                let count = role.holds.len().max(1) as f64;
                let moved = 1.0 - INSIDE;
                role.gap.ran += moved * role.holds.iter().map(|h| h.ran).sum::<f64>() / count;
                role.gap.blocked += role.holds.iter().map(|h| h.blocked).sum::<f64>() / count;
                role.holds.iter_mut().for_each(|hold| *hold = Part { ran: hold.ran * INSIDE, blocked: 0.0 });
            }
            Change::Partition(parts) => plan.partitions = parts,
            Change::Gate(admitted) => plan.admitted = admitted,
            Change::Lock(kind) => plan.lock = kind,
            Change::Threads(share) => {
                if let Some(role) = plan.roles.iter_mut().max_by_key(|r| r.threads) {
                    role.threads = ((role.threads as f64 * share).round() as usize).max(1);
                }
            }
        }
        plan
    }

    /// From `hold=0.5`, `outside`, `partition=4`, `gate=2`, `lock=ttas` or `threads=0.5`.
    ///
    /// # Errors
    /// None of these, or a number that makes no sense.
    pub fn parse(text: &str) -> Result<Change> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let bad = |wants: &str| Error::Usage(format!("--try {text}: {wants}"));
        let share = || value.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0);
        let count = || value.parse().ok().filter(|n| (1..=1024).contains(n));
        match name {
            "hold" => {
                share().map(Change::Hold).ok_or_else(|| bad("a share of each hold that is left, such as hold=0.5"))
            }
            "threads" => share().map(Change::Threads).ok_or_else(|| bad("a share of the threads, such as threads=0.5")),
            "partition" => count().map(Change::Partition).ok_or_else(|| bad("a number of locks, such as partition=4")),
            "gate" => count().map(Change::Gate).ok_or_else(|| bad("a number of threads, such as gate=2")),
            "lock" => match locks::KINDS.iter().find(|kind| **kind == value) {
                Some(kind) => Ok(Change::Lock(kind)),
                None => Err(bad(&format!("a lock is one of {}{}", locks::KINDS.join(", "), hint(value, locks::KINDS)))),
            },
            "outside" if value.is_empty() => Ok(Change::Outside),
            _ => Err(bad("write hold=SHARE, outside, partition=N, gate=N, lock=KIND or threads=SHARE")),
        }
    }

    /// What is changed, in words.
    pub fn words(self, recorded: &Recorded) -> String {
        let first = recorded.roles.first().map_or("", |r| r.name.as_str());
        let largest = recorded.roles.iter().max_by_key(|r| r.threads);
        match self {
            Change::Hold(share) => format!("{first}: {} % of each hold", holdup_base::numbers::figure(100.0 * share)),
            Change::Outside => format!("{first}: the work before the lock is taken"),
            Change::Partition(parts) => format!("{parts} locks, each thread with one of them"),
            Change::Gate(1) => "a gate that admits 1 thread".to_owned(),
            Change::Gate(n) => format!("a gate that admits {n} threads"),
            Change::Lock(kind) => format!("a lock of the kind {kind}"),
            Change::Threads(share) => largest.map_or(String::new(), |role| {
                let n = ((role.threads as f64 * share).round() as usize).max(1);
                format!("{n} instead of {} threads: {}", role.threads, role.name)
            }),
        }
    }
}

/// Holds in a row of which this share of the work is left. Nobody makes a disk or a client faster: they are waited for less often.
fn shorter(holds: &[Part], share: f64) -> Vec<Part> {
    let mut due = 0.0;
    let enough = ROW.div_ceil(holds.len().max(1));
    let mut left = |hold: &Part| {
        if share > 1.0 {
            return Part { ran: hold.ran * share, blocked: hold.blocked * share };
        }
        due += hold.blocked * share;
        let blocked = if due >= hold.blocked { hold.blocked } else { 0.0 };
        due -= blocked;
        Part { ran: hold.ran * share, blocked }
    };
    (0..enough).flat_map(|_| holds).map(&mut left).collect()
}

/// What may help.
pub(super) fn worth_trying(plan: &Plan) -> Vec<Change> {
    let threads: usize = plan.roles.iter().map(|r| r.threads).sum();
    let mut changes = vec![Change::Hold(0.5), Change::Hold(0.1), Change::Outside];
    changes.extend([2, 4].into_iter().filter(|&n| n <= threads).map(Change::Partition));
    if threads > 4 {
        changes.push(Change::Partition(threads));
    }
    changes.extend([1, 2].into_iter().filter(|&n| n < threads).map(Change::Gate));
    changes.extend(["pthread", "ttas"].map(Change::Lock));
    if plan.roles.iter().any(|r| r.threads > 1) {
        changes.push(Change::Threads(0.5));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::super::run::Role;
    use super::*;

    fn plan() -> Plan {
        let holds = vec![Part { ran: 100.0, blocked: 0.0 }, Part { ran: 300.0, blocked: 200.0 }];
        let role = Role { threads: 4, takings: 10.0, gap: Part { ran: 50.0, blocked: 0.0 }, holds };
        Plan { roles: vec![role], lock: "std", partitions: 1, admitted: 0 }
    }

    #[test]
    fn work_that_moves_is_still_done() {
        let moved = Change::Outside.to(&plan());
        let role = &moved.roles[0];
        let inside: f64 = role.holds.iter().map(|h| h.ran).sum::<f64>() / 2.0;
        assert!((inside + role.gap.ran - 250.0).abs() < 1e-9 && inside < 5.0);
        let shorter = Change::Hold(0.1).to(&plan());
        assert_eq!((shorter.roles[0].holds[1].ran, shorter.roles[0].gap.ran), (30.0, 50.0));
        // 200 ns once in ten, not 20 ns each time.
        let blocked: Vec<f64> = shorter.roles[0].holds.iter().map(|h| h.blocked).filter(|b| *b > 0.0).collect();
        assert!(blocked.iter().all(|b| *b == 200.0) && (2..=7).contains(&blocked.len()), "{blocked:?}");
    }

    #[test]
    fn changes_are_told_in_words() {
        assert_eq!(Change::parse("hold=0.5"), Ok(Change::Hold(0.5)));
        assert_eq!(Change::parse("outside"), Ok(Change::Outside));
        assert_eq!(Change::parse("lock=ttas"), Ok(Change::Lock("ttas")));
        for wrong in ["hold", "hold=-1", "hold=NaN", "gate=0", "partition=1e9", "lock=ttsa", "outside=1", ""] {
            assert!(Change::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn fewer_threads_do_the_same_work() {
        let fewer = Change::Threads(0.5).to(&plan());
        assert_eq!((fewer.roles[0].threads, fewer.roles[0].takings), (2, 10.0));
        assert!(worth_trying(&plan()).contains(&Change::Partition(4)));
    }
}
