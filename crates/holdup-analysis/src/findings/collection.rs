//! Collections of garbage that the program waits for.

use holdup_trace::tables::LocationRow;
use holdup_trace::{StackId, StringId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::context::Context;
use super::crew::Crew;
use super::tally::{Group, Tally};
use super::{collecting, culprit, place};
use crate::blame::Key;
use crate::label::duration;
use crate::report::{Culprit, Finding};
use crate::runtime::{self, Role};

/// Whether a group is about a runtime's collections: what its threads ran meanwhile says so or, where they ran too
/// shortly for a sample, that they are there for nothing else.
pub(super) fn is(context: &Context, group: &Group, tally: &Tally) -> bool {
    let Group::Serial(thread) = group else { return false };
    let role = context.classifier.role(*thread);
    let all: f64 = tally.samples.values().sum();
    let sum_of = |collects: &dyn Fn(StackId) -> bool| -> f64 {
        tally.samples.iter().filter(|(stack, _)| collects(**stack)).map(|(_, weight)| weight).sum()
    };
    match role {
        // What threads did that are there for nothing else, whoever sent them.
        _ if tally.is_mostly_of(|thread| context.classifier.role(thread) == Some(Role::Collector)) => true,
        Some(Role::Collector) => true,
        // Its runtime keeps no thread for that alone.
        None => all > 0.0 && 2.0 * sum_of(&|stack| context.classifier.collector_at(stack).is_some()) > all,
        Some(Role::Operations) => {
            let collecting = sum_of(&|stack| context.classifier.collects_at(stack));
            if all > 0.0 { 2.0 * collecting > all } else { asked(context, tally).is_some() }
        }
        Some(Role::Compiler | Role::Housekeeping) => false,
    }
}

/// The collector's thread, and the function of the program in which most of those waited that asked for a collection.
pub(super) fn culprit(context: &Context, tally: &Tally) -> Culprit {
    let crew = Crew::of(context, tally);
    let thread = crew.threads.first().copied().unwrap_or(ThreadIdx::NONE);
    let mut found = culprit::of_thread(context, thread);
    (found.threads, found.processes) = (crew.threads.len(), crew.processes);
    if let Some(at) = asked(context, tally) {
        found.function = context.trace.text(at.function).to_owned();
        found.module = context.trace.text(at.module).to_owned();
        found.source = context.source(&at);
    }
    found
}

/// Where the program waited longest for collections that it asked for by allocating.
fn asked(context: &Context, tally: &Tally) -> Option<LocationRow> {
    let mut sums: FxHashMap<StringId, (u64, LocationRow)> = FxHashMap::default();
    for (&stack, &ns) in &tally.wait_stacks {
        let asks = |f| runtime::asks_for_collection(context.trace.text(f));
        if !place::functions(context, stack).any(asks) {
            continue;
        }
        if let Some(at) = place::application(context, stack) {
            sums.entry(at.function).or_insert((0, at)).0 += ns;
        }
    }
    sums.into_iter().max_by_key(|(name, (ns, _))| (*ns, std::cmp::Reverse(*name))).map(|(_, (_, at))| at)
}

/// What a program calls to have its garbage collected at once.
const ORDERS: &[&str] =
    &["java.lang.System.gc", "java.lang.Runtime.gc", "JVM_GC", "runtime.GC", "gc_collect", "System.GC.Collect"];

/// Whether most of those that waited had called for it themselves.
fn is_ordered(context: &Context, tally: &Tally) -> bool {
    tally.share_at(|stack| place::has(context, stack, |name| ORDERS.contains(&name))) > 0.5
}

/// `garbage collection stopped java for 2.06 s in all, 41 % of the time; …`.
pub(super) fn title(context: &Context, f: &Finding) -> String {
    let process = if f.culprit.process.is_empty() { "the program" } else { &f.culprit.process };
    let all = if f.windows.len() > 1 { " in all" } else { "" };
    let share = share(context, f.lasted_s);
    format!("garbage collection kept {process} waiting for {}{all}, {share:.0} % of the time", duration(f.lasted_s))
}

/// Which share of the time that is explained, in percent.
fn share(context: &Context, seconds: f64) -> f64 {
    100.0 * seconds / context.duration().seconds().max(f64::MIN_POSITIVE)
}

/// What collecting cost.
pub(super) fn evidence(context: &Context, tally: &Tally) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(share) = collecting::share(context) {
        let share = 100.0 * share;
        lines.push(format!("{share:.0} % of the CPU samples are in the collector, in pauses and beside the program"));
    }
    if let Some(at) = asked(context, tally) {
        let why = if is_ordered(context, tally) { "because {} asks for it" } else { "for room that {} allocates" };
        lines.push(format!("most of it was begun {}", why.replace("{}", context.trace.text(at.function))));
    }
    lines
}

pub(super) fn advice(context: &Context, tally: &Tally) -> String {
    let (_, time) = context.spans(tally, |_: &Key| true);
    let share = share(context, time.seconds());
    let allocates =
        asked(context, tally).map_or(String::new(), |at| format!(" in {}", context.trace.text(at.function)));
    if is_ordered(context, tally) {
        return format!(
            "Do not ask for collections{allocates} (System.gc, runtime.GC, gc.collect; java has -XX:+DisableExplicitGC): the runtime begins them when \
             it needs room. {share:.0} % of the time is collection."
        );
    }
    let own = tally.samples.keys().find_map(|stack| context.classifier.collector_at(*stack));
    let advice = own.map_or_else(|| runtime::advice_for_collections(&allocates), |own| own.replace("{}", &allocates));
    format!("{advice} {share:.0} % of the time is collection.")
}
