//! Who did it, in which function.

use holdup_trace::tables::LocationRow;
use holdup_trace::{StackId, StringId, Table, ThreadIdx};
use rustc_hash::FxHashMap;

use super::group::{Group, Tally};
use super::{Context, instruction};
use crate::classify::{self, Classifier};
use crate::report::Culprit;

/// A function must cover this share of the blame to be the culprit; the innermost such one is.
const COVERAGE: f64 = 0.6;

/// The culprit of a group.
pub(super) fn of(context: &Context, group: &Group, tally: &Tally) -> Culprit {
    let thread = tally.main_thread();
    let mut culprit = of_thread(context, thread);
    let Some(location) = function_of(context, group, tally) else { return culprit };
    culprit.function = context.trace.text(location.function).to_owned();
    culprit.module = context.trace.text(location.module).to_owned();
    culprit.source = context.source(&location);
    let samples = samples_of(context, group, tally);
    if runs(group) {
        culprit.instruction = instruction::hottest(context.trace, context.disassembler, &samples, location.function);
    }
    culprit
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
        ..Culprit::default()
    }
}

fn runs(group: &Group) -> bool {
    !matches!(group, Group::Disk(..) | Group::Timer(..) | Group::Idle(..))
}

/// The samples that show what the culprit did: those weighted by blame, else all of its thread's.
fn samples_of(context: &Context, group: &Group, tally: &Tally) -> FxHashMap<StackId, f64> {
    if !tally.samples.is_empty() || !runs(group) {
        return tally.samples.clone();
    }
    let thread = tally.main_thread();
    let own = context.blame.profile.iter().filter(|((t, _), _)| *t == thread);
    own.map(|((_, stack), weight)| (*stack, *weight)).collect()
}

/// The culprit's function, with the source line where it was found most often.
pub(super) fn function_of(context: &Context, group: &Group, tally: &Tally) -> Option<LocationRow> {
    let waits = tally.waiting_ns > 0.5 * tally.rank_ns;
    if !runs(group) || waits {
        return application(context, tally.main_site()).or_else(|| any_user(context, tally.main_site()));
    }
    let samples = samples_of(context, group, tally);
    let stacks = [
        super::lock::release_stack(context, group, tally),
        if group.is_lock() { tally.common_stack() } else { StackId::NONE },
        context.habits.waited(tally.main_thread()),
    ];
    // In a hand-over nobody holds the lock for long: the place that takes it is what to mend.
    let convoy = group.lock().is_some_and(|lock| super::lock::is_convoy(context, lock, tally));
    let taken = if convoy { covering(context.classifier, &site_weights(tally)) } else { None };
    taken
        .or_else(|| covering(context.classifier, &samples))
        .or_else(|| stacks.iter().find_map(|s| application(context, *s)))
        .or_else(|| stacks.iter().find_map(|s| any_user(context, *s)))
}

/// Whether most of the blame is hand-off: then the place that takes the lock is what to mend.
pub(super) fn is_handed_over(tally: &Tally) -> bool {
    tally.handoff_ns + tally.overhead_ns > 0.5 * tally.rank_ns
}

fn site_weights(tally: &Tally) -> FxHashMap<StackId, f64> {
    tally.wait_stacks.iter().map(|(s, n)| (*s, *n as f64)).collect()
}

/// The innermost application function of a stack.
pub(super) fn application(context: &Context, stack: StackId) -> Option<LocationRow> {
    context.classifier.application_frames(stack).into_iter().next().map(|(_, l)| l)
}

/// Where nothing belongs to the application: the outermost function that has a name.
fn any_user(context: &Context, stack: StackId) -> Option<LocationRow> {
    let trace = context.trace;
    let frames: Vec<_> = trace.stacks.frames(stack).collect();
    frames.into_iter().rev().flat_map(|f| trace.names.locations(f)).find(|l| {
        let name = trace.text(l.function);
        !classify::is_kernel_module(trace.text(l.module))
            && !name.is_empty()
            && !name.starts_with('_')
            && !name.contains("+0x")
    })
}

/// The innermost application function that lies on at least [`COVERAGE`] of the weight.
///
/// Leaves are helpers and kernel functions; the outermost frames cover everything and say nothing.
pub(crate) fn covering(classifier: &Classifier, samples: &FxHashMap<StackId, f64>) -> Option<LocationRow> {
    let mut functions: FxHashMap<StringId, Function> = FxHashMap::default();
    let mut total = 0.0;
    let mut ordered: Vec<_> = samples.iter().collect();
    ordered.sort_by_key(|(stack, _)| **stack);
    for (&stack, &weight) in ordered {
        let frames = classifier.application_frames(stack);
        if frames.is_empty() {
            continue;
        }
        total += weight;
        let depth = frames.len();
        for (i, (_, location)) in frames.into_iter().enumerate() {
            functions.entry(location.function).or_default().add(stack, weight, (depth - i) as f64, location);
        }
    }
    let wide = functions.into_values().filter(|f| f.weight >= COVERAGE * total);
    let best = wide.max_by(|a, b| a.depth().total_cmp(&b.depth()).then(a.weight.total_cmp(&b.weight)));
    best.map(|f| f.hottest_line())
}

#[derive(Default)]
struct Function {
    weight: f64,
    depths: f64,
    last: StackId,
    lines: FxHashMap<(StringId, u32), (f64, Option<LocationRow>)>,
}

impl Function {
    fn add(&mut self, stack: StackId, weight: f64, depth: f64, location: LocationRow) {
        // A recursive function counts once in a stack.
        if self.last == stack && stack != StackId::NONE {
            return;
        }
        self.last = stack;
        self.weight += weight;
        self.depths += weight * depth;
        let line = self.lines.entry((location.file, location.line)).or_insert((0.0, None));
        line.0 += weight;
        line.1 = Some(location);
    }

    fn depth(&self) -> f64 {
        self.depths / self.weight.max(f64::MIN_POSITIVE)
    }

    fn hottest_line(self) -> LocationRow {
        let most = self.lines.into_iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0).then(b.0.cmp(&a.0)));
        most.and_then(|(_, (_, location))| location).expect("a function was added with a location")
    }
}
