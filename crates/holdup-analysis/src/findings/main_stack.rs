//! Which of several stacks stands for all of them, and what part of them is of a kind.

use holdup_trace::{StackId, StringId};
use rustc_hash::FxHashMap;

use crate::classify::Classifier;

/// The heaviest stack of the function with the most weight: one place has a stack for each way to it.
pub(super) fn main_stack(classifier: &Classifier, stacks: impl Iterator<Item = (StackId, f64)>) -> StackId {
    let place = |stack| classifier.facts(stack).application;
    let mut places: FxHashMap<StringId, f64> = FxHashMap::default();
    let mut ordered: Vec<(StackId, f64)> = stacks.collect();
    ordered.sort_unstable_by_key(|(stack, _)| *stack);
    ordered.iter().for_each(|(stack, weight)| *places.entry(place(*stack)).or_default() += weight);
    let weight_of = |stack| places.get(&place(stack)).copied().unwrap_or(0.0);
    let heavier = |a: &&(StackId, f64), b: &&(StackId, f64)| {
        weight_of(a.0).total_cmp(&weight_of(b.0)).then(a.1.total_cmp(&b.1)).then(b.0.cmp(&a.0))
    };
    ordered.iter().max_by(heavier).map_or(StackId::NONE, |(stack, _)| *stack)
}

/// The share of the weight at stacks that `is_it` picks, from 0 to 1; 0 where there is none.
pub(super) fn share(weights: impl Iterator<Item = (StackId, f64)>, is_it: impl Fn(StackId) -> bool) -> f64 {
    let add = |(own, all), (stack, weight)| (if is_it(stack) { own + weight } else { own }, all + weight);
    let (own, all) = weights.fold((0.0, 0.0), add);
    if all > 0.0 { own / all } else { 0.0 }
}
