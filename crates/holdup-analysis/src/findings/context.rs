//! What is known of a trace before anything is found.

use std::cell::OnceCell;

use holdup_trace::{LockId, LockKind, Nanos, StackId, StringId, ThreadIdx, Trace};
use rustc_hash::{FxHashMap, FxHashSet};

use super::callers::Callers;
use super::learned::Learned;
use super::limits::Limits;
use super::spans::merged;
use super::tally::Tally;
use crate::blame::{Blame, Key};
use crate::classify::Classifier;
use crate::code::Disassembler;
use crate::focus::Focus;
use crate::intervals::{Timeline, starter};
use crate::label;
use crate::report::LockFacts;
use crate::spins::SpinSites;

/// Who began whom is followed so far.
const GENERATIONS: usize = 16;

/// Everything that the makers of findings look at.
pub(crate) struct Context<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) focus: &'a Focus,
    pub(crate) timeline: &'a Timeline<'a>,
    pub(crate) classifier: &'a Classifier<'a>,
    pub(crate) spins: &'a SpinSites<'a>,
    pub(crate) blame: &'a Blame,
    pub(crate) disassembler: &'a dyn Disassembler,
    pub(crate) learned: Learned,
    pub(crate) limits: Limits,
    /// Who calls whom, in all samples; made when it is first asked for.
    pub(crate) callers: OnceCell<Callers>,
    /// The share of its CPU time in which a thread only waited, of those that did; made when it is first asked for.
    pub(crate) wasted: OnceCell<FxHashMap<ThreadIdx, f64>>,
}

impl Context<'_> {
    /// The frames of a stack as lines, the innermost first.
    pub(crate) fn stack_text(&self, stack: StackId) -> Vec<String> {
        label::stack_lines(self.trace, stack)
    }

    /// `file.c:12`, the file without its folders; empty if unknown.
    pub(crate) fn source(&self, l: &holdup_trace::tables::LocationRow) -> String {
        label::source(self.trace, l)
    }

    pub(crate) fn thread_name(&self, thread: ThreadIdx) -> &str {
        label::thread_name(self.trace, thread)
    }

    pub(crate) fn pid(&self, thread: ThreadIdx) -> u32 {
        self.trace.threads.pid.get(thread.index()).copied().unwrap_or(0)
    }

    /// All threads of the trace.
    pub(crate) fn threads(&self) -> impl Iterator<Item = ThreadIdx> + Clone + use<> {
        (0..self.trace.threads.pid.len()).map(|i| ThreadIdx(i as u32))
    }

    /// How long a thread ran.
    pub(crate) fn ran(&self, thread: ThreadIdx) -> Nanos {
        Nanos(self.timeline.ran.get(thread.index()).copied().unwrap_or(0))
    }

    /// The thread that began the process of `thread`.
    pub(super) fn starter(&self, thread: ThreadIdx) -> Option<ThreadIdx> {
        starter(self.trace, thread)
    }

    /// Who began the process of `thread`, who began his, and so on.
    pub(super) fn starters(&self, thread: ThreadIdx) -> impl Iterator<Item = ThreadIdx> {
        std::iter::successors(self.starter(thread), |thread| self.starter(*thread)).take(GENERATIONS)
    }

    /// Whether a process of this program has begun that of `thread`, be it at some removes.
    pub(super) fn is_begun_by(&self, thread: ThreadIdx, program: StringId) -> bool {
        self.starters(thread).any(|starter| self.program(starter) == program)
    }

    /// Whether a thread answers what others ask of it, as far as that is known.
    pub(super) fn is_server(&self, thread: ThreadIdx) -> bool {
        self.timeline.is_server(thread) == Some(true)
    }

    /// Whether it asks, and answers nobody.
    pub(super) fn is_client(&self, thread: ThreadIdx) -> bool {
        self.timeline.is_server(thread) == Some(false)
    }

    /// What was sampled in focus: threads and stacks, with nanoseconds.
    pub(super) fn profile(&self) -> impl Iterator<Item = (ThreadIdx, StackId, f64)> {
        let all = self.blame.profile.iter().map(|((thread, stack), ns)| (*thread, *stack, *ns));
        all.filter(|(thread, ..)| self.focus.contains(*thread))
    }

    /// What these threads ran, in nanoseconds by stack.
    pub(super) fn samples_of(&self, threads: impl IntoIterator<Item = ThreadIdx>) -> FxHashMap<StackId, f64> {
        let mut samples: FxHashMap<StackId, f64> = FxHashMap::default();
        for (stack, ns) in threads.into_iter().flat_map(|thread| self.blame.samples_of(thread)) {
            *samples.entry(stack).or_default() += ns;
        }
        samples
    }

    /// How many processes these threads are of. A number is given again, so that each thread that began a process counts as one.
    pub(super) fn processes(&self, threads: impl Iterator<Item = ThreadIdx>) -> usize {
        let (mut pids, mut first) = (FxHashSet::default(), 0);
        for thread in threads {
            let pid = self.pid(thread);
            first += usize::from(self.trace.threads.tid.get(thread.index()) == Some(&pid));
            pids.insert(pid);
        }
        first.max(pids.len())
    }

    /// The name of the thread's program.
    pub(crate) fn program(&self, thread: ThreadIdx) -> StringId {
        self.trace.threads.process.get(thread.index()).copied().unwrap_or_default()
    }

    /// What is known of a lock; of some only the function that takes them.
    pub(crate) fn lock(&self, lock: LockId) -> Option<LockFacts> {
        let by_function = || {
            let name = self.trace.text(self.timeline.lock_function(lock)?).to_owned();
            Some(LockFacts { kind: LockKind::Unknown, address: String::new(), name })
        };
        label::lock(self.trace, lock).or_else(by_function)
    }

    /// When others waited for the subjects of a finding that `wanted` picks, neighbours merged, and how long that is
    /// together.
    pub(crate) fn spans(&self, tally: &Tally, wanted: impl Fn(&Key) -> bool) -> (Vec<(u64, u64)>, Nanos) {
        let (from, to) = self.blame.window;
        let (spans, exact) = merged(tally.spans(&self.blame.spans, wanted).collect(), (to - from) / 200);
        (spans, Nanos(exact))
    }

    /// The share of its CPU time in which a thread only waited: in a loop, or for a cache line that others changed, too.
    pub(crate) fn wasted(&self, thread: ThreadIdx) -> f64 {
        let all = self.wasted.get_or_init(|| {
            let ran = |thread| self.blame.samples_of(thread).map(|(_, ns)| ns).sum::<f64>();
            let share = |(thread, ns): (ThreadIdx, f64)| (thread, (ns / ran(thread)).min(1.0));
            self.learned.meanwhile.waited().into_iter().map(share).collect()
        });
        all.get(&thread).copied().unwrap_or(0.0)
    }

    /// The sampling period in nanoseconds.
    pub(crate) fn period(&self) -> f64 {
        self.trace.meta.sample_period_ns as f64
    }
}
