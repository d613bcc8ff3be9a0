//! What belongs to a finding.

use holdup_trace::{LockId, StackId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::blame::{Key, Span, Terminal};
use crate::classify::WaitKind;

/// Spans of one thread in nanoseconds, in any order.
pub(super) type Spans = FxHashMap<ThreadIdx, Vec<(u64, u64)>>;

/// What becomes of the work that others wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Work {
    /// It need not be done.
    #[default]
    Gone,
    /// It has to be done, by whichever thread.
    Spread,
    /// The same, and the trace does not show what waits for what: which thread wakes which says nothing of it.
    Free,
    /// It has to be done by the same thread, but nobody waits for it.
    Stays,
}

/// What a finding could save at most: all that is charged to it, and what else is of the same kind.
#[derive(Debug, Clone, Default)]
pub struct Taken {
    /// When threads ran, and others waited for it.
    pub(super) runs: Spans,
    /// When threads were ready, and that is what is to be mended.
    pub(super) ready: Spans,
    /// Where threads waited.
    pub(super) sites: FxHashSet<(ThreadIdx, StackId)>,
    /// Locks that order nothing any more.
    pub(super) locks: FxHashSet<LockId>,
    /// Samples with these stacks are its work, whoever waited meanwhile.
    pub(super) stacks: FxHashSet<StackId>,
    /// Samples with these stacks are work that has to be done, by whichever thread.
    pub(super) moved: FxHashSet<StackId>,
    /// What becomes of what runs in `runs`.
    pub(super) work: Work,
    /// Samples with these stacks may be of going to sleep and waking up: with each wait that is gone, a part of them goes.
    pub(super) overhead: FxHashSet<StackId>,
}

impl Taken {
    /// Takes out what others waited for in `spans`.
    pub fn add(&mut self, key: &Key, spans: &[Span]) {
        if key.kind == WaitKind::Lock {
            self.locks.insert(key.lock);
        }
        match key.terminal {
            // Who works may be ready meanwhile.
            Terminal::Running | Terminal::Serial => {
                add(&mut self.runs, key.thread, spans);
                add(&mut self.ready, key.thread, spans);
            }
            terminal if is_ready(terminal) => add(&mut self.ready, key.thread, spans),
            terminal if waits(terminal) => drop(self.sites.insert((key.thread, key.site))),
            _ => {}
        }
    }

    /// Takes out the CPU time of samples with these stacks.
    pub fn with_stacks(mut self, stacks: impl IntoIterator<Item = StackId>) -> Self {
        self.stacks.extend(stacks);
        self
    }

    /// Lets other threads do the work of samples with these stacks.
    pub fn moving(mut self, stacks: impl IntoIterator<Item = StackId>) -> Self {
        self.moved.extend(stacks);
        self
    }

    /// Takes out of the CPU time of samples with these stacks what its waits can have cost.
    pub fn with_overhead(mut self, stacks: impl IntoIterator<Item = StackId>) -> Self {
        self.overhead.extend(stacks);
        self
    }

    /// Says what becomes of the work that others wait for.
    pub fn with_work(mut self, work: Work) -> Self {
        self.work = work;
        self
    }
}

/// Whether the thread could run, and does not.
fn is_ready(terminal: Terminal) -> bool {
    use Terminal::*;
    matches!(terminal, NotRunning | Handoff | Waking | Stalled | Turn | Misplaced | Barred | Starved)
}

/// Whether the thread at a chain's end waits itself, for what is no thread.
pub(super) fn waits(terminal: Terminal) -> bool {
    use Terminal::*;
    matches!(terminal, Disk | Timer | Outside | Stopped | UnknownHolder | Stuck)
}

fn add(to: &mut Spans, thread: ThreadIdx, spans: &[Span]) {
    if !spans.is_empty() {
        to.entry(thread).or_default().extend(spans.iter().map(|span| (span.from, span.to)));
    }
}
