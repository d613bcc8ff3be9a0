//! Who calls whom.

use holdup_trace::{StackId, StringId};
use rustc_hash::FxHashMap;

use crate::classify::Classifier;

/// Weight of each function by its caller; `None` where a thread begins.
pub(crate) type Callers = FxHashMap<StringId, FxHashMap<Option<StringId>, f64>>;

/// Adds the calls of a stack.
pub(crate) fn count(classifier: &Classifier, stack: StackId, weight: f64, callers: &mut Callers) {
    let frames = classifier.application_frames(stack);
    for (i, (_, location)) in frames.iter().enumerate() {
        let caller = frames.get(i + 1).map(|(_, l)| l.function);
        *callers.entry(location.function).or_default().entry(caller).or_default() += weight;
    }
}
