//! Who did it, in which function.

use std::collections::BTreeMap;

use holdup_trace::tables::LocationRow;
use holdup_trace::{FrameId, StackId, StringId, Table, ThreadIdx, is_made_at_run_time};
use rustc_hash::FxHashMap;

use super::callers::{Callers, count};
use super::context::Context;
use super::crew::Crew;
use super::place::{self, any_user, application, place};
use super::tally::{Group, Tally, Why};
use super::{inside, instruction, lock, sched};
use crate::classify::{Classifier, is_library};
use crate::report::{Activity, Culprit, WorkedOn};
use crate::runtime;

mod specific;
mod wide;

pub(crate) use specific::specific_in;
pub(super) use specific::{of_library, runner, specific};
use wide::{Function, wide};

/// A function must cover this share of the blame to be the culprit; the innermost such one is.
const COVERAGE: f64 = 0.6;
/// A function that lies on less of what ran is not what ran.
const RARE: f64 = 0.05;

/// The culprit of a group: a program, its function, and the thread of it that did most of that.
pub(super) fn of(context: &Context, group: &Group, tally: &Tally) -> Culprit {
    let crew = Crew::of(context, tally);
    if let Group::Ready(program, why) = group {
        let neighbour = || sched::strangers(context, *program).first().map_or(ThreadIdx::NONE, |n| n.thread);
        let own = || crew.threads.first().copied().unwrap_or(ThreadIdx::NONE);
        return of_thread(context, if *why == Why::Starved { neighbour() } else { own() });
    }
    let (samples, function) = (samples_of(context, group, tally, &crew), function_in(context, group, tally, &crew));
    let thread = function.and_then(|l| busiest(context, tally, &crew, &l)).or(crew.threads.first().copied());
    let mut culprit = of_thread(context, thread.unwrap_or(ThreadIdx::NONE));
    (culprit.threads, culprit.processes) = (crew.threads.len(), crew.processes);
    culprit.works_on = works_on(context, tally.ends().iter().map(|(thread, blame)| (*thread, *blame)));
    culprit.activity = if group.holds_up() || !tally.is_asleep() { tally.activity() } else { Activity::Slept };
    let Some(location) = function.filter(|l| !runs_anything(context, l)) else {
        culprit.function = inside::stands_for(context, &samples).to_owned();
        return culprit;
    };
    tell_function(context, &mut culprit, &[&samples, &tally.sites], &location);
    if runs(group) {
        culprit.instruction = instruction::hottest(context.trace, context.disassembler, &samples, location.function);
    }
    culprit
}

/// Whether a function is the part of an interpreter that runs whatever the program has.
pub(super) fn runs_anything(context: &Context, location: &LocationRow) -> bool {
    runtime::runs_anything(context.trace.text(location.module), context.trace.text(location.function))
}

/// Whether it is code that was compiled at run time and has no names.
pub(super) fn is_made(context: &Context, location: &LocationRow) -> bool {
    is_made_at_run_time(context.trace.text(location.module))
}

/// The thread that ran the function most while others waited for it.
fn busiest(context: &Context, tally: &Tally, crew: &Crew, function: &LocationRow) -> Option<ThreadIdx> {
    let mut threads: FxHashMap<ThreadIdx, f64> = FxHashMap::default();
    let on_it = tally.ran_by(&crew.threads).filter(|(_, stack, _)| place::is_on(context, *stack, function));
    on_it.for_each(|(thread, _, weight)| *threads.entry(thread).or_default() += weight);
    threads.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(thread, _)| thread)
}

/// Process and thread, without a function.
pub(super) fn of_thread(context: &Context, thread: ThreadIdx) -> Culprit {
    if thread.index() >= context.trace.threads.len() {
        return Culprit::default();
    }
    let row = context.trace.threads.row(thread.index());
    Culprit {
        process: context.trace.text(row.process).to_owned(),
        pid: row.pid,
        thread: context.trace.text(row.name).to_owned(),
        tid: row.tid,
        works_on: works_on(context, std::iter::once((thread, 1.0))),
        ..Culprit::default()
    }
}

/// Names its function, and what calls that in the first of `stacks` that tells.
pub(super) fn tell_function(
    context: &Context,
    culprit: &mut Culprit,
    stacks: &[&FxHashMap<StackId, f64>],
    location: &LocationRow,
) {
    culprit.function = context.trace.text(location.function).to_owned();
    culprit.module = context.trace.text(location.module).to_owned();
    culprit.source = context.source(location);
    if let Some(caller) = stacks.iter().find_map(|stacks| caller(context, stacks, location)) {
        culprit.called_by = context.trace.text(caller.function).to_owned();
        culprit.called_at = caller.at.map_or(String::new(), |at| context.source(&at));
    }
}

/// What the processes of `threads` worked on, by the share of their weights.
fn works_on(context: &Context, threads: impl Iterator<Item = (ThreadIdx, f64)>) -> Vec<WorkedOn> {
    let (mut shares, mut total) = (BTreeMap::<StringId, f64>::new(), 0.0);
    for (thread, weight) in threads {
        total += weight;
        if let Some(what) = context.timeline.subject(thread) {
            *shares.entry(what).or_default() += weight;
        }
    }
    let mut all: Vec<WorkedOn> = shares
        .into_iter()
        .map(|(what, weight)| WorkedOn {
            what: context.trace.text(what).to_owned(),
            share: weight / total.max(f64::MIN_POSITIVE),
        })
        .collect();
    all.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.what.cmp(&b.what)));
    all
}

fn runs(group: &Group) -> bool {
    !matches!(group, Group::Disk(..) | Group::Timer(..) | Group::Idle(..))
}

/// The samples that show what the culprit did: those weighted by blame, else all of its threads'.
fn samples_of(context: &Context, group: &Group, tally: &Tally, crew: &Crew) -> FxHashMap<StackId, f64> {
    let mut samples: FxHashMap<StackId, f64> = FxHashMap::default();
    tally.ran_by(&crew.threads).for_each(|(_, stack, weight)| *samples.entry(stack).or_default() += weight);
    if samples.is_empty() && runs(group) {
        let all = crew.threads.iter().flat_map(|t| context.blame.samples_of(*t));
        all.for_each(|(stack, ns)| *samples.entry(stack).or_default() += ns);
    }
    samples
}

/// What calls a function, and where it does so most often, if that is known.
struct Caller {
    function: StringId,
    at: Option<LocationRow>,
}

/// The function that called this one in most of the weight; where it is of a package that was installed for the program, of a library, or of a
/// language's runtime and not in the language, the innermost of the program's own that did, be it at some removes.
fn caller(context: &Context, stacks: &FxHashMap<StackId, f64>, location: &LocationRow) -> Option<Caller> {
    let function = location.function;
    let is_interpreted =
        |l: &LocationRow| runtime::is_interpreted(context.trace.text(l.module), context.trace.text(l.function));
    let is_installed = runtime::is_installed(context.trace.text(location.module));
    if is_installed || !is_interpreted(location) {
        let is_meant = |(_, l): &(FrameId, LocationRow)| is_installed || is_interpreted(l);
        let own = wide(stacks, COVERAGE, |stack| place::own_frames(context, stack).filter(is_meant).collect());
        let own = own.into_iter().next().map(|own| Caller { function: own.name, at: Some(own.hottest_line()) });
        if own.is_some() || is_installed {
            return own;
        }
    }
    if let Some(own) = of_program(context, stacks, location) {
        return Some(own);
    }
    let mut callers = Callers::default();
    let mut ordered: Vec<_> = stacks.iter().collect();
    ordered.sort_by_key(|(stack, _)| **stack);
    ordered.into_iter().for_each(|(s, weight)| count(context.classifier, *s, *weight, &mut callers));
    let callers = callers.remove(&function)?;
    let total: f64 = callers.values().sum();
    let named = callers.into_iter().filter_map(|(caller, weight)| Some((caller?, weight)));
    let (caller, weight) = named.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
    (weight > 0.5 * total && caller != function).then_some(Caller { function: caller, at: None })
}

/// If a function is of a shared library, or of a package of Go's with a path: the innermost of the program's own file, or of its own package,
/// that calls it, be it at some removes.
fn of_program(context: &Context, stacks: &FxHashMap<StackId, f64>, location: &LocationRow) -> Option<Caller> {
    let text = |id| context.trace.text(id);
    let is_own: fn(&str, &str) -> bool = match (is_library(text(location.module)), text(location.function)) {
        (true, _) => |module, _| !is_library(module),
        (false, function) if function.contains('/') => |_, function| function.starts_with("main."),
        _ => return None,
    };
    // What its headers have was compiled into the program.
    let is_of_header = |l: &LocationRow| text(l.file).starts_with("/usr/");
    let is_meant = |(_, l): &(FrameId, LocationRow)| is_own(text(l.module), text(l.function)) && !is_of_header(l);
    let own = wide(stacks, COVERAGE, |stack| place::own_frames(context, stack).filter(is_meant).collect());
    own.into_iter().next().map(|own| Caller { function: own.name, at: Some(own.hottest_line()) })
}

/// The culprit's function, with the source line where it was found most often.
pub(super) fn function_of(context: &Context, group: &Group, tally: &Tally) -> Option<LocationRow> {
    function_in(context, group, tally, &Crew::of(context, tally))
}

fn function_in(context: &Context, group: &Group, tally: &Tally, crew: &Crew) -> Option<LocationRow> {
    let stands = tally.waiting + tally.stopped > 0.5 * tally.rank;
    if !runs(group) || stands {
        return place(context, tally.main_site(context.classifier));
    }
    // In a hand-over nobody holds the lock for long: the place that takes it is what to mend.
    let passed = |id| tally.is_handed_over() || lock::is_convoy(context, id, tally);
    let taken =
        if group.lock().is_some_and(passed) { covering(context.classifier, &site_weights(tally)) } else { None };
    let released = tally.main_release(&crew.threads);
    let waited = if group.is_lock() { tally.common_stack(context.classifier) } else { StackId::NONE };
    let samples = samples_of(context, group, tally, crew);
    let has_stand_in = || !inside::nameless(context, &samples).is_empty();
    let known = taken.or_else(|| specific(context, &samples)).filter(|l| !is_made(context, l) || !has_stand_in());
    if known.is_none() && has_stand_in() {
        return None;
    }
    // Where it woke others is where it let a lock go, and not what it ran.
    let let_go = |l: &LocationRow| group.is_lock() || !is_rare(context, &samples, l);
    known
        .or_else(|| nameless_leaf(context.classifier, &samples))
        .or_else(|| [released, waited].into_iter().find_map(|s| application(context, s)).filter(let_go))
        .or_else(|| of_runtime(context.classifier, &samples))
        // A function of the C library in which a stack ends is nobody's doing, and least of all what it ran.
        .or_else(|| {
            let telling =
                heaviest(&samples).into_iter().chain([released, waited]).filter(|s| place::tells(context, *s));
            telling.into_iter().find_map(|s| any_user(context, s))
        })
}

/// Whether what it ran has no names, and nothing else is told.
pub(super) fn is_nameless(context: &Context, group: &Group, tally: &Tally) -> bool {
    let crew = Crew::of(context, tally);
    let samples = || samples_of(context, group, tally, &crew);
    runs(group)
        && function_in(context, group, tally, &crew).is_none()
        && !inside::nameless(context, &samples()).is_empty()
}

/// Whether a function lies on next to none of these: it is no answer to what ran.
fn is_rare(context: &Context, samples: &FxHashMap<StackId, f64>, function: &LocationRow) -> bool {
    place::weight_on(context, samples, function) < RARE * known(samples)
}

/// The weight of all of which the stack is known.
fn known(samples: &FxHashMap<StackId, f64>) -> f64 {
    samples.iter().filter(|(stack, _)| **stack != StackId::NONE).map(|(_, weight)| weight).sum()
}

fn heaviest(samples: &FxHashMap<StackId, f64>) -> Option<StackId> {
    samples.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0))).map(|(stack, _)| *stack)
}

fn site_weights(tally: &Tally) -> FxHashMap<StackId, f64> {
    tally.wait_stacks.iter().map(|(s, n)| (*s, *n as f64)).collect()
}

/// The innermost application function that lies on at least [`COVERAGE`] of the weight.
///
/// Leaves are helpers and kernel functions; the outermost frames cover everything and say nothing.
pub(crate) fn covering(classifier: &Classifier, samples: &FxHashMap<StackId, f64>) -> Option<LocationRow> {
    let wide = wide(samples, COVERAGE, |stack| classifier.application_frames(stack));
    if wide.is_empty() || is_mostly_nameless(classifier, samples) { nameless(classifier, samples) } else { first(wide) }
}

/// Of code without symbols, too, the innermost that covers most is the place.
fn nameless(classifier: &Classifier, samples: &FxHashMap<StackId, f64>) -> Option<LocationRow> {
    let all = known(samples);
    let mut wide = wide(samples, COVERAGE, |stack| classifier.nameless_frames(stack));
    wide.retain(|function| function.weight >= RARE * all);
    first(wide)
}

/// Where nothing covers most of what has no names, and that is most of it: where most of it ends.
fn nameless_leaf(classifier: &Classifier, samples: &FxHashMap<StackId, f64>) -> Option<LocationRow> {
    if !is_mostly_nameless(classifier, samples) {
        return None;
    }
    let leaves = wide(samples, 0.0, |stack| classifier.nameless_frames(stack).into_iter().take(1).collect());
    let most = leaves.into_iter().max_by(|a, b| a.weight.total_cmp(&b.weight).then(b.name.cmp(&a.name)));
    most.map(Function::hottest_line)
}

/// The function of a language's runtime in which most of the samples end, where nothing tells of the program: `sre_ucs1_match` of
/// an interpreter says more than nothing. Its outer functions, which run whatever the program has, would not.
fn of_runtime(classifier: &Classifier, samples: &FxHashMap<StackId, f64>) -> Option<LocationRow> {
    let all: f64 = samples.values().sum();
    let ends = |stack: &StackId| classifier.runtime_leaf(*stack);
    let inside: f64 = samples.iter().filter(|(s, _)| ends(s).is_some()).map(|(_, weight)| weight).sum();
    let leaves = wide(samples, COVERAGE, |stack| ends(&stack).into_iter().collect());
    if inside > COVERAGE * all { first(leaves) } else { None }
}

fn first(functions: Vec<Function>) -> Option<LocationRow> {
    functions.into_iter().next().map(Function::hottest_line)
}

/// Whether most of the program's code in `samples` has no names: a helper that has one tells nothing of the rest, and less does `main`, in
/// which all is.
fn is_mostly_nameless(classifier: &Classifier, samples: &FxHashMap<StackId, f64>) -> bool {
    let (mut named, mut nameless) = (0.0, 0.0);
    for (&stack, &weight) in samples {
        if classifier.application_frames(stack).iter().any(|(_, l)| !classifier.is_main(l)) {
            named += weight;
        } else if !classifier.nameless_frames(stack).is_empty() || classifier.is_of_nameless_task(stack) {
            nameless += weight;
        } else if classifier.application_leaf(stack).is_some() {
            named += weight;
        }
    }
    nameless > named
}
