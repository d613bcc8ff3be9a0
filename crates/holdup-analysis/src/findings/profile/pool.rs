//! Threads of a pool of which one works and the others have nothing to do.

use holdup_trace::{StackId, StringId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::super::context::Context;
use super::super::doing::each_wait;
use super::super::place;
use crate::classify::WaitKind;

/// Who had nothing to do for less of the time than this had its part of the work.
const NEARLY_ALL: f64 = 0.75;
/// Functions in which a thread begins, from the outside, that it may share with one that is for something else: the C library's, and its own first.
const BEGINNING: usize = 3;

/// Threads that take their work where the one that works takes its own, and have none.
pub(super) struct Pool {
    threads: usize,
    /// The innermost function that they have in common.
    takes_in: StringId,
}

impl Pool {
    /// Those beside `thread`, which mostly runs `samples`. O(waits + frames).
    pub(super) fn beside(context: &Context, thread: ThreadIdx, samples: &FxHashMap<StackId, f64>) -> Option<Self> {
        let heaviest = samples.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)))?;
        let works = from_outside(context, *heaviest.0);
        let mut idle: FxHashMap<ThreadIdx, (u64, u64, StackId)> = FxHashMap::default();
        let is_beside = |other: ThreadIdx| other != thread && context.pid(other) == context.pid(thread);
        each_wait(
            context,
            |wait| is_beside(wait.thread) && wait.kind != WaitKind::Disk,
            |wait| {
                let (all, most, site) = idle.entry(wait.thread).or_default();
                let length = wait.woken.saturating_sub(wait.start);
                *all += length;
                if length > *most {
                    (*most, *site) = (length, wait.stack);
                }
            },
        )?;
        let is_idle = |all: u64| all as f64 >= NEARLY_ALL * context.duration().0;
        let places = idle.into_values().filter(|(all, ..)| is_idle(*all));
        let mut common: Vec<StringId> =
            places.filter_map(|(.., site)| in_common(&works, &from_outside(context, site))).collect();
        common.sort_unstable();
        let most = common.chunk_by(|a, b| a == b).max_by_key(|same| same.len())?;
        Some(Pool { threads: most.len(), takes_in: most[0] })
    }

    /// What to do about it, for a program of this name that runs `function`.
    pub(super) fn advice(&self, context: &Context, name: &str, function: &str) -> String {
        let (who, takes_in) = (self.threads, context.trace.text(self.takes_in));
        let threads = if who == 1 { "1 more thread" } else { &format!("{who} more threads") };
        format!(
            "{threads} of {name} take their work in {takes_in}, too, and had none: see what lets no more than one have some (a strand, one queue or \
             key for all of it, a caller that waits for each piece), or make {function} faster."
        )
    }
}

/// The functions of a stack, the outermost first.
fn from_outside(context: &Context, stack: StackId) -> Vec<StringId> {
    let mut functions: Vec<StringId> = place::functions(context, stack).collect();
    functions.reverse();
    functions
}

/// The innermost function that both stacks have in common, if they have more than how threads begin.
fn in_common(one: &[StringId], other: &[StringId]) -> Option<StringId> {
    let common = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    (common > BEGINNING).then(|| one[common - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_begin_alike_are_no_pool() {
        let of = |numbers: &[u32]| numbers.iter().map(|n| StringId(*n)).collect::<Vec<_>>();
        assert_eq!(in_common(&of(&[1, 2, 3, 4, 5]), &of(&[1, 2, 3, 4, 6])), Some(StringId(4)));
        assert_eq!(in_common(&of(&[1, 2, 3, 4]), &of(&[1, 2, 3, 6])), None);
    }
}
