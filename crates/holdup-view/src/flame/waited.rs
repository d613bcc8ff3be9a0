//! Who waited where, who let it go where, and for how long: by parts of the trace.

use holdup_analysis::classify::WaitKind;
use holdup_analysis::intervals::Chunk;
use holdup_analysis::lanes::Doing;
use holdup_trace::{LockId, StackId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::roles::{Role, Roles};
use crate::memo::Weighs;
use crate::study::Study;

/// Waits that are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Alike {
    pub(super) lock: LockId,
    pub(super) stack: StackId,
    /// What their wakers are called.
    pub(super) waker: Role,
    pub(super) waker_stack: StackId,
}

/// The waits of one part, in nanoseconds.
pub(crate) struct Waited {
    /// Of each thread, in their order; and whether it had nothing to do.
    threads: Box<[(ThreadIdx, bool, Alike, u64)]>,
    /// Of all threads of the focus that had something to do.
    focus: Box<[(Alike, u64)]>,
}

impl Weighs for Waited {
    fn bytes(&self) -> usize {
        size_of_val(&*self.threads) + size_of_val(&*self.focus)
    }
}

impl Waited {
    /// Of what lies between `from` and `to`.
    pub(super) fn of(study: &Study, roles: &Roles, chunk: &Chunk, (from, to): (u64, u64)) -> Self {
        let look = study.look();
        let (mut threads, mut focus) = (FxHashMap::default(), FxHashMap::default());
        for wait in chunk.waits().iter().filter(|w| w.kind != WaitKind::KernelIdle) {
            // What crosses the window's or the part's border counts with what lies inside.
            let ns = wait.woken.min(to).saturating_sub(wait.start.max(from));
            if ns == 0 {
                continue;
            }
            let alike = Alike {
                lock: wait.lock,
                stack: wait.stack,
                waker: roles.of(wait.waker),
                waker_stack: wait.waker_stack,
            };
            let home = look.at_wait(wait) == Doing::Home;
            *threads.entry((wait.thread, home, alike)).or_insert(0_u64) += ns;
            if !home && study.focus.contains(wait.thread) {
                *focus.entry(alike).or_insert(0_u64) += ns;
            }
        }
        let mut threads: Box<[_]> =
            threads.into_iter().map(|((thread, home, alike), ns)| (thread, home, alike, ns)).collect();
        threads.sort_unstable();
        Waited { threads, focus: focus.into_iter().collect() }
    }

    /// Shows `see` what `threads` waited for; without them what the focus did while it had something to do.
    pub(super) fn each(&self, threads: Option<&FxHashSet<ThreadIdx>>, mut see: impl FnMut(&Alike, u64)) {
        let Some(threads) = threads else {
            return self.focus.iter().for_each(|(alike, ns)| see(alike, *ns));
        };
        for &thread in threads {
            let first = self.threads.partition_point(|(t, ..)| *t < thread);
            let own = self.threads[first..].iter().take_while(|(t, ..)| *t == thread);
            own.for_each(|(_, _, alike, ns)| see(alike, *ns));
        }
    }
}
