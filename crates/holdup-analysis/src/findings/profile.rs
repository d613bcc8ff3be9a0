//! What the program did with the CPU time that it had.

use holdup_trace::{Amount, StackId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::context::Context;
use super::tally::{Group, Tally};
use super::{cache_line, culprit, instruction, place};
use crate::label;
use crate::report::{Confidence, Finding, FindingKind, Hot};

/// Below this share of the CPU time, being held up does not matter beside being busy.
const MINOR: f64 = 0.1;

/// Functions listed as hot.
const HOT: usize = 10;

/// The finding of a program that is simply busy: no wait to mend, only work.
pub(super) fn cpu_bound(context: &Context, charged: Amount) -> Option<Finding> {
    let running = context.blame.cpu.running;
    let spun = context.blame.cpu.spin + cache_line::known(context);
    if running <= 0.0 || charged.0 + spun > MINOR * running {
        return None;
    }
    let samples = focus_samples(context);
    let total: f64 = samples.values().sum();
    let location = culprit::specific(context, &samples).or_else(|| widest(context, &samples))?;
    let thread = busiest_in(context, location.function)?;
    let mut found = culprit::of_thread(context, thread);
    found.function = context.trace.text(location.function).to_owned();
    found.module = context.trace.text(location.module).to_owned();
    found.source = context.source(&location);
    found.called_by = culprit::called_by(context, &samples, location.function).unwrap_or_default();
    found.instruction = instruction::hottest(context.trace, context.disassembler, &samples, location.function);
    let inside: f64 = samples.iter().filter(|(s, _)| is_on(context, **s, location.function)).map(|(_, w)| w).sum();
    let seconds = context.limits.of_cpus(Amount(running));
    let share = inside / total.max(1.0);
    let name = if found.process.is_empty() { "the program" } else { &found.process };
    let peak = context.timeline.peak_parallelism();
    let count = total / context.period().max(1.0);
    Some(Finding {
        kind: FindingKind::CpuBound,
        title: format!(
            "{} of CPU time went into work, {:.0} % of it in {} of {name}",
            label::duration(seconds),
            100.0 * share,
            found.function
        ),
        evidence: vec![
            format!("{count:.0} samples; next to nobody waited ({} of CPU time)", label::duration(charged.seconds())),
            format!("at most {peak} threads worked at once on {} CPUs", context.timeline.cpus),
        ],
        advice: "There is no wait to mend: make this function faster, or spread its work over more threads.".to_owned(),
        culprit: found,
        blame_cpu_s: seconds * share,
        confidence: if count >= 30.0 { Confidence::High } else { Confidence::Low },
        doubts: if count >= 30.0 { Vec::new() } else { vec![format!("{count:.0} samples are few")] },
        ..Finding::default()
    })
}

/// What ran most in focus, by process and function.
pub(super) fn hot(context: &Context) -> Vec<Hot> {
    let trace = context.trace;
    let mut functions: FxHashMap<_, f64> = FxHashMap::default();
    let mut total = 0.0;
    for ((thread, stack), weight) in &context.blame.profile {
        if !context.focus.contains(*thread) {
            continue;
        }
        total += weight;
        let process = trace.threads.process.get(thread.index()).copied().unwrap_or_default();
        // Where nothing is the application's: the leaf.
        let place = place::application(context, *stack).or_else(|| leaf(context, *stack));
        let (function, module) = place.map_or_else(Default::default, |l| (l.function, l.module));
        *functions.entry((process, function, module)).or_default() += weight;
    }
    let mut hot: Vec<_> = functions.into_iter().collect();
    hot.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let text = |id| trace.text(id).to_owned();
    let share = |weight: f64| if total > 0.0 { weight / total } else { 0.0 };
    hot.into_iter()
        .take(HOT)
        .map(|((process, function, module), weight)| Hot {
            process: text(process),
            function: text(function),
            module: text(module),
            share: share(weight),
        })
        .collect()
}

fn leaf(context: &Context, stack: StackId) -> Option<holdup_trace::tables::LocationRow> {
    let leaf = context.trace.stacks.frames(stack).next()?;
    context.trace.names.locations(leaf).next()
}

fn focus_samples(context: &Context) -> FxHashMap<StackId, f64> {
    let mut samples: FxHashMap<StackId, f64> = FxHashMap::default();
    for ((thread, stack), weight) in &context.blame.profile {
        if context.focus.contains(*thread) {
            *samples.entry(*stack).or_default() += weight;
        }
    }
    samples
}

/// The thread in focus that ran most in `function`.
fn busiest_in(context: &Context, function: holdup_trace::StringId) -> Option<ThreadIdx> {
    let mut threads: FxHashMap<ThreadIdx, f64> = FxHashMap::default();
    for ((thread, stack), weight) in &context.blame.profile {
        if context.focus.contains(*thread) && is_on(context, *stack, function) {
            *threads.entry(*thread).or_default() += weight;
        }
    }
    threads.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(thread, _)| thread)
}

/// Where no function covers most of the samples: the one with the most in its own frame or inlined there.
fn widest(context: &Context, samples: &FxHashMap<StackId, f64>) -> Option<holdup_trace::tables::LocationRow> {
    let mut functions: FxHashMap<_, (f64, Option<_>)> = FxHashMap::default();
    for (&stack, weight) in samples {
        if let Some(l) = place::application(context, stack) {
            let entry = functions.entry(l.function).or_insert((0.0, None));
            entry.0 += weight;
            entry.1 = Some(l);
        }
    }
    functions.into_iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0).then(b.0.cmp(&a.0))).and_then(|(_, (_, l))| l)
}

fn is_on(context: &Context, stack: StackId, function: holdup_trace::StringId) -> bool {
    context.trace.stacks.frames(stack).any(|f| context.trace.names.locations(f).any(|l| l.function == function))
}

/// Whether the waiters themselves mostly run the function that they wait for: then the work is unevenly spread,
/// rather than serial.
pub(super) fn waiters_run_the_same(context: &Context, group: &Group, tally: &Tally) -> bool {
    let Some(location) = culprit::function_of(context, group, tally) else { return false };
    let (mut same, mut all) = (0.0, 0.0);
    for thread in tally.threads.iter().filter(|t| !tally.by_thread.contains_key(t)) {
        for (stack, weight) in context.blame.samples_of(*thread) {
            if !context.classifier.application_frames(stack).is_empty() {
                all += weight;
                same += if is_on(context, stack, location.function) { weight } else { 0.0 };
            }
        }
    }
    all >= 5.0 * context.period() && same > 0.5 * all
}
