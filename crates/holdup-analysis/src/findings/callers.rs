//! Who calls whom.

use holdup_trace::{StackId, StringId};
use rustc_hash::FxHashMap;

use crate::classify::Classifier;

/// Weight of each function by its caller; `None` where a thread begins.
pub(crate) type Callers = FxHashMap<StringId, FxHashMap<Option<StringId>, f64>>;

/// Adds the calls of a stack.
pub(crate) fn count(classifier: &Classifier, stack: StackId, weight: f64, callers: &mut Callers) {
    for (function, caller) in classifier.application_calls(stack) {
        *callers.entry(function).or_default().entry(caller).or_default() += weight;
    }
}
