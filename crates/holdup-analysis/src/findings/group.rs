//! Which charges make one finding, and of which kind.

use rustc_hash::FxHashMap;

use super::context::Context;
use super::tally::{Group, Tally, Why};
use super::{collection, inside, lock, merge, preempt, profile, sched};
use crate::blame::{Key, Terminal};
use crate::classify::WaitKind;
use crate::report::FindingKind;

/// The group of a cell; none for cells that are no finding.
fn of(context: &Context, throttled: &sched::Throttled, key: &Key) -> Option<Group> {
    use Terminal::*;
    let program = context.program(key.thread);
    let site = || context.classifier.facts(key.site).application;
    let locked = key.kind == WaitKind::Lock;
    let ready = |why| Group::Ready(program, why);
    Some(match key.terminal {
        Waking if !locked => ready(Why::Waking),
        _ if key.is_for_thread() => Group::Serial(key.thread),
        // Whoever sleeps with a lock in its hands is in that lock's story.
        Running | NotRunning | Handoff | Waking | Overhead | UnknownHolder | Timer | Outside if locked => {
            Group::Lock(key.lock)
        }
        Stalled | Misplaced | Starved if throttled.contains(context, key) => ready(Why::Throttled),
        Disk => Group::Disk(program, site()),
        Timer => Group::Timer(program, site()),
        Outside => Group::Outside(program, site()),
        Stalled => ready(Why::Stalled),
        Turn => ready(Why::Turn),
        Misplaced => ready(Why::Misplaced),
        Barred => ready(Why::Barred),
        Starved => ready(Why::Starved),
        IdleByDesign => Group::Idle(program, site()),
        Running | NotRunning | Handoff | Waking | Overhead | UnknownHolder | Unknown | Serial => return None,
    })
}

/// All charges by group, like ones together.
pub(super) fn charged(context: &Context) -> Vec<(Group, Tally)> {
    let mut groups: FxHashMap<Group, Tally> = FxHashMap::default();
    let throttled = sched::Throttled::new(context);
    for (key, cell) in &context.blame.cells {
        if let Some(group) = of(context, &throttled, key) {
            groups.entry(group).or_default().add(key, cell);
        }
    }
    merge::merged(context, groups)
}

/// What was charged, as the findings show it.
pub(super) fn settle(context: &Context, groups: &mut Vec<(Group, Tally)>) {
    merge_disk(groups);
    groups.iter_mut().for_each(|(_, t)| t.starved = preempt::is_starved(context, t));
}

/// Share of a disk in a lock's story from which on the disk is the finding.
const DISK_UNDER_LOCK: f64 = 0.15;

/// A lock that is held across a disk wait, and that disk wait, are one finding: the disk's, if it matters.
fn merge_disk(groups: &mut Vec<(Group, Tally)>) {
    for at in (0..groups.len()).rev() {
        let (Some(lock), rank) = (groups[at].0.lock(), groups[at].1.rank) else { continue };
        let holds_it = |t: &Tally| t.locks.contains(&lock) && t.rank > DISK_UNDER_LOCK * (t.rank + rank);
        let disk = groups.iter().position(|(g, t)| matches!(g, Group::Disk(..)) && holds_it(t));
        if let Some(disk) = disk {
            let (_, lock) = groups[at].clone();
            groups[disk].1.absorb(lock);
            groups.remove(at);
        }
    }
}

/// What kind of finding a group is.
pub(super) fn kind(context: &Context, group: &Group, tally: &Tally) -> FindingKind {
    match group {
        Group::Serial(_) if collection::is(context, group, tally) => FindingKind::Gc,
        Group::Lock(id) if lock::is_convoy(context, *id, tally) => FindingKind::Convoy,
        Group::Lock(_) | Group::Serial(_) if tally.starved => FindingKind::OwnerNotRunning,
        Group::Lock(_) => FindingKind::LockHeld,
        Group::Serial(_) if is_uneven(context, group, tally) => FindingKind::Imbalance,
        Group::Serial(_) => FindingKind::Serial,
        Group::Disk(..) => FindingKind::Disk,
        Group::Timer(..) => FindingKind::SleepPolling,
        Group::Ready(_, why) => sched::kind(context, *why, tally),
        Group::Outside(..) => FindingKind::Network,
        Group::Idle(..) => FindingKind::IdleByDesign,
    }
}

/// Whether the waiters' own work is like what they wait for: it is unevenly spread.
fn is_uneven(context: &Context, group: &Group, tally: &Tally) -> bool {
    !inside::migrates(context, group, tally) && profile::waiters_run_the_same(context, group, tally)
}
