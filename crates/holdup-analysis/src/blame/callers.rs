//! Samples without callers count as those of the same thread that have them.
//!
//! A recorder that keeps to a budget leaves out the callers of some samples: these tell their instruction at most, which in an interpreter says
//! nothing of the program. The others stand for them: those in the same function, else those in the same file; where that is an
//! interpreter's, or unknown, all. It is an estimate: a stack that was seen before keeps its callers for free, so that what has few
//! different stacks counts for somewhat too much. What was sampled at instants stays as it is; only sums are shared out.

use holdup_trace::{StackId, StringId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::Blame;
use super::study::Study;

/// Weights by thread and stack.
type Weights = FxHashMap<StackId, f64>;

/// Shares out the samples without callers in the profile, and in each cell. O(stacks).
pub(super) fn share_out(blame: &mut Blame, study: &Study) {
    if study.trace.meta.recorder.bare_samples == 0 {
        return;
    }
    let mut leaves = Leaves { study, known: FxHashMap::default() };
    let mut threads: FxHashMap<ThreadIdx, Weights> = FxHashMap::default();
    for ((thread, stack), ns) in std::mem::take(&mut blame.profile) {
        *threads.entry(thread).or_default().entry(stack).or_default() += ns;
    }
    for (key, cell) in &mut blame.cells {
        // What the thread did then, or at least at other times.
        leaves.share_out(&mut cell.samples, None);
        leaves.share_out(&mut cell.samples, threads.get(&key.thread));
    }
    threads.values_mut().for_each(|weights| leaves.share_out(weights, None));
    blame.profile =
        threads.into_iter().flat_map(|(t, weights)| weights.into_iter().map(move |(s, ns)| ((t, s), ns))).collect();
    blame.profile.sort_unstable_by_key(|(key, _)| *key);
}

/// Where a stack's innermost frame is.
#[derive(Debug, Clone, Copy, Default)]
struct Leaf {
    function: StringId,
    module: StringId,
    is_alone: bool,
    /// Whether it waits in a loop: that is told by the instruction, and no other stack says more of it.
    spins: bool,
}

struct Leaves<'a> {
    study: &'a Study<'a>,
    known: FxHashMap<StackId, Leaf>,
}

impl Leaves<'_> {
    fn of(&mut self, stack: StackId) -> Leaf {
        let Study { trace, spins, .. } = self.study;
        *self.known.entry(stack).or_insert_with(|| {
            let mut frames = trace.stacks.frames(stack);
            let Some(leaf) = frames.next().and_then(|frame| trace.names.locations(frame).next()) else {
                return Leaf { is_alone: true, ..Leaf::default() };
            };
            let (is_alone, spins) = (frames.next().is_none(), spins.has(stack));
            Leaf { function: leaf.function, module: leaf.module, is_alone, spins }
        })
    }

    /// Whether it has no frame, or one that names no function of the program.
    fn tells_nothing(&self, stack: StackId) -> bool {
        self.study.classifier.facts(stack).application == StringId::default()
    }

    /// Gives the weights of stacks without callers to stacks `like` them that have some; without `like` to those beside them.
    fn share_out(&mut self, weights: &mut Weights, like: Option<&Weights>) {
        let mut alone: Vec<StackId> = weights.keys().copied().collect();
        alone.retain(|stack| matches!(self.of(*stack), Leaf { is_alone: true, spins: false, .. }));
        if alone.is_empty() {
            return;
        }
        alone.sort_unstable();
        let mut full: Vec<(StackId, Leaf, f64)> =
            like.unwrap_or(weights).iter().map(|(s, ns)| (*s, self.of(*s), *ns)).collect();
        full.retain(|(_, leaf, _)| !leaf.is_alone && !leaf.spins && leaf.module != StringId::default());
        full.sort_unstable_by_key(|(stack, ..)| *stack);
        for stack in alone {
            let leaf = self.of(stack);
            let of_function = || full.iter().filter(|f| f.1.module == leaf.module && f.1.function == leaf.function);
            let of_module = || full.iter().filter(|f| f.1.module == leaf.module);
            let same: Vec<_> = match () {
                () if of_function().next().is_some() => of_function().collect(),
                () if of_module().next().is_some() => of_module().collect(),
                // An interpreter's instruction: the callers, where they are known, tell the functions that it ran.
                () if self.tells_nothing(stack) => full.iter().collect(),
                () => continue,
            };
            let sum: f64 = same.iter().map(|f| f.2).sum();
            if sum > 0.0 {
                let ns = weights.remove(&stack).unwrap_or_default();
                same.into_iter().for_each(|f| *weights.entry(f.0).or_default() += ns * f.2 / sum);
            }
        }
    }
}
