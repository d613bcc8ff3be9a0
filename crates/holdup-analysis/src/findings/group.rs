//! Which charges make one finding, and of which kind.

use holdup_trace::{StackId, StringId};
use rustc_hash::FxHashMap;

use super::context::Context;
use super::tally::{Group, Tally, Why};
use super::{collection, inside, lock, merge, preempt, sched, stuck, uneven};
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
        Running | NotRunning | Stopped | Handoff | Waking | Overhead | UnknownHolder | Stuck | Timer | Outside
            if locked =>
        {
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
        // What a runtime keeps for itself is nobody's idleness.
        IdleByDesign if context.classifier.role(key.thread).is_some() => return None,
        IdleByDesign => Group::Idle(program, site()),
        Running | NotRunning | Stopped | Handoff | Waking | Overhead | UnknownHolder | Stuck | Unknown | Serial => {
            return None;
        }
    })
}

/// If more than this share of a program's waits of a kind are at one place, those of which no stack was taken are taken to be there, too.
const LIKELY: f64 = 0.5;

/// Waits of which no stack was taken go to the place of most others of their program and kind: the recorder leaves out
/// stacks of places that it knows.
fn place_stackless(groups: &mut FxHashMap<Group, Tally>, stackless: FxHashMap<Group, Tally>) {
    let mut placed: Vec<(Group, Tally)> = Vec::new();
    for (group, tally) in stackless {
        let like = || groups.iter().filter(|(other, _)| other.is_like(&group));
        let all: f64 = like().map(|(_, tally)| tally.blame().0).sum();
        let most = like().max_by(|a, b| a.1.blame().0.total_cmp(&b.1.blame().0).then(b.0.cmp(a.0)));
        let most = most.filter(|(_, tally)| tally.blame().0 > LIKELY * all).map(|(most, _)| *most);
        placed.push((most.unwrap_or(group), tally));
    }
    for (group, tally) in placed {
        groups.entry(group).or_default().absorb(tally);
    }
}

/// All charges by group, like ones together.
pub(super) fn charged(context: &Context) -> Vec<(Group, Tally)> {
    let mut groups: FxHashMap<Group, Tally> = FxHashMap::default();
    let mut stackless: FxHashMap<Group, Tally> = FxHashMap::default();
    let (throttled, mut useful) = (sched::Throttled::new(context), Useful::default());
    for (key, cell) in &context.blame.cells {
        let group = of(context, &throttled, key);
        if let Some(group) = group.filter(|group| !sched::is_incredible(context, group, cell)) {
            let is_stackless = key.site == StackId::NONE && group.place().is_some();
            let share = useful.share(context, &group, key);
            let groups = if is_stackless { &mut stackless } else { &mut groups };
            let tally = groups.entry(group).or_default();
            tally.add(key, cell, share);
            if key.terminal == Terminal::IdleByDesign && has_no_task(context, key) {
                tally.set_aside(key, cell);
            }
        }
    }
    place_stackless(&mut groups, stackless);
    merge::merged(context, groups)
}

/// Whether a thread waits for whichever task of its scheduler can run. One that looks for input until then waits for a timer of the tasks,
/// as they all do.
fn has_no_task(context: &Context, key: &Key) -> bool {
    let facts = context.classifier.facts(key.site);
    facts.parked && (key.kind != WaitKind::Timer || facts.kind != Some(WaitKind::Input))
}

/// Which share of a charge counts.
#[derive(Default)]
struct Useful {
    /// By program: the share in what it missed of those who are left out.
    left_out: FxHashMap<StringId, f64>,
}

impl Useful {
    /// A CPU denied to one who would only have spun there is no lost work, what its client or server does on one it would have to
    /// wait for in any case, and the recorder is there only now.
    fn share(&mut self, context: &Context, group: &Group, key: &Key) -> f64 {
        let worked = || 1.0 - context.wasted(key.thread);
        match group {
            Group::Ready(program, Why::Starved) => {
                let left_out = self.left_out.entry(*program);
                worked() * (1.0 - left_out.or_insert_with(|| sched::share_left_out(context, *program)).min(1.0))
            }
            Group::Ready(..) => worked(),
            _ => 1.0,
        }
    }
}

/// Fewer waits than this for the world outside tell nothing of a program that nobody asks about.
const FEW_ARRIVALS: u64 = 3;

/// Whether it says nothing: for a lock's own calls alone nobody waits, and of a machine's many programs some got something just once, and nobody
/// knows whether they wanted it.
pub(super) fn is_chance(context: &Context, group: &Group, tally: &Tally) -> bool {
    let is_seldom = matches!(group, Group::Outside(..)) && tally.waits < FEW_ARRIVALS;
    group.is_lock() && tally.threads.is_empty() || context.focus.is_everything() && is_seldom
}

/// What was charged, as the findings show it.
pub(super) fn settle(context: &Context, groups: &mut Vec<(Group, Tally)>) {
    merge_disk(groups);
    groups.iter_mut().for_each(|(_, t)| t.starved = !inside::is_parked(context, t) && preempt::is_starved(context, t));
}

/// Share of a disk in a lock's story from which on the disk is the finding.
const DISK_UNDER_LOCK: f64 = 0.3;

/// A lock that is held across a disk wait, and that disk wait, are one finding: the disk's, if it matters, and whoever has the lock does not wait
/// longer for something else.
fn merge_disk(groups: &mut Vec<(Group, Tally)>) {
    for at in (0..groups.len()).rev() {
        let (Some(lock), kept) = (groups[at].0.lock(), &groups[at].1) else { continue };
        let (rank, elsewhere) = (kept.rank, kept.outside + kept.slept + kept.stuck);
        let matters = |t: &Tally| t.rank > DISK_UNDER_LOCK * (t.rank + rank) && t.rank > elsewhere;
        let holds_it = |t: &Tally| t.locks.contains(&lock) && matters(t);
        let disk = groups.iter().position(|(g, t)| matches!(g, Group::Disk(..)) && holds_it(t));
        if let Some(disk) = disk {
            let (_, mut lock) = groups[at].clone();
            // Where else its holders wait is not where the disk is waited for.
            lock.sites.clear();
            groups[disk].1.absorb(lock);
            groups.remove(at);
        }
    }
}

/// What kind of finding a group is.
pub(super) fn kind(context: &Context, group: &Group, tally: &Tally) -> FindingKind {
    match group {
        Group::Serial(_) if collection::is(context, group, tally) => FindingKind::Gc,
        Group::Lock(_) if stuck::is(group, tally) => FindingKind::LockHeld,
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

/// Whether others' own work is like what is waited for: it is unevenly spread. Where never two work at once, none is spread.
fn is_uneven(context: &Context, group: &Group, tally: &Tally) -> bool {
    context.timeline.peak_parallelism() > 1
        && !inside::migrates(context, group, tally)
        && uneven::others_run_the_same(context, group, tally)
}
