//! Which of the functions that lie on most of something tells most.

use holdup_trace::tables::LocationRow;
use holdup_trace::{StackId, StringId};
use rustc_hash::FxHashMap;

use super::super::callers::{Callers, count};
use super::super::context::Context;
use super::wide::{Function, wide};
use super::{COVERAGE, RARE, first, is_mostly_nameless, known, nameless};
use crate::classify::Classifier;

/// From this share of a function's time on a caller matters.
const ELSEWHERE: f64 = 0.05;
/// A function of less mean depth is where its threads begin.
const OUTERMOST: f64 = 1.5;
/// Inside of one that covers all, and does little itself, this share is enough.
const PART: f64 = 0.3;
/// What another file of code does for one that does next to nothing itself: this share.
const LARGER_PART: f64 = 0.45;
const LITTLE: f64 = 0.03;
/// What lies on so much covers all.
const ALL: f64 = 0.9;

/// Like [`covering`], but a helper that others call, too, gives way to its caller, unless that is where the thread
/// begins: `mix` says nothing where `update_book` and everybody else mixes.
pub(in super::super) fn specific(context: &Context, samples: &FxHashMap<StackId, f64>) -> Option<LocationRow> {
    specific_in(context.classifier, samples, || context.callers.get_or_init(|| all_callers(context)))
}

/// The same where `callers` gives all that called each function in the whole trace.
pub(crate) fn specific_in<'c>(
    classifier: &Classifier,
    samples: &FxHashMap<StackId, f64>,
    callers: impl Fn() -> &'c Callers,
) -> Option<LocationRow> {
    let mut named = wide(samples, COVERAGE, |stack| classifier.application_frames(stack));
    // What lies on next to none of all is no answer to what ran.
    let all = known(samples);
    named.retain(|function| function.weight >= RARE * all);
    let of_language = || first(wide(samples, COVERAGE, |stack| classifier.language_frames(stack)));
    if named.is_empty() || is_mostly_nameless(classifier, samples) {
        return nameless(classifier, samples).or_else(of_language);
    }
    if let Some(theirs) = of_library_alone(classifier, samples) {
        return first(wide(&theirs, COVERAGE, |stack| classifier.language_frames(stack)));
    }
    let mut wide_ones = named.into_iter().peekable();
    loop {
        let function = wide_ones.next()?;
        // What calls the program's functions one by one, as a test runner does, tells less than any of them.
        let is_installed = |of: &Function| classifier.is_installed(of.module);
        let tells_more = |next: &Function| next.depth() > OUTERMOST && (is_installed(&function) || !is_installed(next));
        if !wide_ones.peek().is_some_and(tells_more)
            || !is_called_elsewhere(classifier, callers(), function.name, samples)
        {
            return Some(part_of(classifier, &function, samples).unwrap_or(function).hottest_line());
        }
    }
}

/// The innermost that covers a part, where what is done is spread over several functions: of a function that covers all because threads begin
/// there, and does little itself, and of one that does next to nothing itself in another file of code (a library, a plug-in).
fn part_of(classifier: &Classifier, function: &Function, samples: &FxHashMap<StackId, f64>) -> Option<Function> {
    let all: f64 = samples.values().sum();
    if function.weight < ALL * all {
        return None;
    }
    let innermost = |least: f64, is_meant: &dyn Fn(&Function) -> bool| {
        let parts = wide(samples, least, |stack| classifier.application_frames(stack));
        parts.into_iter().find(|part| part.depth() > OUTERMOST.max(function.depth()) && is_meant(part))
    };
    if function.depth() <= OUTERMOST && function.own < 0.5 * function.weight {
        return innermost(PART, &|_| true);
    }
    let hands_on = function.own < LITTLE * function.weight;
    if hands_on { innermost(LARGER_PART, &|part| part.module != function.module) } else { None }
}

/// What runs in threads or tasks that a language's library has begun, with nothing of the program's own on their stacks, if that is most of
/// it: those of a pool that unpack what they are sent, of a server that shakes hands.
fn of_library_alone(classifier: &Classifier, samples: &FxHashMap<StackId, f64>) -> Option<FxHashMap<StackId, f64>> {
    let is_own = |stack: StackId| classifier.application_leaf(stack).is_some();
    let (own, others): (FxHashMap<_, _>, FxHashMap<_, _>) = samples.iter().partition(|(stack, _)| is_own(**stack));
    let library: FxHashMap<StackId, f64> =
        others.into_iter().filter(|(stack, _)| !classifier.language_frames(*stack).is_empty()).collect();
    (own.values().sum::<f64>() < library.values().sum()).then_some(library)
}

/// The innermost function of a library's code that covers all of this, where little is the program's own.
pub(in super::super) fn of_library(classifier: &Classifier, samples: &FxHashMap<StackId, f64>) -> Option<LocationRow> {
    let theirs = of_library_alone(classifier, samples)?;
    first(wide(&theirs, ALL, |stack| classifier.language_frames(stack)))
}

/// The innermost function of a package that was installed for the program on which most of this lies.
pub(in super::super) fn runner(classifier: &Classifier, samples: &FxHashMap<StackId, f64>) -> Option<LocationRow> {
    let of_package = |stack: StackId| {
        let frames = classifier.application_frames(stack).into_iter();
        frames.filter(|(_, location)| classifier.is_installed(location.module)).collect()
    };
    let mut wide = wide(samples, COVERAGE, of_package);
    wide.retain(|function| function.weight >= COVERAGE * known(samples));
    first(wide)
}

/// Whether callers that do not occur in `samples` account for a part of what the function ran.
fn is_called_elsewhere(
    classifier: &Classifier,
    callers: &Callers,
    function: StringId,
    samples: &FxHashMap<StackId, f64>,
) -> bool {
    let mut here = Callers::default();
    samples.iter().for_each(|(stack, weight)| count(classifier, *stack, *weight, &mut here));
    let (Some(here), Some(all)) = (here.get(&function), callers.get(&function)) else { return false };
    let matters = ELSEWHERE * here.values().sum::<f64>();
    let other = all.iter().filter(|(caller, _)| here.get(caller).is_none_or(|weight| *weight < matters));
    other.map(|(_, ns)| ns).sum::<f64>() >= ELSEWHERE * all.values().sum::<f64>()
}

fn all_callers(context: &Context) -> Callers {
    let mut all = Callers::default();
    for ((_, stack), ns) in &context.blame.profile {
        count(context.classifier, *stack, *ns, &mut all);
    }
    all
}
