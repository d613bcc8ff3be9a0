//! Which lock that people know by a name a stack waits for.

use holdup_trace::{StackId, Trace};

use crate::classify::{Classifier, WaitKind, is_kernel_module};
use crate::known::{Known, Place};
use crate::lock_names::{OPENMP, is_kernel_lock_code, taken_in};
use crate::runtime::{self, KnownAs};

/// The lock for which a thread waits at `stack`, if people know it by name. O(depth).
pub(crate) fn at(trace: &Trace, classifier: &Classifier, stack: StackId) -> Option<&'static Known> {
    let known = innermost(trace, classifier, stack)?;
    let mut functions = trace.stacks.frames(stack).flat_map(|frame| trace.names.functions(frame));
    functions.find_map(|function| known.within(trace.text(*function))).or(Some(known))
}

/// The same by the innermost function that tells.
fn innermost(trace: &Trace, classifier: &Classifier, stack: StackId) -> Option<&'static Known> {
    let mut before_application = true;
    let (mut in_kernel, mut known_as) = (0, KnownAs::default());
    let is_lock = classifier.facts(stack).kind == Some(WaitKind::Lock);
    for frame in trace.stacks.frames(stack) {
        for location in trace.names.locations(frame) {
            let (module, function) = (trace.text(location.module), trace.text(location.function));
            let function = known_as.see(module, function, runtime::waits_for_condition(function));
            let function = if is_nameless_openmp(module, function) { OPENMP } else { function };
            let is_kernel = is_kernel_module(module);
            let place = if is_kernel {
                if is_machinery(function) {
                    continue;
                }
                in_kernel += 1;
                (in_kernel <= CALLERS).then_some(Place::Kernel)
            } else {
                before_application &= !classifier.is_application(&location);
                before_application.then_some(Place::Library)
            };
            let here = |known: &&Known| match known.place {
                Place::Runtime => !is_kernel,
                Place::Answer => place.is_some(),
                of => Some(of) == place,
            };
            if let Some(known) = taken_in(function).filter(here).filter(|_| is_lock || !runtime::is_ambiguous(function))
            {
                return Some(known);
            }
        }
    }
    None
}

/// Whether it is code without a name in the library of GCC's OpenMP, which brings names of what others call alone.
fn is_nameless_openmp(module: &str, function: &str) -> bool {
    function.contains("+0x") && module.rsplit('/').next().is_some_and(|base| base.starts_with("libgomp"))
}

/// Callers of the kernel's own code for locks that tell which lock it is.
const CALLERS: usize = 2;

/// Functions of the kernel through which a thread waits for any lock, or leaves its CPU.
fn is_machinery(function: &str) -> bool {
    const LEAVING: &[&str] = &["schedule", "__schedule", "io_schedule"];
    is_kernel_lock_code(function)
        || LEAVING.iter().any(|p| function.starts_with(p))
        || crate::label::is_recorder(function)
}
