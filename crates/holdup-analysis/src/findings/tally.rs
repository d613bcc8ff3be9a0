//! What findings are about, and the sums behind them.

use holdup_trace::{Amount, LockId, Nanos, StackId, StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::spans::merged;
use crate::blame::{Cell, Key, Terminal};
use crate::classify::WaitKind;

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Group {
    /// A lock.
    Lock(LockId),
    /// A thread for which others wait, without a lock; after merging: one of several that run the same function.
    Serial(ThreadIdx),
    /// A place in a process that waits for a disk.
    Disk(u32, StringId),
    /// A place in a process that sleeps while others wait for it.
    Timer(u32, StringId),
    /// Threads of a program that could run and did not, and why.
    Ready(StringId, Why),
    /// A place in a process that waits for the world outside in the middle of work.
    Outside(u32, StringId),
    /// A place in a process that waits by design.
    Idle(u32, StringId),
}

/// Why a thread that could run did not, and nobody waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Why {
    /// It was on its way to a CPU that was idle.
    Waking,
    /// The CPU on which it was to run was busy for a moment more, while another was idle.
    Turn,
    /// The CPU on which it was to run stood idle.
    Stalled,
    /// The CPU on which it was to run was busy while another was idle.
    Misplaced,
    /// It may not run on the CPUs that were idle.
    Barred,
    /// Others used the CPUs.
    Starved,
}

impl Group {
    pub(crate) fn holds_up(&self) -> bool {
        !matches!(self, Group::Idle(..))
    }

    pub(crate) fn lock(&self) -> Option<LockId> {
        match self {
            Group::Lock(lock) => Some(*lock),
            _ => None,
        }
    }

    pub(crate) fn is_lock(&self) -> bool {
        matches!(self, Group::Lock(_))
    }
}

/// The sum of a group's cells.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// All waiters together.
    pub(crate) waited: Nanos,
    pub(crate) rank: Amount,
    pub(crate) idle: Amount,
    pub(crate) handoff: Amount,
    pub(crate) overhead: Amount,
    /// While the terminal could run and did not.
    pub(crate) not_running: Amount,
    /// The part of that during which a CPU was free.
    pub(crate) not_running_idle: Amount,
    /// Whether what the waiters miss is mostly a CPU for the one they wait for.
    pub(crate) starved: bool,
    /// While the terminal itself waited at one of `sites`.
    pub(crate) waiting: Amount,
    pub(crate) waits: u64,
    pub(crate) longest: Nanos,
    pub(crate) threads: FxHashSet<ThreadIdx>,
    pub(crate) samples: FxHashMap<StackId, f64>,
    pub(crate) wait_stacks: FxHashMap<StackId, u64>,
    /// Where the terminals themselves wait.
    pub(crate) sites: FxHashMap<StackId, f64>,
    /// Locks that were held across a disk wait.
    pub(crate) locks: FxHashSet<LockId>,
    /// Blame by terminal thread.
    pub(crate) by_thread: FxHashMap<ThreadIdx, f64>,
    spans: Vec<(u64, u64)>,
}

impl Tally {
    pub(super) fn add(&mut self, key: &Key, cell: &Cell) {
        self.waited += Nanos(cell.thread_ns);
        let rank = Amount(cell.rank_ns);
        self.rank += rank;
        self.idle += Amount(cell.idle_ns);
        match key.terminal {
            Terminal::Handoff => self.handoff += rank,
            Terminal::Overhead => self.overhead += rank,
            Terminal::NotRunning => {
                self.not_running += rank;
                self.not_running_idle += Amount(cell.cpu_ns);
            }
            Terminal::Timer | Terminal::Disk | Terminal::Outside => self.waiting += rank,
            _ => {}
        }
        self.waits += cell.waits;
        self.longest = self.longest.max(Nanos(cell.longest_ns));
        self.threads.extend(&cell.threads);
        for (&stack, &weight) in &cell.samples {
            *self.samples.entry(stack).or_default() += weight;
        }
        for (&stack, &n) in &cell.wait_stacks {
            *self.wait_stacks.entry(stack).or_default() += n;
        }
        if key.terminal == Terminal::Disk && key.kind == WaitKind::Lock {
            self.locks.insert(key.lock);
        }
        let weight = cell.rank_ns + cell.idle_ns + cell.thread_ns as f64 * 1e-6;
        if key.site != StackId::NONE {
            *self.sites.entry(key.site).or_default() += weight;
        }
        // In a hand-off nobody holds the lock: the woken thread is no culprit.
        if key.terminal != Terminal::Handoff || self.by_thread.is_empty() {
            *self.by_thread.entry(key.thread).or_default() += weight;
        }
        self.spans.extend(&cell.windows);
    }

    pub(super) fn absorb(&mut self, other: Tally) {
        self.waited += other.waited;
        self.rank += other.rank;
        self.idle += other.idle;
        self.handoff += other.handoff;
        self.overhead += other.overhead;
        self.not_running += other.not_running;
        self.not_running_idle += other.not_running_idle;
        self.waiting += other.waiting;
        self.waits += other.waits;
        self.longest = self.longest.max(other.longest);
        self.threads.extend(other.threads);
        other.samples.into_iter().for_each(|(k, v)| *self.samples.entry(k).or_default() += v);
        other.wait_stacks.into_iter().for_each(|(k, v)| *self.wait_stacks.entry(k).or_default() += v);
        other.sites.into_iter().for_each(|(k, v)| *self.sites.entry(k).or_default() += v);
        other.by_thread.into_iter().for_each(|(k, v)| *self.by_thread.entry(k).or_default() += v);
        self.spans.extend(other.spans);
    }

    /// What ranks the group, in CPU time.
    pub(crate) fn blame(&self) -> Amount {
        self.rank + self.idle
    }

    /// The terminal thread with the most blame.
    pub(crate) fn main_thread(&self) -> ThreadIdx {
        let most = self.by_thread.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
        most.map_or(ThreadIdx::NONE, |(t, _)| *t)
    }

    /// How many threads its time is the time of: those that waited, or that were ready themselves.
    pub(crate) fn count(&self) -> usize {
        self.threads.len().max(self.by_thread.len())
    }

    /// The share of that thread in the blame.
    pub(crate) fn largest_share(&self) -> f64 {
        let all: f64 = self.by_thread.values().sum();
        self.by_thread.values().fold(0.0, |most: f64, &b| most.max(b)) / all.max(f64::MIN_POSITIVE)
    }

    /// The most frequent stack of its waiters.
    pub(crate) fn common_stack(&self) -> StackId {
        let most = self.wait_stacks.iter().max_by_key(|(stack, n)| (**n, std::cmp::Reverse(**stack)));
        most.map_or(StackId::NONE, |(s, _)| *s)
    }

    /// The stack at which the terminals mostly wait.
    pub(crate) fn main_site(&self) -> StackId {
        let most = self.sites.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
        most.map_or(StackId::NONE, |(s, _)| *s)
    }

    /// When, neighbours merged, and how long they are together.
    pub(crate) fn spans(&self, within: (u64, u64)) -> (Vec<(u64, u64)>, Nanos) {
        let (spans, exact) = merged(self.spans.clone(), (within.1 - within.0) / 200);
        (spans, Nanos(exact))
    }

    /// The same in seconds.
    pub(crate) fn windows(&self, within: (u64, u64)) -> (Vec<[f64; 2]>, Nanos) {
        let (spans, exact) = self.spans(within);
        (spans.into_iter().map(|(a, b)| [Nanos(a), Nanos(b)].map(Nanos::seconds)).collect(), exact)
    }

    /// Sampled CPU time of the culprit itself, as far as it lies in this finding; one sample stands for `period` of it.
    pub(crate) fn own_samples(&self, period: Amount) -> Amount {
        // Weights count each waiter; time does not.
        let waiters = self.threads.len().max(1) as f64;
        Amount(self.samples.values().sum::<f64>() / waiters).max(self.samples.len() as f64 * period)
    }

    /// Whether most of the blame is hand-off: then the place that takes the lock is what to mend.
    pub(super) fn is_handed_over(&self) -> bool {
        self.handoff + self.overhead > 0.5 * self.rank
    }
}
