//! How much of what a program runs is collecting garbage.

use holdup_trace::{StackId, StringId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::context::Context;
use super::place;
use crate::runtime::{self, Role};
use crate::schedulers;

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

/// How much of it is collecting, where that is a notable part. O(samples).
pub(super) fn of(context: &Context) -> Option<Collecting> {
    let (mut all, mut own, mut advice) = (0.0, 0.0, "");
    let mut known: FxHashMap<StringId, Option<&'static str>> = FxHashMap::default();
    for ((thread, stack), ns) in context.blame.profile.iter().filter(|((t, _), _)| context.focus.contains(*t)) {
        all += ns;
        let mut functions = place::functions(context, *stack);
        let mut collector = |f| *known.entry(f).or_insert_with(|| schedulers::collector(context.trace.text(f)));
        if let Some(found) = functions.find_map(&mut collector) {
            (own, advice) = (own + ns, found);
        } else if is_at(context, *thread, *stack) {
            own += ns;
        }
    }
    let share = own / all.max(f64::MIN_POSITIVE);
    let advice = || if advice.is_empty() { runtime::advice_for_collections("") } else { advice.replace("{}", "") };
    (share >= COLLECTING).then(|| Collecting { share, advice: advice() })
}

/// Whether a thread collects garbage where it has this stack.
pub(super) fn is_at(context: &Context, thread: ThreadIdx, stack: StackId) -> bool {
    let by_role = context.classifier.role(thread) == Some(Role::Collector);
    by_role || context.classifier.is_collecting(stack)
}
