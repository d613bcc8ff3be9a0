//! Where a stack is in the program.

use holdup_trace::tables::LocationRow;
use holdup_trace::{FrameId, StackId, StringId, is_made_at_run_time};
use rustc_hash::FxHashMap;

use super::context::Context;
use crate::classify::WaitKind;
use crate::{classify, lock_names, runtime};

/// The innermost application function of a stack.
pub(super) fn application(context: &Context, stack: StackId) -> Option<LocationRow> {
    context.classifier.application_leaf(stack)
}

/// The innermost function of a stack that is neither a language's nor of what was installed for the program, or else the innermost
/// application function.
pub(super) fn own(context: &Context, stack: StackId) -> Option<LocationRow> {
    own_frames(context, stack).next().map(|(_, l)| l).or_else(|| application(context, stack))
}

/// The application's locations of a stack that are of no package installed for the program, the innermost first.
pub(super) fn own_frames(context: &Context, stack: StackId) -> impl Iterator<Item = (FrameId, LocationRow)> {
    let frames = context.classifier.application_frames(stack).into_iter();
    frames.filter(|(_, l)| !runtime::is_installed(context.trace.text(l.module)))
}

/// Where a stack ends, whosever code that is.
pub(super) fn innermost(context: &Context, stack: StackId) -> Option<LocationRow> {
    let leaf = context.trace.stacks.frames(stack).next()?;
    context.trace.names.locations(leaf).next()
}

/// All functions of a stack.
pub(super) fn functions(context: &Context, stack: StackId) -> impl Iterator<Item = StringId> {
    let trace = context.trace;
    trace.stacks.frames(stack).flat_map(|frame| trace.names.functions(frame)).copied()
}

/// Whether a stack has a function whose name `is_it` picks. O(frames).
pub(super) fn has(context: &Context, stack: StackId, mut is_it: impl FnMut(&str) -> bool) -> bool {
    functions(context, stack).any(|function| is_it(context.trace.text(function)))
}

/// Whether one waits here for input, as an event loop does, be it with a time-out. A loop that is known as one does so even where nothing but
/// timers of its tasks has ever come.
pub(super) fn is_at_input(context: &Context, site: StackId) -> bool {
    let waits = || !context.timeline.sleeps_at(site) || context.classifier.unseen_at(site).is_some();
    context.classifier.facts(site).kind == Some(WaitKind::Input) && waits()
}

/// Where a stack is in the program, by name if there is one.
pub(super) fn place(context: &Context, stack: StackId) -> Option<LocationRow> {
    application(context, stack).or_else(|| any_user(context, stack))
}

/// Where a thread waits: in the function that waits for a lock, where one is known by its name, else the place.
pub(super) fn waiting(context: &Context, stack: StackId) -> Option<LocationRow> {
    let lock = context.classifier.facts(stack).lock_function;
    let frames = context.classifier.application_frames(stack);
    let takes = frames.into_iter().map(|(_, l)| l).find(|l| lock != StringId::default() && l.function == lock);
    takes
        .or_else(|| application(context, stack))
        .or_else(|| of_runtime(context, stack))
        .or_else(|| any_user(context, stack))
}

/// The function of a runtime that takes a lock which people know by a name.
fn of_runtime(context: &Context, stack: StackId) -> Option<LocationRow> {
    let trace = context.trace;
    let mut locations = trace.stacks.frames(stack).flat_map(|f| trace.names.locations(f));
    locations.find(|l| lock_names::takes_lock(trace.text(l.function)))
}

/// Whether a function is on a stack. Each file of a script has its `<module>`, and its functions without a name.
pub(super) fn is_on(context: &Context, stack: StackId, function: &LocationRow) -> bool {
    let trace = context.trace;
    let is_it = |l: LocationRow| l.function == function.function && l.file == function.file;
    trace
        .stacks
        .frames(stack)
        .any(|f| trace.names.functions(f).contains(&function.function) && trace.names.locations(f).any(is_it))
}

/// How much of these lies on a function. O(stacks × depth).
pub(super) fn weight_on(context: &Context, samples: &FxHashMap<StackId, f64>, function: &LocationRow) -> f64 {
    samples.iter().filter(|(stack, _)| is_on(context, **stack, function)).map(|(_, weight)| weight).sum()
}

/// Whether a stack comes to code of the program or of a language's runtime: one that ends in the C library or the kernel does not tell
/// where the program was.
pub(super) fn tells(context: &Context, stack: StackId) -> bool {
    context.classifier.facts(stack).tells
}

/// The share of the weight whose stacks do not tell that, of what has stacks.
pub(super) fn blind_share(context: &Context, stacks: impl Iterator<Item = (StackId, f64)>) -> f64 {
    let add = |(blind, all): (f64, f64), (stack, weight)| {
        (blind + if tells(context, stack) { 0.0 } else { weight }, all + weight)
    };
    let (blind, all) = stacks.filter(|(stack, _)| *stack != StackId::NONE).fold((0.0, 0.0), add);
    if all > 0.0 { blind / all } else { 0.0 }
}

/// The language of an interpreter on the stack, if the functions in it that it ran are not there.
pub(super) fn nameless_language(context: &Context, stack: StackId) -> Option<&'static str> {
    let trace = context.trace;
    let mut language = None;
    for l in trace.stacks.frames(stack).flat_map(|f| trace.names.locations(f)) {
        let module = trace.text(l.module);
        if runtime::is_interpreted(module, trace.text(l.function)) {
            return None;
        }
        language = language.or_else(|| runtime::interprets(module));
    }
    language
}

/// Whether a stack ends in code that was compiled at run time and has no names. So is what lies in no file at all.
pub(super) fn is_in_nameless_code(context: &Context, stack: StackId) -> bool {
    let trace = context.trace;
    let mut modules =
        trace.stacks.frames(stack).flat_map(|f| trace.names.locations(f)).map(|l| trace.text(l.module)).peekable();
    if modules.peek().is_none() {
        return stack != StackId::NONE;
    }
    let is_nameless = |module: &str| module.is_empty() || is_made_at_run_time(module);
    modules.find(|module| !classify::is_kernel_module(module)).is_some_and(is_nameless)
}

/// Functions in which the C library starts threads: everything is below them, so they say nothing.
const THREAD_STARTS: &[&str] = &["clone", "clone3", "start_thread", "thread_start", "_start", "__libc_start_main"];

/// Where nothing belongs to the application by name: the innermost code that is neither the kernel's nor a runtime's,
/// even if it has only an address; else the outermost function of a C library, but for where threads start. None in a
/// language's runtime: what stands there is nobody's doing.
pub(super) fn any_user(context: &Context, stack: StackId) -> Option<LocationRow> {
    let trace = context.trace;
    let locations = trace.stacks.frames(stack).flat_map(|f| trace.names.locations(f));
    let all: Vec<LocationRow> = locations.filter(|l| !classify::is_kernel_module(trace.text(l.module))).collect();
    let is_own = |l: &&LocationRow| classify::is_own(trace.text(l.module), trace.text(l.function));
    let in_runtime = all.iter().any(|l| is_own(&l));
    let user: Vec<LocationRow> = all.iter().filter(|l| !is_own(l)).copied().collect();
    let own = |l: &&LocationRow| {
        let (module, function) = (trace.text(l.module), trace.text(l.function));
        // What a language's library does for a scheduler is nobody's doing either.
        let is_helper = || in_runtime && !function.contains("+0x") && classify::is_runtime_function(function);
        !module.is_empty() && !module.starts_with("//") && !classify::is_runtime_module(module) && !is_helper()
    };
    let named = |l: &&LocationRow| {
        let name = trace.text(l.function);
        !name.is_empty() && !name.contains("+0x") && !name.starts_with("__") && !THREAD_STARTS.contains(&name)
    };
    let of_library = || user.iter().rev().find(named).filter(|_| !in_runtime);
    user.iter().find(own).or_else(of_library).copied()
}
