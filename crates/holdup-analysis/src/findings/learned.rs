//! What is learned of waits while the parts of a trace are swept.

use holdup_trace::{LockId, StackId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::asked::AllAsked;
use super::fed::Fed;
use super::meanwhile::{Meanwhile, meanwhile};
use super::rounds::Rounds;
use super::stories::LockStory;
use crate::blame::Study;
use crate::classify::WaitKind;
use crate::intervals::{Chunk, Wait, is_child};
use crate::{stalls, turns};

/// What is to be learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// What findings need.
    Findings,
    /// And the waits of the focus by place.
    Waits,
}

/// The sums of some waits: nanoseconds, and how many.
type Waited = FxHashMap<(ThreadIdx, StackId, WaitKind), (u64, u64)>;

/// What happened at locks, and where threads waited.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// By lock.
    pub(crate) locks: FxHashMap<LockId, LockStory>,
    /// Waits of the focus's own threads, but for joins and the kernel's idling.
    pub(crate) waited: Waited,
    /// Unusually long waits.
    pub(crate) stalls: stalls::Seen,
    /// What threads of one process did to each other while both ran.
    pub(crate) meanwhile: Meanwhile,
    /// How often idle threads of a scheduler inside of a program of the focus were woken, by process and by where.
    pub(crate) woken: FxHashMap<(u32, StackId), u64>,
    /// Where threads waited for processes that come from theirs and began in the trace: nanoseconds.
    pub(crate) children: FxHashMap<(ThreadIdx, StackId), u64>,
    /// Who got work from whom.
    pub(crate) fed: Fed,
    /// Whom processes ask.
    pub(crate) asked: AllAsked,
    /// Who takes turns.
    pub(crate) turns: turns::Seen,
    /// What threads did between their waits.
    pub(crate) rounds: Rounds,
}

impl Learned {
    /// From the waits that begin in one part. O(waits).
    pub(super) fn of(chunk: &Chunk, study: &Study, wanted: Wanted) -> Self {
        let mut learned = Learned { meanwhile: meanwhile(chunk, study), ..Learned::default() };
        for wait in chunk.waits_begun() {
            let inside = wait.start < study.window.to && wait.woken > study.window.from;
            let focus = study.focus.contains(wait.thread);
            if focus && inside && wait.kind == WaitKind::Lock && wait.lock != LockId::NONE {
                learned.locks.entry(wait.lock).or_default().add(wait, study.window);
            }
            let woken = inside && !wait.open && wait.waker_stack != StackId::NONE;
            if focus && woken && study.classifier.facts(wait.stack).parked {
                let pid = study.trace.threads.pid.get(wait.thread.index()).copied().unwrap_or(0);
                *learned.woken.entry((pid, wait.waker_stack)).or_default() += 1;
            }
            if focus && inside {
                learned.fed.add(wait, study);
            }
            if inside {
                learned.asked.add(wait, study);
            }
            if focus && inside && is_for_child(wait, study) {
                *learned.children.entry((wait.thread, wait.stack)).or_default() += wait.woken - wait.start;
            }
            if focus && wanted == Wanted::Waits {
                learned.add_waited(wait, study);
            }
        }
        if wanted == Wanted::Findings {
            learned.stalls = stalls::Seen::of(chunk, study);
            learned.turns = turns::Seen::of(chunk, study);
            let inside = |wait: &&Wait| study.window.from <= wait.start && wait.resumed <= study.window.to;
            learned.rounds = Rounds::of(chunk.waits_begun().iter().filter(inside));
        }
        learned
    }

    fn add_waited(&mut self, wait: &Wait, study: &Study) {
        let ns = wait.resumed.min(study.window.to).saturating_sub(wait.start.max(study.window.from));
        if study.focus.is_kernel(wait.thread) || wait.exempt || wait.idle_state || ns == 0 {
            return;
        }
        let sum = self.waited.entry((wait.thread, wait.stack, wait.kind)).or_default();
        *sum = (sum.0.saturating_add(ns), sum.1 + u64::from(wait.goes_on == 0));
    }

    /// Adds what an earlier part tells.
    pub(super) fn absorb(&mut self, earlier: Learned) {
        for (lock, story) in earlier.locks {
            self.locks.entry(lock).or_default().absorb(story);
        }
        self.meanwhile.add(&earlier.meanwhile);
        for (place, (ns, count)) in earlier.waited {
            let sum = self.waited.entry(place).or_default();
            *sum = (sum.0.saturating_add(ns), sum.1 + count);
        }
        for (place, count) in earlier.woken {
            *self.woken.entry(place).or_default() += count;
        }
        for (place, ns) in earlier.children {
            *self.children.entry(place).or_default() += ns;
        }
        self.fed.absorb(earlier.fed);
        self.asked.absorb(earlier.asked);
        self.stalls.absorb(earlier.stalls);
        self.turns.absorb(earlier.turns);
        self.rounds.absorb(earlier.rounds);
    }
}

fn is_for_child(wait: &Wait, study: &Study) -> bool {
    let began_here = study.trace.thread(wait.waker).is_some_and(|waker| waker.start.nanos() > 0);
    wait.waker.is_real() && began_here && is_child(study.trace, wait.waker, wait.thread)
}
