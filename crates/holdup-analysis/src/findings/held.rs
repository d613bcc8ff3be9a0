//! What held threads up, by names instead of ids: for laying two traces side by side.

use std::collections::BTreeMap;
use std::rc::Rc;

use holdup_trace::{Amount, StackId};
use rustc_hash::FxHashSet;

use super::context::Context;
use super::tally::{Group, Tally};
use super::{culprit, group, place};
use crate::report::FindingKind;

/// What kind of thing one waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// A disk.
    Disk,
    /// Nothing that holds anybody up.
    Idle,
    /// A lock.
    #[default]
    Lock,
    /// A CPU.
    Scheduler,
    /// A time to pass.
    Sleep,
    /// A thread that has work to do.
    Thread,
}

/// What held threads up: one lock, function, disk or sleep.
#[derive(Debug, Clone, Default)]
pub struct Held {
    /// What kind of finding it is.
    pub kind: FindingKind,
    /// What one waits for there.
    pub family: Family,
    /// The culprit's function.
    pub function: Rc<str>,
    /// Its process.
    pub process: Rc<str>,
    /// The lock's name or kind; empty without one.
    pub lock: String,
    /// Where the waiters stand.
    pub waits_at: Rc<str>,
    /// Thread nanoseconds of waiting that end here.
    pub wait_ns: f64,
    /// CPU nanoseconds of idleness charged here, neighbours counted as idle.
    pub blame_ns: f64,
    /// How many waits.
    pub waits: f64,
    /// Whether it is the handing over that takes the time, not anybody's hold.
    pub handed_over: bool,
    /// How long the lock was held between two waits, in nanoseconds, by the function that let it go.
    pub holds: BTreeMap<Rc<str>, Vec<u64>>,
    /// What the terminal ran meanwhile, by function.
    pub ran: BTreeMap<Rc<str>, Under>,
    /// Sum of the weights of stacks in `ran`.
    pub sampled_ns: f64,
}

/// How much of something lies below a function.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Under {
    /// Weight of the stacks with this function.
    pub ns: f64,
    /// The same times the function's depth.
    pub depths: f64,
}

/// Everything that was charged, the largest first.
pub(crate) fn held_up(context: &Context) -> Vec<Held> {
    let mut groups = group::charged(context);
    group::settle(context, &mut groups);
    let real = groups.iter().filter(|(group, tally)| group.holds_up() && tally.rank > Amount::ZERO);
    real.map(|(group, tally)| held(context, group, tally)).collect()
}

fn held(context: &Context, group: &Group, tally: &Tally) -> Held {
    let who = culprit::of(context, group, tally);
    let waits_at: Rc<str> = application_name(context, tally.common_stack(context.classifier)).into();
    let mut held = Held {
        kind: group::kind(context, group, tally),
        family: family(group),
        function: if who.function.is_empty() { who.thread.as_str().into() } else { who.function.as_str().into() },
        process: who.process.as_str().into(),
        lock: group.lock().map_or(String::new(), |l| lock_name(context, l)),
        wait_ns: tally.waited.amount().0,
        blame_ns: tally.rank.0,
        waits: tally.waits as f64,
        handed_over: tally.is_handed_over(),
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
        Group::Timer(..) | Group::Outside(..) => Family::Sleep,
        Group::Ready(..) => Family::Scheduler,
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
    let Some(story) = context.learned.locks.get(&lock) else { return holds };
    for (&time, &stack) in story.holds.iter().zip(&story.ends) {
        holds.entry(application_name(context, stack).into()).or_default().push(time.0);
    }
    holds
}

fn application_name(context: &Context, stack: StackId) -> String {
    place::application(context, stack).map_or(String::new(), |l| context.trace.text(l.function).to_owned())
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
