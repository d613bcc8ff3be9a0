//! How much could be gained: what each finding takes out of the run, and how long the run is without it.

use holdup_trace::{Result, StackId, ThreadIdx};

use super::context::Context;
use super::culprit::of_thread;
use super::place;
use super::tally::{Group, Tally};
use crate::blame::{Key, Study, Window};
use crate::classify::WaitKind;
use crate::replay::{AT_ONCE, Taken, Work, bound, replay};
use crate::report::{Finding, FindingKind};

/// More lost time, or a greater share of waits that nobody is known to have ended, than this: the trace cannot tell.
const MUCH_UNKNOWN: f64 = 0.1;

/// What mending a finding could save.
pub(super) fn taken(context: &Context, group: &Group, tally: &Tally, finding: &Finding) -> Option<Taken> {
    if !group.holds_up() {
        return None;
    }
    let mut taken = Taken::default();
    let spans = &context.blame.spans;
    let mut add = |key: &Key| taken.add(key, spans.get(key).map_or(&[], |spans| spans));
    tally.subjects().for_each(&mut add);
    if let Some(lock) = group.lock() {
        // Its holder may wait for a disk meanwhile, which is a finding of its own, or with others.
        spans.keys().filter(|key| key.kind == WaitKind::Lock && key.lock == lock).for_each(&mut add);
    }
    Some(match finding.kind {
        // What is done under the lock has to be done nevertheless, but the lock itself costs nothing any more.
        FindingKind::LockHeld | FindingKind::Convoy => taken.with_stacks(in_kernel(context)).with_work(Work::Stays),
        FindingKind::Imbalance => taken.with_work(Work::Spread),
        FindingKind::Disk | FindingKind::SleepPolling => {
            taken.with_stacks(of_function(context, finding)).with_stacks(in_kernel(context))
        }
        FindingKind::Serial => taken.with_stacks(of_function(context, finding)),
        _ => taken,
    })
}

/// What it could save if the culprit's side answered at once; where it is a thread that the others wait for, and no wait of its own.
pub(super) fn taken_of_turns(context: &Context, finding: &Finding) -> Option<Taken> {
    if finding.kind != FindingKind::Serial {
        return None;
    }
    let mut taken = Taken::default();
    let of_side = |key: &Key| {
        let culprit = of_thread(context, key.thread);
        culprit.process == finding.culprit.process && culprit.thread == finding.culprit.thread
    };
    let works = context.blame.spans.iter().filter(|(key, _)| key.is_for_thread() && of_side(key));
    works.for_each(|(key, spans)| taken.add(key, spans));
    Some(taken.with_stacks(of_function(context, finding)))
}

/// Stacks of the kernel's CPU time: who waits for a disk, a lock or a time no longer also goes to sleep, wakes others and calls
/// the kernel less often. How much less nobody can tell, so a bound counts none of it as work that remains.
fn in_kernel(context: &Context) -> Vec<StackId> {
    let inside = |stack: &StackId| context.classifier.facts(*stack).in_kernel;
    context.blame.profile.iter().map(|((_, stack), _)| *stack).filter(inside).collect()
}

/// Stacks of the culprit's function in processes of its name.
fn of_function(context: &Context, finding: &Finding) -> Vec<StackId> {
    let (process, function) = (finding.culprit.process.as_str(), finding.culprit.function.as_str());
    if function.is_empty() {
        return Vec::new();
    }
    let trace = context.trace;
    let process_of = |thread: ThreadIdx| trace.threads.process.get(thread.index()).map(|name| trace.text(*name));
    let own = context.blame.profile.iter().filter(|((thread, _), _)| process_of(*thread) == Some(process));
    let mut stacks: Vec<StackId> = own.map(|((_, stack), _)| *stack).collect();
    stacks.sort_unstable();
    stacks.dedup();
    stacks.retain(|stack| place::functions(context, *stack).any(|name| trace.text(name) == function));
    stacks
}

/// Says of each finding how much faster the run could be without it.
pub(super) fn fill(context: &Context, findings: &mut [(Finding, Option<Taken>)]) -> Result<()> {
    if context.focus.is_everything() || is_unknown(context) {
        return Ok(());
    }
    let (from, to) = context.blame.window;
    let Context { trace, timeline, focus, classifier, blame, spins, .. } = *context;
    let study = Study { trace, timeline, focus, classifier, spins, window: Window { from, to } };
    let mut wanted: Vec<(&mut Finding, Taken)> =
        findings.iter_mut().filter_map(|(finding, taken)| Some((finding, taken.take()?))).collect();
    for some in wanted.chunks_mut(AT_ONCE) {
        let taken: Vec<Taken> = some.iter_mut().map(|(_, taken)| std::mem::take(taken)).collect();
        let lengths = replay(&study, blame, &taken)?;
        some.iter_mut().enumerate().for_each(|(n, (finding, _))| finding.gain_at_most = bound(&lengths, n));
    }
    Ok(())
}

fn is_unknown(context: &Context) -> bool {
    let (cpu, health) = (&context.blame.cpu, &context.timeline.health);
    let waits = context.timeline.waits() as f64;
    cpu.lost > MUCH_UNKNOWN * cpu.total || health.unknown_wakers as f64 > MUCH_UNKNOWN * waits
}
