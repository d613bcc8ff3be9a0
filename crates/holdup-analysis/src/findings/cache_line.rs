//! Atomic instructions that several threads are at, at the same time: the cache line goes to and fro between their CPUs.

mod holds;

use holdup_trace::{Amount, Nanos, StackId, StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::context::Context;
use super::meanwhile::Written;
use super::spans::merged;
use super::{culprit, instruction, names, place};
use crate::label::duration;
use crate::report::{Confidence, Finding, FindingKind, Waiters};

/// Below this share of the CPU time a finding is not worth it.
const MINOR: f64 = 0.05;
/// Fewer samples tell nothing.
const FEW: f64 = 30.0;
/// So much of the time at atomic instructions must be while another thread is at one, too.
const TOGETHER: f64 = 0.3;
/// Where the variable is not known: so much, and so much of the function's time, together with other memory that the same code is at: of a line
/// that others change, each access waits.
const UNKNOWN: f64 = 0.6;

/// What to do about any of them.
const SPREAD: &str = "Let each thread have its own of it, on a cache line of its own, and add up when it is read (the crate holdup-sync has such \
                      counters, cells and reference counts); or do it less often.";

/// CPU time at atomic instructions of which it is known that they write the same lines at the same time, in nanoseconds.
pub(super) fn known(context: &Context) -> f64 {
    let contended = context.learned.meanwhile.written.values().filter(|w| w.threads.len() > 1);
    let times = contended.map(|w| w.same + w.beside);
    // Sums of fractions depend on their order; what this is compared with does not need the last digit.
    times.sum()
}

/// What is said where most of what several threads ran at once is about one thing that each of them changes, though its instructions tell of no
/// line: loads of it wait, too.
pub(super) fn mostly(context: &Context, samples: &FxHashMap<StackId, f64>) -> Option<String> {
    let holds = holds::of(context.trace, context.classifier, samples)?;
    (context.timeline.peak_parallelism() > 1).then(|| {
        format!(
            "Most of it goes into {}: where several threads change the same one, its cache line goes to and fro between their CPUs. {}",
            holds.what, holds.advice
        )
    })
}

/// One finding for each line or function whose atomic instructions are contended.
pub(super) fn found(context: &Context) -> Vec<Finding> {
    let least = (MINOR * context.blame.cpu.running).max(FEW * context.period());
    let written = &context.learned.meanwhile.written;
    let mut places: Vec<_> = written.iter().filter(|(_, w)| w.threads.len() > 1 && w.together() >= least).collect();
    places.sort_by_key(|(site, _)| **site);
    places.into_iter().filter_map(|(_, written)| finding(context, written)).collect()
}

fn finding(context: &Context, written: &Written) -> Option<Finding> {
    let (all, together) = (written.stacks.values().sum::<f64>(), written.together());
    let known = written.same + written.beside;
    let location = culprit::specific(context, &written.stacks).or_else(|| place::place(context, hottest(written)))?;
    let inside = time_in(context, written, location.function);
    let is_known = known >= 0.5 * together;
    let enough = if is_known { TOGETHER } else { UNKNOWN };
    let is_most = || all >= TOGETHER * inside && all + beside(context, written, location.function) >= UNKNOWN * inside;
    if together < enough * all || !(is_known || is_most()) {
        return None;
    }
    let most = written.threads.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
    let mut who = culprit::of_thread(context, most.map_or(ThreadIdx::NONE, |(t, _)| *t));
    culprit::tell_function(context, &mut who, &[&written.stacks], &location);
    who.instruction = instruction::hottest(context.trace, context.disassembler, &written.stacks, location.function);
    let window = context.blame.window;
    let (spans, exact) = merged(
        written.spans.iter().map(|&(from, to)| crate::blame::Span::whole(from, to)).collect(),
        (window.1 - window.0) / 200,
    );
    let mut threads: Vec<ThreadIdx> = written.threads.keys().copied().collect();
    threads.sort_unstable();
    let spent = context.limits.of_cpus(Amount(together));
    let waiters = Waiters {
        threads: threads.len(),
        total_s: context.limits.of_threads(Amount(together), threads.len()),
        names: names::grouped(threads.iter().map(|t| context.thread_name(*t))),
        function: who.function.clone(),
        source: who.source.clone(),
        ..Waiters::default()
    };
    let is_one = written.beside <= written.same;
    let holds = holds::of(context.trace, context.classifier, &written.stacks).filter(|_| is_one);
    let what = match holds {
        Some(holds) => format!("one cache line, {},", holds.what),
        None if is_one => "one cache line".to_owned(),
        None => "two variables of one cache line".to_owned(),
    };
    let title = format!(
        "{} threads changed {what} at the same time in {}: {} of CPU time went into it",
        threads.len(),
        who.function,
        duration(spent)
    );
    Some(Finding {
        kind: FindingKind::CacheLine,
        title: title.into(),
        evidence: evidence(written, all, inside, who.instruction.as_ref().map(|i| i.text.as_str())),
        advice: holds.map_or(SPREAD, |holds| holds.advice).to_owned(),
        culprit: who,
        waiters,
        wait_stack: context.stack_text(hottest(written)),
        blame_cpu_s: spent,
        lasted_s: context.limits.once(Nanos(exact).amount()),
        windows: spans.into_iter().map(|(a, b)| [Nanos(a), Nanos(b)].map(Nanos::seconds)).collect(),
        confidence: if is_known { Confidence::High } else { Confidence::Low },
        doubts: if is_known {
            Vec::new()
        } else {
            vec![
                "which memory it is the recording does not tell: if each thread changes its own, none is shared"
                    .to_owned(),
            ]
        },
        ..Finding::default()
    })
}

fn hottest(written: &Written) -> StackId {
    let most = written.stacks.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
    most.map_or(StackId::NONE, |(stack, _)| *stack)
}

/// The CPU time of these threads in the function, in nanoseconds.
fn time_in(context: &Context, written: &Written, function: StringId) -> f64 {
    time_at(context, written, |stack| is_in(context, stack, function))
}

/// The part of it at other memory than the atomic instructions, in the code around these.
fn beside(context: &Context, written: &Written, function: StringId) -> f64 {
    let codes: FxHashSet<StringId> = written.stacks.keys().map(|stack| context.spins.leaf(*stack).code).collect();
    let is_other = |stack| context.spins.is_beside_atomic(stack) && !context.spins.is_atomic(stack);
    time_at(context, written, |stack| {
        is_in(context, stack, function) && is_other(stack) && codes.contains(&context.spins.leaf(stack).code)
    })
}

fn is_in(context: &Context, stack: StackId, function: StringId) -> bool {
    place::application(context, stack).is_some_and(|l| l.function == function)
}

/// The CPU time of these threads with the stacks that `fits` picks, in nanoseconds.
fn time_at(context: &Context, written: &Written, fits: impl Fn(StackId) -> bool) -> f64 {
    let of = |thread: &ThreadIdx| context.blame.samples_of(*thread).filter(|(s, _)| fits(*s)).map(|(_, ns)| ns);
    let mut threads: Vec<&ThreadIdx> = written.threads.keys().collect();
    threads.sort_unstable();
    threads.into_iter().flat_map(of).sum()
}

fn evidence(written: &Written, all: f64, inside: f64, instruction: Option<&str>) -> Vec<String> {
    let together = written.together();
    let share = |part: f64, of: f64| 100.0 * (part / of.max(1.0)).min(1.0);
    let mut lines = vec![
        format!("{:.0} % of the function's CPU time is on or right behind atomic instructions", share(all, inside)),
        format!("for {:.0} % of that another thread was at such an instruction on another CPU", share(together, all)),
    ];
    if let Some(text) = instruction.filter(|text| !text.is_empty()) {
        lines.push(format!("most often seen at `{text}`: the time of an instruction shows at the next"));
    }
    let mut variables: Vec<(&u64, &f64)> = FxHashMap::iter(&written.variables).collect();
    variables.sort_by(|a, b| b.1.total_cmp(a.1).then(a.0.cmp(b.0)));
    if written.beside > written.same {
        let addresses: Vec<String> = variables.iter().take(2).map(|(a, _)| format!("{a:#x}")).collect();
        lines.push(format!("they are different variables, at {}: false sharing", addresses.join(" and ")));
    } else if let Some((address, _)) = variables.first() {
        lines.push(format!("it is the variable at {address:#x}"));
    }
    lines
}
