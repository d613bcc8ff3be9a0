//! What held threads up, by names instead of ids: for laying two traces side by side.

use std::collections::BTreeMap;
use std::rc::Rc;

use holdup_trace::StackId;
use rustc_hash::FxHashSet;

use super::group::{self, Group, Tally};
use super::{Context, culprit};
use crate::diff::facts::{Family, Held, Under};

/// Everything that was charged, the largest first.
pub(crate) fn held_up(context: &Context) -> Vec<Held> {
    let groups = context.groups();
    let real = groups.iter().filter(|(group, tally)| group.holds_up() && tally.rank_ns > 0.0);
    real.map(|(group, tally)| held(context, group, tally)).collect()
}

fn held(context: &Context, group: &Group, tally: &Tally) -> Held {
    let who = culprit::of(context, group, tally);
    let waits_at: Rc<str> = application_name(context, tally.common_stack()).into();
    let mut held = Held {
        kind: group::kind(context, group, tally),
        family: family(group),
        function: if who.function.is_empty() { who.thread.as_str().into() } else { who.function.as_str().into() },
        process: who.process.as_str().into(),
        lock: group.lock().map_or(String::new(), |l| lock_name(context, l)),
        wait_ns: tally.thread_ns as f64,
        blame_ns: tally.rank_ns,
        waits: tally.waits as f64,
        handed_over: culprit::is_handed_over(tally),
        holds: group.lock().map_or_else(BTreeMap::new, |l| holds(context, l)),
        waits_at,
        ..Held::default()
    };
    ran_meanwhile(context, tally, &mut held);
    held
}

fn family(group: &Group) -> Family {
    match group {
        Group::Lock(_) => Family::Lock,
        Group::Serial(_) => Family::Thread,
        Group::Disk(..) => Family::Disk,
        Group::Timer(..) => Family::Sleep,
        Group::Runnable => Family::Scheduler,
        Group::Idle(..) => Family::Idle,
    }
}

/// The kernel names some locks; a futex has only its kind.
fn lock_name(context: &Context, lock: holdup_trace::LockId) -> String {
    let facts = crate::label::lock(context.trace, lock);
    facts.map_or(String::new(), |f| if f.name.is_empty() { f.kind.name().to_owned() } else { f.name })
}

/// How long the lock was held, by the function that let it go: critical sections of one lock differ.
fn holds(context: &Context, lock: holdup_trace::LockId) -> BTreeMap<Rc<str>, Vec<u64>> {
    let mut holds: BTreeMap<Rc<str>, Vec<u64>> = BTreeMap::new();
    let Some(story) = context.locks.get(&lock) else { return holds };
    for (&ns, &stack) in story.holds.iter().zip(&story.ends) {
        holds.entry(application_name(context, stack).into()).or_default().push(ns);
    }
    holds
}

fn application_name(context: &Context, stack: StackId) -> String {
    culprit::application(context, stack).map_or(String::new(), |l| context.trace.text(l.function).to_owned())
}

/// Which functions the terminals ran, by the blame of that instant.
fn ran_meanwhile(context: &Context, tally: &Tally, held: &mut Held) {
    let mut samples: Vec<_> = tally.samples.iter().collect();
    samples.sort_by_key(|(stack, _)| **stack);
    for (&stack, &weight) in samples {
        let frames = context.classifier.application_frames(stack);
        let depth = frames.len();
        let mut seen = FxHashSet::default();
        for (i, (_, location)) in frames.iter().enumerate().filter(|(_, (_, l))| seen.insert(l.function)) {
            let name: Rc<str> = context.trace.text(location.function).into();
            let under: &mut Under = held.ran.entry(name).or_default();
            under.ns += weight;
            under.depths += weight * (depth - i) as f64;
        }
        held.sampled_ns += if depth > 0 { weight } else { 0.0 };
    }
}
