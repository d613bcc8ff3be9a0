//! What ran most.

use rustc_hash::FxHashMap;

use super::below::Below;
use super::context::Context;
use super::place;
use crate::report::Hot;

/// Functions that are listed.
const HOT: usize = 10;

/// What ran most in focus, by process and function.
pub(super) fn hot(context: &Context) -> Vec<Hot> {
    let trace = context.trace;
    let mut functions: FxHashMap<_, Below> = FxHashMap::default();
    let mut total = 0.0;
    for ((thread, stack), weight) in &context.blame.profile {
        if !context.focus.contains(*thread) {
            continue;
        }
        total += weight;
        let process = trace.threads.process.get(thread.index()).copied().unwrap_or_default();
        // Where nothing is the application's: the leaf.
        let place = place::application(context, *stack).or_else(|| place::innermost(context, *stack));
        let (function, module) = place.map_or_else(Default::default, |l| (l.function, l.module));
        functions.entry((process, function, module)).or_default().add(context, *stack, *weight);
    }
    let mut hot: Vec<_> = functions.into_iter().collect();
    hot.sort_by(|a, b| b.1.all.total_cmp(&a.1.all).then(a.0.cmp(&b.0)));
    let text = |id| trace.text(id).to_owned();
    let share = |weight: f64| if total > 0.0 { weight / total } else { 0.0 };
    hot.into_iter()
        .take(HOT)
        .map(|((process, function, module), below)| {
            let most = below.functions().first().copied();
            Hot {
                process: text(process),
                function: text(function),
                module: text(module),
                share: share(below.all),
                kernel: below.kernel_share(),
                below: most.map(|(function, _)| text(function)).unwrap_or_default(),
                below_share: most.map_or(0.0, |(_, share)| share),
            }
        })
        .collect()
}
