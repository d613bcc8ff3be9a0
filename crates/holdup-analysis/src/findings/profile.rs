//! What the program did with the CPU time that it had.

use holdup_trace::{StackId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::group::{Group, Tally};
use super::{Context, culprit, instruction};
use crate::report::Finding;

/// Below this share of the CPU time, being held up does not matter beside being busy.
const MINOR: f64 = 0.1;

/// The finding of a program that is simply busy: no wait to mend, only work.
pub(super) fn cpu_bound(context: &Context, charged: f64) -> Option<Finding> {
    let running = context.blame.cpu.running;
    if running <= 0.0 || charged > MINOR * running {
        return None;
    }
    let samples = focus_samples(context);
    let total: f64 = samples.values().sum();
    let location = culprit::specific(context, &samples).or_else(|| widest(context, &samples))?;
    let thread = busiest(context)?;
    let mut found = culprit::of_thread(context, thread);
    found.function = context.trace.text(location.function).to_owned();
    found.module = context.trace.text(location.module).to_owned();
    found.source = context.source(&location);
    found.instruction = instruction::hottest(context.trace, context.disassembler, &samples, location.function);
    let inside: f64 = samples.iter().filter(|(s, _)| is_on(context, **s, location.function)).map(|(_, w)| w).sum();
    let seconds = running / 1e9;
    let share = 100.0 * inside / total.max(1.0);
    let name = if found.process.is_empty() { "the program".to_owned() } else { format!("`{}`", found.process) };
    Some(Finding {
        kind: "cpu-bound",
        title: format!("{name} is busy for {seconds:.2} CPU s, {share:.0} % of it in `{}`", found.function),
        evidence: vec![
            format!(
                "{:.0} samples; next to nobody waits ({:.3} CPU s charged)",
                total / context.period().max(1.0),
                charged / 1e9
            ),
            format!(
                "at most {} threads ran at once on {} CPUs",
                context.intervals.peak_parallelism(),
                context.intervals.cpus
            ),
        ],
        advice: "No wait to mend: make this function faster, or spread its work over more threads.".to_owned(),
        culprit: found,
        blame_cpu_s: seconds * inside / total.max(1.0),
        gain_at_most: 1.0 / (1.0 - (inside / total.max(1.0)).min(0.99)),
        confidence: if total / context.period().max(1.0) >= 30.0 { "high" } else { "low" },
        ..Finding::default()
    })
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

fn busiest(context: &Context) -> Option<ThreadIdx> {
    let threads = (1..context.intervals.ran.len() as u32).map(ThreadIdx).filter(|t| context.focus.contains(*t));
    threads.max_by_key(|t| (context.intervals.ran[t.index()], std::cmp::Reverse(*t)))
}

/// Where no function covers most of the samples: the one with the most in its own frame or inlined there.
fn widest(context: &Context, samples: &FxHashMap<StackId, f64>) -> Option<holdup_trace::tables::LocationRow> {
    let mut functions: FxHashMap<_, (f64, Option<_>)> = FxHashMap::default();
    for (&stack, weight) in samples {
        if let Some(l) = culprit::application(context, stack) {
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
    let culprits = &tally.by_thread;
    for ((thread, stack), weight) in &context.blame.profile {
        let waits = tally.threads.contains(thread) && !culprits.contains_key(thread);
        if waits && !context.classifier.application_frames(*stack).is_empty() {
            all += weight;
            same += if is_on(context, *stack, location.function) { *weight } else { 0.0 };
        }
    }
    all >= 5.0 * context.period() && same > 0.5 * all
}

impl Context<'_> {
    /// The sampling period in nanoseconds.
    pub(crate) fn period(&self) -> f64 {
        self.trace.meta.sample_period_ns as f64
    }
}
