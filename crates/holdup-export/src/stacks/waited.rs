//! Where threads waited, and who ended it.

use holdup_analysis::intervals::Chunk;
use holdup_analysis::label;
use holdup_analysis::lanes::Doing;
use holdup_trace::{StackId, ThreadIdx, WakeContext};
use rustc_hash::FxHashMap;

use super::{Kind, NameId, Paths, Weighing, Whose};
use crate::Result;
use crate::study::look;

/// Who waited, and what tells the rest of the path: where, or for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Waited {
    doing: Doing,
    whose: Whose,
    waker: ThreadIdx,
    context: WakeContext,
    stack: StackId,
}

impl Weighing<'_> {
    /// All waits of the focus: the sum is that of the column `wait` in `holdup table waits`.
    pub(super) fn waits(&mut self, kind: Kind) -> Result<Paths> {
        let look = look(self.study);
        let this = &*self;
        let collect = |chunk: &Chunk| {
            let mut sums: FxHashMap<Waited, u64> = FxHashMap::default();
            // What crosses a border counts on each side with what lies there.
            for wait in chunk.waits() {
                let ns = wait.woken.min(chunk.to).saturating_sub(wait.start.max(chunk.from));
                if ns == 0 || !this.study.focus.contains(wait.thread) {
                    continue;
                }
                let (waker, context, stack) = match kind {
                    Kind::Wakers => (wait.waker, wait.context, wait.waker_stack),
                    _ => (ThreadIdx::NONE, WakeContext::Unknown, wait.stack),
                };
                let whose = this.whose(wait.thread);
                *sums.entry(Waited { doing: look.at_wait(wait), whose, waker, context, stack }).or_default() += ns;
            }
            sums
        };
        let mut all: FxHashMap<Waited, u64> = FxHashMap::default();
        let timeline = this.study.timeline;
        timeline.each(0..timeline.len(), collect, |sums| {
            for (key, ns) in sums {
                let sum = all.entry(key).or_default();
                *sum = sum.saturating_add(ns);
            }
        })?;
        let mut paths = Paths::default();
        for (waited, ns) in all {
            let (thread, who) = self.begin(waited.whose);
            let mut path = vec![self.names.plain(waited.doing.name(), "")];
            path.extend(who);
            if kind == Kind::Wakers {
                path.extend(self.waker(&waited));
            }
            self.names.frames(waited.stack, &mut path);
            let sum = paths.entry((thread, path)).or_default();
            *sum = sum.saturating_add(ns);
        }
        Ok(paths)
    }

    /// A thread, or the context in which something else ended the wait.
    fn waker(&mut self, waited: &Waited) -> Vec<NameId> {
        if !waited.waker.is_real() {
            return vec![self.names.plain(&format!("(woken by {})", waited.context.name()), "")];
        }
        if self.per_thread {
            return self.names.of_thread(waited.waker).to_vec();
        }
        let trace = self.study.trace;
        let names = [label::process_name(trace, waited.waker), label::thread_name(trace, waited.waker)];
        names.map(|name| self.names.plain(name, "(no name)")).to_vec()
    }
}
