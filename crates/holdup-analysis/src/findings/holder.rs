//! What others of a program do while some of it look for a lock in their sleep: who has it is not known, but one that sleeps or waits
//! for nearly as long as they do may.

use holdup_trace::{Nanos, StackId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::context::Context;
use super::doing::{Doing, each_wait};
use super::tally::Tally;
use crate::intervals::{Place, Wait, is_child};

/// From this share of the time on in which a lock is looked for, what another one does meanwhile is worth saying.
const MOSTLY: f64 = 0.5;

/// What another thread of the program did for most of the time in which these tried to get the lock. O(waits + tries × threads of the program).
pub(super) fn likely(context: &Context, tally: &Tally) -> Option<Doing> {
    let tries = |wait: &Wait| tally.by_thread.contains_key(&wait.thread) && tally.sites.contains_key(&wait.stack);
    let program = tally.by_thread.keys().next().map(|thread| context.program(*thread))?;
    // Of a whole machine, or beside the focus, others of that name may have nothing to do with it.
    let in_focus = |thread: &ThreadIdx| context.focus.contains(*thread) && !context.focus.is_everything();
    let is_own = tally.by_thread.keys().all(in_focus);
    let is_one = |thread: ThreadIdx| if is_own { in_focus(&thread) } else { tally.by_thread.contains_key(&thread) };
    let may_have_it = |thread| context.program(thread) == program && is_one(thread);
    let mut meanwhile = Meanwhile::default();
    let wanted = |wait: &Wait| tries(wait) || may_have_it(wait.thread);
    each_wait(context, wanted, |wait| meanwhile.add(context, wait, tries(wait)))?;
    meanwhile.most(context)
}

/// Tries, and what else was done then.
#[derive(Default)]
struct Meanwhile {
    /// Each thread's wait that began last, and whether it tries.
    last: FxHashMap<ThreadIdx, (Wait, bool)>,
    tried: Nanos,
    /// Time of tries by what another thread did.
    did: FxHashMap<StackId, (Nanos, Wait)>,
}

impl Meanwhile {
    /// The waits of a program, in the order in which they begin.
    fn add(&mut self, context: &Context, wait: &Wait, tries: bool) {
        self.tried += if tries { Nanos(wait.woken.saturating_sub(wait.start)) } else { Nanos::ZERO };
        let others = self.last.iter().filter(|(thread, (_, other))| **thread != wait.thread && *other != tries);
        for (_, (other, _)) in others {
            let common = wait.woken.min(other.woken).saturating_sub(wait.start.max(other.start));
            let (asker, beside) = if tries { (wait, other) } else { (other, wait) };
            // Who waits for the end of those that try, or for its next work, has not what they try to get.
            let is_at_home = beside.place == Place::Home && beside.kind.is_for_input();
            if is_at_home || is_child(context.trace, asker.thread, beside.thread) {
                continue;
            }
            self.did.entry(beside.stack).or_insert((Nanos::ZERO, *beside)).0 += Nanos(common);
        }
        self.last.insert(wait.thread, (*wait, tries));
    }

    fn most(self, context: &Context) -> Option<Doing> {
        let mut sums: FxHashMap<Doing, Nanos> = FxHashMap::default();
        self.did.values().for_each(|(time, wait)| *sums.entry(Doing::of(context, wait)).or_default() += *time);
        let (doing, time) = sums.into_iter().max_by_key(|&(doing, time)| (time, doing))?;
        (time.amount() > self.tried.amount() * MOSTLY).then_some(doing)
    }
}
