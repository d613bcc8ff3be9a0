//! Which charges make one finding, and of which kind.

use holdup_trace::StringId;
use rustc_hash::FxHashMap;

use super::context::Context;
use super::tally::{Group, Tally, Why};
use super::{culprit, lock, preempt, profile, sched};
use crate::blame::{Key, Terminal};
use crate::classify::WaitKind;
use crate::report::FindingKind;

/// The group of a cell; none for cells that are no finding.
fn of(context: &Context, key: &Key) -> Option<Group> {
    use Terminal::*;
    let pid = context.pid(key.thread);
    let site = || context.classifier.facts(key.site).application;
    let locked = key.kind == WaitKind::Lock;
    let ready = |why| Group::Ready(context.program(key.thread), why);
    Some(match key.terminal {
        Waking if !locked => ready(Why::Waking),
        _ if key.is_for_thread() => Group::Serial(key.thread),
        // Whoever sleeps with a lock in its hands is in that lock's story.
        Running | NotRunning | Handoff | Waking | Overhead | UnknownHolder | Timer | Outside if locked => {
            Group::Lock(key.lock)
        }
        Disk => Group::Disk(pid, site()),
        Timer => Group::Timer(pid, site()),
        Outside => Group::Outside(pid, site()),
        Stalled => ready(Why::Stalled),
        Turn => ready(Why::Turn),
        Misplaced => ready(Why::Misplaced),
        Barred => ready(Why::Barred),
        Starved => ready(Why::Starved),
        IdleByDesign => Group::Idle(pid, site()),
        Running | NotRunning | Handoff | Waking | Overhead | UnknownHolder | Unknown | Serial => return None,
    })
}

/// All charges by group, those of one serial function together.
pub(super) fn charged(context: &Context) -> Vec<(Group, Tally)> {
    let mut groups: FxHashMap<Group, Tally> = FxHashMap::default();
    for (key, cell) in &context.blame.cells {
        if let Some(group) = of(context, key) {
            groups.entry(group).or_default().add(key, cell);
        }
    }
    merge_serial(context, groups)
}

/// What was charged, as the findings show it.
pub(super) fn settle(context: &Context, groups: &mut Vec<(Group, Tally)>) {
    merge_disk(groups);
    groups.iter_mut().for_each(|(_, t)| t.starved = preempt::is_starved(context, t));
}

/// Threads of one process that run the same function while others wait are one finding.
fn merge_serial(context: &Context, groups: FxHashMap<Group, Tally>) -> Vec<(Group, Tally)> {
    let mut groups: Vec<(Group, Tally)> = groups.into_iter().collect();
    groups.sort_by(|a, b| b.1.blame().0.total_cmp(&a.1.blame().0).then(a.0.cmp(&b.0)));
    let mut merged: Vec<(Group, Tally)> = Vec::new();
    let mut places: FxHashMap<(u32, StringId), usize> = FxHashMap::default();
    for (group, tally) in groups {
        let Group::Serial(thread) = group else {
            merged.push((group, tally));
            continue;
        };
        let function = culprit::function_of(context, &group, &tally).map_or(StringId::default(), |l| l.function);
        let place = (context.pid(thread), function);
        match places.get(&place) {
            Some(&at) => merged[at].1.absorb(tally),
            None => {
                places.insert(place, merged.len());
                merged.push((group, tally));
            }
        }
    }
    merged
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
        Group::Lock(id) if lock::is_convoy(context, *id, tally) => FindingKind::Convoy,
        Group::Lock(_) | Group::Serial(_) if tally.starved => FindingKind::OwnerNotRunning,
        Group::Lock(_) => FindingKind::LockHeld,
        Group::Serial(_) if profile::waiters_run_the_same(context, group, tally) => FindingKind::Imbalance,
        Group::Serial(_) => FindingKind::Serial,
        Group::Disk(..) => FindingKind::Disk,
        Group::Timer(..) => FindingKind::SleepPolling,
        Group::Ready(_, why) => sched::kind(*why, tally),
        Group::Outside(..) => FindingKind::Network,
        Group::Idle(..) => FindingKind::IdleByDesign,
    }
}
