//! How much of what a program runs is collecting garbage.

use holdup_trace::{StackId, StringId, ThreadIdx};

use super::context::Context;
use crate::runtime::{self, Role};

/// From this share of the CPU time on, collecting garbage is told.
const COLLECTING: f64 = 0.1;
/// And from here on it is what the program mostly does.
const MOST: f64 = 0.5;

/// What of the program's CPU time goes into collecting garbage.
pub(super) struct Collecting {
    /// Its share.
    pub(super) share: f64,
    /// What to do about it.
    pub(super) advice: String,
}

impl Collecting {
    pub(super) fn is_most(&self) -> bool {
        self.share > MOST
    }

    /// For the evidence.
    pub(super) fn line(&self) -> String {
        format!("{:.0} % of the CPU samples are in the garbage collector", 100.0 * self.share)
    }
}

/// Which share of the CPU samples in focus is collecting; `None` if there are none. O(samples).
pub(super) fn share(context: &Context) -> Option<f64> {
    share_of(context, |_| true)
}

/// Of threads that are picked.
fn share_of(context: &Context, is_it: impl Fn(ThreadIdx) -> bool) -> Option<f64> {
    let (mut all, mut own) = (0.0, 0.0);
    for (thread, stack, ns) in context.profile().filter(|(thread, ..)| is_it(*thread)) {
        all += ns;
        own += if is_at(context, thread, stack) { ns } else { 0.0 };
    }
    (all > 0.0).then(|| own / all)
}

/// How much of what is in focus runs is collecting, where that is a notable part. O(samples).
pub(super) fn of(context: &Context) -> Option<Collecting> {
    of_threads(context, |_| true)
}

/// Of what a program runs. O(samples).
pub(super) fn of_program(context: &Context, program: StringId) -> Option<Collecting> {
    of_threads(context, |thread| context.program(thread) == program)
}

fn of_threads(context: &Context, is_it: impl Fn(ThreadIdx) -> bool) -> Option<Collecting> {
    let share = share_of(context, &is_it).filter(|share| *share >= COLLECTING)?;
    let mut own = context.profile().filter(|(thread, ..)| is_it(*thread));
    let own = own.find_map(|(_, stack, _)| context.classifier.collector_at(stack));
    let advice = own.map_or_else(|| runtime::advice_for_collections(""), |own| own.replace("{}", ""));
    Some(Collecting { share, advice })
}

/// Whether a thread collects garbage where it has this stack.
pub(super) fn is_at(context: &Context, thread: ThreadIdx, stack: StackId) -> bool {
    let by_role = context.classifier.role(thread) == Some(Role::Collector);
    by_role || context.classifier.is_collecting(stack)
}
