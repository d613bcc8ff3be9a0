//! Stacks by what they took: what ran, what waited, who ended the waits, and what the idle CPUs are charged to.
//!
//! Each is a path of names from the outermost to the innermost:
//!
//! ```text
//!   on-CPU    process  [thread]  frames of the samples
//!   off-CPU   what the thread does there  process  [thread]  frames where it blocked
//!   wakers    what the thread does there  process  [thread]  the waker's process, its thread, its frames
//!   blame     process  thread  what one waits for  frames of what it did meanwhile
//! ```
//!
//! Memory grows with the number of different stacks, not with the trace.

mod blamed;
mod names;
mod waited;

use holdup_analysis::blame::Study;
use holdup_base::named;
use holdup_trace::{StackId, StringId, ThreadIdx, Trace};
use rustc_hash::FxHashMap;

use crate::Result;
pub use names::{NameId, Named, Names};

named! {
    /// Which stacks.
    pub enum Kind {
        /// What ran: CPU samples.
        OnCpu = "on-cpu",
        /// Where threads waited, from leaving the CPU to being woken.
        OffCpu = "off-cpu",
        /// Who ended these waits, and where.
        Wakers = "wakers",
        /// What the CPUs that were idle are charged to: what was done, or not, while others waited for it.
        Blame = "blame",
    }
}

/// Which stacks are wanted.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Of these kinds; of the format's own choice if there is none.
    pub kinds: Vec<Kind>,
    /// Each thread for itself, not all of a process together.
    pub per_thread: bool,
}

named! {
    /// What the weights of stacks are.
    pub enum Unit {
        /// Nanoseconds.
        Nanoseconds = "nanoseconds",
        /// How many: samples of something else than time.
        None = "none",
    }
}

/// The stacks of one kind, of a thread or of all.
#[derive(Debug)]
pub struct Group {
    /// Of which kind.
    pub kind: Kind,
    /// Whose, if threads are apart.
    pub thread: Option<ThreadIdx>,
    /// What the weights are.
    pub unit: Unit,
    /// Paths, the outermost name first, with their weights; sorted.
    pub paths: Vec<(Vec<NameId>, u64)>,
}

/// Stacks by what they took, with their names.
#[derive(Debug)]
pub struct Weighed {
    /// What the names are.
    pub names: Vec<Named>,
    /// By kind, then by thread.
    pub groups: Vec<Group>,
}

/// Whose a stack is: a thread, or all threads of processes of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Whose {
    Thread(ThreadIdx),
    Process(StringId),
}

/// Paths while they are added up.
type Paths = FxHashMap<(Option<ThreadIdx>, Vec<NameId>), u64>;

/// What all kinds need.
struct Weighing<'a> {
    study: &'a Study<'a>,
    names: Names<'a>,
    per_thread: bool,
}

/// Weighs the stacks of `kinds`. O(events).
///
/// # Errors
/// If a table is damaged.
pub(crate) fn weigh(study: &Study, kinds: &[Kind], per_thread: bool) -> Result<Weighed> {
    let mut weighing = Weighing { study, names: Names::new(study.trace), per_thread };
    let mut groups = Vec::new();
    for &kind in kinds {
        let (paths, unit) = match kind {
            Kind::OnCpu => weighing.samples()?,
            Kind::OffCpu | Kind::Wakers => (weighing.waits(kind)?, Unit::Nanoseconds),
            Kind::Blame => (weighing.blame()?, Unit::Nanoseconds),
        };
        groups.extend(grouped(kind, unit, paths));
    }
    Ok(Weighed { names: weighing.names.finish(), groups })
}

/// Whether the trace's samples stand for time, and for how much each.
pub(crate) fn period(trace: &Trace) -> (u64, Unit) {
    match trace.meta.sample_period_ns {
        0 => (1, Unit::None),
        period => (period, Unit::Nanoseconds),
    }
}

fn grouped(kind: Kind, unit: Unit, paths: Paths) -> Vec<Group> {
    let mut sorted: Vec<_> = paths.into_iter().filter(|(_, weight)| *weight > 0).collect();
    sorted.sort_unstable();
    let mut groups: Vec<Group> = Vec::new();
    for ((thread, path), weight) in sorted {
        match groups.last_mut().filter(|g| g.thread == thread) {
            Some(group) => group.paths.push((path, weight)),
            None => groups.push(Group { kind, thread, unit, paths: vec![(path, weight)] }),
        }
    }
    groups
}

impl Weighing<'_> {
    fn whose(&self, thread: ThreadIdx) -> Whose {
        let process = || self.study.trace.threads.process.get(thread.index()).copied().unwrap_or_default();
        if self.per_thread { Whose::Thread(thread) } else { Whose::Process(process()) }
    }

    /// The names with which a path of it begins.
    fn begin(&mut self, whose: Whose) -> (Option<ThreadIdx>, Vec<NameId>) {
        match whose {
            Whose::Process(name) => (None, vec![self.names.process(name)]),
            Whose::Thread(thread) => (Some(thread), self.names.of_thread(thread).to_vec()),
        }
    }

    fn samples(&mut self) -> Result<(Paths, Unit)> {
        let trace = self.study.trace;
        let (period, unit) = period(trace);
        let mut sums: FxHashMap<(Whose, StackId), u64> = FxHashMap::default();
        for chunk in trace.samples.chunks() {
            let chunk = chunk?;
            for (&thread, &stack) in chunk.thread.iter().zip(&chunk.stack) {
                if self.study.focus.contains(thread) {
                    *sums.entry((self.whose(thread), stack)).or_default() += 1;
                }
            }
        }
        let mut paths = Paths::default();
        for ((whose, stack), samples) in sums {
            let (thread, mut path) = self.begin(whose);
            self.names.frames(stack, &mut path);
            let sum = paths.entry((thread, path)).or_default();
            *sum = sum.saturating_add(samples.saturating_mul(period));
        }
        Ok((paths, unit))
    }
}
