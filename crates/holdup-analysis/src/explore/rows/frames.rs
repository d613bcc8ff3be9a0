//! What a stack is called in a column: one of its functions, a place in the source, or all of it.

use holdup_trace::{FrameId, StackId, StringId, Trace};

use crate::classify::Classifier;
use crate::label;

/// Kernel functions through which every thread leaves its CPU; they tell nothing.
const SCHEDULER: &[&str] =
    &["__schedule", "schedule", "preempt_schedule", "__cond_resched", "__traceiter_sched_switch"];

/// Which part of a stack a column shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::explore) enum Part {
    /// The innermost function of the application.
    Application,
    /// The same, with its source line.
    Site,
    /// The innermost function that is not the scheduler's own.
    Blocked,
    /// The innermost function.
    Leaf,
    /// The function in whose code the innermost frame lies, into which others may be inlined.
    Outer,
    /// All functions at the innermost frame, if some are inlined there.
    Inlined,
    /// The file that holds the innermost function's code.
    Module,
    /// The innermost function's source line.
    Source,
    /// The function that called the innermost one.
    Caller,
    /// The n-th function from the outermost, from 1.
    Depth(usize),
    /// The n-th function from the innermost, from 1.
    Inner(usize),
    /// All functions, the innermost first.
    Whole,
}

/// The text of `part` of `stack`; empty if there is no stack or no such frame. O(depth).
pub(in crate::explore) fn text(trace: &Trace, classifier: &Classifier, stack: StackId, part: Part) -> String {
    if stack == StackId::NONE {
        return String::new();
    }
    match part {
        Part::Application => trace.text(classifier.facts(stack).application).to_owned(),
        Part::Site => {
            let frames = classifier.application_frames(stack);
            frames.first().map_or(String::new(), |(_, l)| label::location(trace, l))
        }
        Part::Module | Part::Source | Part::Outer | Part::Inlined => leaf(trace, stack, part),
        Part::Blocked => functions(trace, stack).into_iter().find(|f| !is_scheduler(f)).unwrap_or_default(),
        Part::Leaf => nth(functions(trace, stack), 0),
        Part::Caller => nth(functions(trace, stack), 1),
        Part::Inner(n) => n.checked_sub(1).map_or(String::new(), |n| nth(functions(trace, stack), n)),
        Part::Depth(n) => {
            let all = functions(trace, stack);
            all.len().checked_sub(n).filter(|_| n > 0).map_or(String::new(), |i| nth(all, i))
        }
        Part::Whole => functions(trace, stack).join(" ← "),
    }
}

fn nth(mut functions: Vec<String>, n: usize) -> String {
    if n < functions.len() { functions.swap_remove(n) } else { String::new() }
}

fn is_scheduler(function: &str) -> bool {
    SCHEDULER.contains(&function) || function.starts_with("schedule_") || function.starts_with("io_schedule")
}

/// The functions of a stack, the innermost first, inlined ones included; the bare address where nothing is known.
pub(in crate::explore) fn functions(trace: &Trace, stack: StackId) -> Vec<String> {
    let all = trace.stacks.frames(stack).flat_map(|f| frame_functions(trace, f));
    all.skip_while(|f| label::is_recorder(f)).collect()
}

fn frame_functions(trace: &Trace, frame: FrameId) -> Vec<String> {
    let text = |id: StringId| trace.text(id).to_owned();
    let named: Vec<String> = trace.names.locations(frame).map(|l| text(l.function)).collect();
    if named.is_empty() { vec![address(trace, frame)] } else { named }
}

fn address(trace: &Trace, frame: FrameId) -> String {
    format!("{:#x}", trace.stacks.frame(frame).map_or(0, |f| f.address))
}

/// What the innermost frame alone tells.
fn leaf(trace: &Trace, stack: StackId, part: Part) -> String {
    let Some(frame) = trace.stacks.frames(stack).next() else { return String::new() };
    let mut locations = trace.names.locations(frame);
    match part {
        Part::Module => locations.next().map_or(String::new(), |l| {
            let module = trace.text(l.module);
            module.rsplit('/').next().unwrap_or(module).to_owned()
        }),
        Part::Source => locations.next().map_or(String::new(), |l| label::source(trace, &l)),
        Part::Outer => locations.last().map_or_else(|| address(trace, frame), |l| trace.text(l.function).to_owned()),
        _ => {
            let all = frame_functions(trace, frame);
            if all.len() > 1 { all.join(" ← ") } else { String::new() }
        }
    }
}
