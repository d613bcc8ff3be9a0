//! Who calls whom.

use holdup_trace::{StackId, StringId};
use rustc_hash::FxHashMap;

use crate::classify::Classifier;

/// Weight of each function by its caller; `None` where a thread begins.
pub(crate) type Callers = FxHashMap<StringId, FxHashMap<Option<StringId>, f64>>;

/// Adds the calls of a stack.
pub(crate) fn count(classifier: &Classifier, stack: StackId, weight: f64, callers: &mut Callers) {
    let mut functions = classifier.application_functions(stack).peekable();
    while let Some(function) = functions.next() {
        *callers.entry(function).or_default().entry(functions.peek().copied()).or_default() += weight;
    }
}
