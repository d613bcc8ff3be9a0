//! How a lock was used: by whom, how long it was held, and what its users did between; enough to use one in the same way
//! again, and to try there what could be done about it.

mod holds;
mod roles;

use std::collections::BTreeMap;

use holdup_trace::{Error, LockId, Nanos, Result, ThreadIdx, Trace};
use rustc_hash::FxHashSet;

use crate::classify::{Classifier, WaitKind};
use crate::code::Disassembler;
use crate::findings::explain;
use crate::focus::Focus;
use crate::intervals::{self, Intervals};
use crate::report::{Finding, LockFacts, Options};

/// How a lock was used.
#[derive(Debug, Clone, PartialEq)]
pub struct LockUse {
    /// The finding that is about it.
    pub finding: String,
    /// The finding's sentence.
    pub title: String,
    /// The lock.
    pub lock: LockFacts,
    /// How many other locks the finding is about; this is the one that was waited for most.
    pub others: usize,
    /// CPUs of the machine.
    pub cpus: usize,
    /// How long the trace is.
    pub length: Nanos,
    /// Those that used it: who is blamed first.
    pub roles: Vec<Role>,
}

/// Threads that use a lock in the same way. All times are sums over these threads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Role {
    /// Their names, like ones together.
    pub names: Vec<String>,
    /// How many.
    pub threads: usize,
    /// How often one of them is known to have taken the lock: it waited for it, or let go one that waited. Takings that nobody
    /// noticed are in no trace.
    pub takings: u64,
    /// How long it was held, as far as that was seen, in the order of time; at most [`HOLDS`].
    pub holds: Vec<HoldTime>,
    /// They ran, holds included.
    pub ran: Nanos,
    /// They waited for this lock, until they ran again.
    pub waited: Nanos,
    /// They waited for something else, holds included.
    pub blocked: Nanos,
}

/// One hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HoldTime {
    /// Its holder ran.
    pub ran: Nanos,
    /// It waited for something else meanwhile.
    pub blocked: Nanos,
}

/// Holds kept for each role.
pub const HOLDS: usize = 2048;

/// How the lock of a finding was used. `wanted` is the finding's name, such as `f1`, or empty for the first that is about a lock;
/// `path` is only repeated. O(events); holds all intervals in memory, some 60 bytes an event.
///
/// # Errors
/// The trace is damaged; no such finding; it is about no lock that the trace knows.
pub fn of_finding(
    trace: &Trace,
    path: &str,
    options: &Options,
    wanted: &str,
    disassembler: &dyn Disassembler,
) -> Result<LockUse> {
    let explained = explain(trace, path, options, disassembler)?;
    let finding = pick(&explained.findings, wanted).map_err(|what| Error::Input(format!("{path}: {what}")))?;
    let focus = Focus::find(trace, options.focus.as_deref()).map_err(|what| Error::Input(format!("{path}: {what}")))?;
    let classifier = Classifier::new(trace).with_sites(&options.idle, &options.work);
    let intervals = intervals::build(trace, &focus, &classifier)?;
    let waited = waited(&intervals, &locks(finding));
    let (lock, one) = most_wanted(&waited);
    let holds = holds::of(trace, &intervals, &one);
    let roles = roles::of(trace, &intervals, &one, &holds, &finding.about.culprits);
    Ok(LockUse {
        finding: finding.id.clone(),
        title: finding.title.to_string(),
        lock: crate::label::lock(trace, lock).unwrap_or_default(),
        others: waited.len() - one.len(),
        cpus: intervals.cpus,
        length: Nanos(intervals.end),
        roles,
    })
}

/// The locks that a finding is about.
fn locks(finding: &Finding) -> FxHashSet<LockId> {
    let of_locks = finding.about.subjects.iter().filter(|key| key.kind == WaitKind::Lock);
    of_locks.map(|key| key.lock).filter(|&lock| lock != LockId::NONE).collect()
}

fn pick<'a>(findings: &'a [Finding], wanted: &str) -> std::result::Result<&'a Finding, String> {
    let has = |f: &&Finding| !locks(f).is_empty();
    let names: Vec<&str> = findings.iter().filter(has).map(|f| f.id.as_str()).collect();
    let others = match names.len() {
        0 => "none of its findings is about a lock that the recorder saw: `holdup explain` tells what they are about"
            .to_owned(),
        _ => format!("those about locks are {}", names.join(", ")),
    };
    if wanted.is_empty() {
        return findings.iter().find(has).ok_or(others);
    }
    match findings.iter().find(|f| f.id == wanted) {
        None => Err(format!("there is no finding {wanted}; {others}")),
        Some(f) if !has(&f) => Err(format!("{wanted} is about no lock that the recorder saw ({}); {others}", f.title)),
        Some(f) => Ok(f),
    }
}

/// By lock how long it was waited for, and by whom.
type Waited = BTreeMap<LockId, (u64, FxHashSet<ThreadIdx>)>;

fn waited(intervals: &Intervals, locks: &FxHashSet<LockId>) -> Waited {
    let mut waited: Waited = locks.iter().map(|&lock| (lock, Default::default())).collect();
    for wait in &intervals.waits {
        if let Some((time, threads)) = waited.get_mut(&wait.lock) {
            *time += wait.length();
            threads.insert(wait.thread);
        }
    }
    waited
}

/// The lock that was waited for longest, and all that are one with it: where each thread has a place of its own to wait, as those
/// have that wait for a monitor of Java or a semaphore of PostgreSQL, these are no locks, but the lock is behind them.
fn most_wanted(waited: &Waited) -> (LockId, FxHashSet<LockId>) {
    let most = waited.iter().max_by_key(|(lock, (time, _))| (*time, std::cmp::Reverse(**lock)));
    let Some((&lock, (_, threads))) = most else { return (LockId::NONE, FxHashSet::default()) };
    let is_place = |threads: &FxHashSet<ThreadIdx>| threads.len() < 2;
    let with_it = |(other, (_, who)): (&LockId, &(u64, FxHashSet<ThreadIdx>))| {
        (*other == lock || is_place(threads) && is_place(who)).then_some(*other)
    };
    (lock, waited.iter().filter_map(with_it).collect())
}
