//! Who sleeps a little, looks whether others are done, and sleeps again: it waits for what works meanwhile, though nothing of that shows in who
//! wakes whom.

use holdup_trace::Nanos;

use super::context::Context;
use super::doing::each_wait;
use super::tally::{Group, Tally};
use super::{idle, lock, sleep};
use crate::classify::WaitKind;
use crate::report::{Confidence, Finding};

/// Who is let go after so many sleeps waits for the end of many.
const MANY: f64 = 50.0;
/// Fewer sleeps than this are no habit.
const FEWEST: u64 = 20;
/// For more than this part of such sleep nobody of the program worked, so that it was for something else.
const NOBODY: f64 = 0.25;

/// Whether hardly any of these sleeps lets anybody go, and others of the program work nearly all the time that they take. O(waits) for those that
/// may be.
pub(super) fn is_one(context: &Context, group: &Group, tally: &Tally) -> bool {
    let is_sleep = matches!(group, Group::Timer(..)) && !context.focus.is_everything();
    if !is_sleep || !tally.locks.is_empty() || sleep::tries_lock(context, tally) {
        return false;
    }
    let for_itself = sleep::is_for_itself(tally);
    let each = Nanos(tally.waited.0 / tally.threads.len().max(1) as u64);
    let slept = if for_itself { each } else { tally.longest };
    let works = idle::known_idle(context).is_some_and(|idle| idle.seconds() < NOBODY * slept.seconds());
    if !works || lock::is_kept_meanwhile(context, group, tally) {
        return false;
    }
    let (count, all) = sleeps(context, tally);
    let many = tally.longest.seconds() * count as f64 > MANY * all.seconds();
    count >= FEWEST && (for_itself || many)
}

/// How often they slept there, and for how long in all.
fn sleeps(context: &Context, tally: &Tally) -> (u64, Nanos) {
    let (mut count, mut all) = (0, Nanos::ZERO);
    let is_own = |thread, stack| tally.by_thread.contains_key(&thread) && tally.sites.contains_key(&stack);
    each_wait(
        context,
        |wait| wait.kind == WaitKind::Timer && is_own(wait.thread, wait.stack),
        |wait| {
            count += 1;
            all += Nanos(wait.woken.saturating_sub(wait.start));
        },
    );
    (count, all)
}

/// Says that what it sleeps may be nobody's loss.
pub(super) fn doubt(f: &mut Finding) {
    if f.about.looks {
        f.confidence = Confidence::Low;
        f.doubts.push("others of the program worked meanwhile: it may only look whether they are done".to_owned());
    }
}
