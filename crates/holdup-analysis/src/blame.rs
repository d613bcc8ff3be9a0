//! Charges every CPU second once: the backward sweep.
//!
//! Going backwards in time, a wait begins where its thread was woken, and there its waker is known: link. It ends
//! where the thread had left its CPU: cut. In between the waiting threads form a forest whose roots run, could run,
//! or wait for something that is no thread.
//!
//! ```text
//!      C ──waits for──▶ B ──waits for──▶ A (runs)        terminal of C and B: A, running
//! ```
//!
//! Charging is lazy and by queues ([`forest`]): a running integral tells what one held-up thread is charged up to now,
//! and a queue next to a root is charged as many times the difference as it has threads whenever its terminal or that
//! number changes. A change costs the depth of the chain and the number of queues at the thread, however many threads
//! wait there; time without a change costs nothing. What a terminal that holds nobody up means for each thread is read
//! off when the thread leaves.
//!
//! Each part of the trace is swept by itself ([`run`]), on as many CPUs as there are, and the charges are added up in the
//! parts' order, so that the answer does not depend on how many CPUs that were.

mod callers;
mod cells;
mod census;
mod charged;
mod clock;
mod course;
mod forest;
mod key;
mod latency;
mod locks;
mod processors;
mod ready;
mod recorder;
mod run;
mod spans;
mod study;
mod sum;
mod sweep;
mod terminal;

use std::collections::BTreeSet;

use holdup_trace::{StackId, StringId, ThreadIdx};
use rustc_hash::FxHashMap;

pub use cells::{AtWork, Cell};
pub use census::{Asker, Asks};
pub use course::{Asked, Course, REST};
pub use key::{Key, Terminal};
pub use latency::Latency;
pub use run::{blame, blame_part, over_part, over_time};
pub use spans::Span;
pub use study::Study;

/// A part of the trace, in nanoseconds since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// From when.
    pub from: u64,
    /// Until when.
    pub to: u64,
}

/// Where the CPU time went, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuSeconds {
    /// CPUs × duration.
    pub total: f64,
    /// Threads of the focus ran, spinning included.
    pub running: f64,
    /// Others ran.
    pub other: f64,
    /// Idle, and charged to what held threads up.
    pub held_up: f64,
    /// Idle although threads could run.
    pub runnable_idle: f64,
    /// Idle for want of work.
    pub no_work: f64,
    /// Not known.
    pub lost: f64,
    /// The part of `running` whose samples are in spin loops.
    pub spin: f64,
}

/// The result of the sweep.
#[derive(Debug, Default)]
pub struct Blame {
    /// The sum.
    pub cpu: CpuSeconds,
    /// The charges.
    pub cells: Vec<(Key, Cell)>,
    /// By the subject of cells: when somebody waited for it, latest first.
    pub spans: FxHashMap<Key, Vec<Span>>,
    /// By the subject of cells: who of other programs asked for it, at a few hundred instants.
    pub askers: FxHashMap<Key, Vec<Asker>>,
    /// How many waited for a time, or for input that no thread sent, by where and at which of those instants.
    pub resting: FxHashMap<(StackId, u32), u32>,
    /// How many instants these are.
    pub instants: u64,
    /// All samples of the window by thread and stack, in nanoseconds; sorted.
    pub profile: Vec<((ThreadIdx, StackId), f64)>,
    /// The focus's samples by how many of its threads were at work (ran, could run, or waited for a lock, a disk, a time or
    /// the world outside), thread and stack, in nanoseconds of CPU time and of elapsed time: those that run share it.
    pub at_work: FxHashMap<(usize, ThreadIdx, StackId), (f64, f64)>,
    /// How long so many threads of the focus ran or could run while so many waited for a lock, a disk or a time, in nanoseconds.
    pub waiting: FxHashMap<(usize, usize), f64>,
    /// By thread that was ready while others waited for it: who ran on its CPU instead, in nanoseconds; sorted.
    pub instead: Vec<((ThreadIdx, ThreadIdx), u64)>,
    /// By name of the program: how long its threads took from being woken to running, where a CPU was idle for them.
    pub latencies: FxHashMap<StringId, Latency>,
    /// Who ran while threads of the focus could have run there and no CPU was idle: their part of it in nanoseconds; sorted.
    pub neighbours: Vec<(ThreadIdx, f64)>,
    /// Circles of parent pointers.
    pub cycles: u64,
    /// Threads that wait for each other's locks until the trace ends.
    pub deadlocked: BTreeSet<ThreadIdx>,
    /// The window.
    pub window: (u64, u64),
}

impl Blame {
    /// Thread seconds by the terminal rule, summed over the cells that `wanted` picks.
    pub fn thread_ns(&self, mut wanted: impl FnMut(&Key) -> bool) -> u64 {
        self.cells.iter().filter(|(k, _)| wanted(k)).map(|(_, c)| c.thread_ns).sum()
    }

    /// The samples of one thread, by stack.
    pub(crate) fn samples_of(&self, thread: ThreadIdx) -> impl Iterator<Item = (StackId, f64)> + '_ {
        let first = self.profile.partition_point(|((t, _), _)| *t < thread);
        let own = self.profile[first..].iter().take_while(move |((t, _), _)| *t == thread);
        own.map(|((_, stack), ns)| (*stack, *ns))
    }

    /// Who ran instead of a thread that was ready while others waited for it, in nanoseconds.
    pub(crate) fn instead_of(&self, thread: ThreadIdx) -> impl Iterator<Item = (ThreadIdx, u64)> + '_ {
        let first = self.instead.partition_point(|((t, _), _)| *t < thread);
        let own = self.instead[first..].iter().take_while(move |((t, _), _)| *t == thread);
        own.map(|((_, by), ns)| (*by, *ns))
    }
}
