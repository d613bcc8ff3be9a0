//! What findings are about, and the sums behind them.

use std::collections::BTreeMap;

use holdup_trace::{Amount, LockId, Nanos, StackId, StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::main_stack::{main_stack, share};
use crate::blame::{AtWork, Cell, Key, Span, Terminal};
use crate::classify::{Classifier, Verdict, WaitKind};
use crate::report::{About, Activity};

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Group {
    /// A lock; after merging: one of several of its kind.
    Lock(LockId),
    /// A thread for which others wait, without a lock; after merging: one of several that are alike.
    Serial(ThreadIdx),
    /// A place in a program that waits for a disk.
    Disk(StringId, StringId),
    /// A place in a program that sleeps while others wait for it.
    Timer(StringId, StringId),
    /// Threads of a program that could run and did not, and why.
    Ready(StringId, Why),
    /// A place in a program that waits for the world outside in the middle of work.
    Outside(StringId, StringId),
    /// A place in a program that waits by design.
    Idle(StringId, StringId),
}

/// Why a thread that could run did not, and nobody waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Why {
    /// It was on its way to a CPU that was idle.
    Waking,
    /// The CPU on which it was to run was busy for a moment more, while another was idle.
    Turn,
    /// The quota of its control group was used up.
    Throttled,
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

    /// The function of a place that waits; none of what is no such place.
    pub(super) fn place(&self) -> Option<StringId> {
        match self {
            Group::Disk(_, at) | Group::Timer(_, at) | Group::Outside(_, at) | Group::Idle(_, at) => Some(*at),
            Group::Lock(_) | Group::Serial(_) | Group::Ready(..) => None,
        }
    }

    /// Whether both are places of one program that wait for the same.
    pub(super) fn is_like(&self, other: &Group) -> bool {
        use Group::*;
        match (self, other) {
            (Disk(a, _), Disk(b, _)) | (Timer(a, _), Timer(b, _)) => a == b,
            (Outside(a, _), Outside(b, _)) | (Idle(a, _), Idle(b, _)) => a == b,
            _ => false,
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
    /// What else would be in `rank`, had its threads not spent that part of their CPU time with waiting.
    pub(crate) wasted: Amount,
    pub(crate) idle: Amount,
    pub(crate) handoff: Amount,
    pub(crate) overhead: Amount,
    /// While the terminal could run and did not.
    pub(crate) not_running: Amount,
    /// The part of that during which a CPU was free.
    pub(crate) not_running_idle: Amount,
    /// The part of that during which it had been stopped by a signal, or frozen.
    pub(crate) stopped: Amount,
    /// Whether what the waiters miss is mostly a CPU for the one they wait for.
    pub(crate) starved: bool,
    /// While the terminal itself waited at one of `sites`.
    pub(crate) waiting: Amount,
    /// The part of that in which it slept, and in which it waited for the world outside.
    pub(crate) slept: Amount,
    pub(crate) outside: Amount,
    /// How long its threads were idle by design, and slept for it.
    at_rest: Nanos,
    pub(crate) asleep: Nanos,
    /// While nobody let the lock go any more.
    pub(crate) stuck: Amount,
    pub(crate) waits: u64,
    pub(crate) longest: Nanos,
    pub(crate) threads: FxHashSet<ThreadIdx>,
    /// Those of its waits that are in the middle of somebody's work.
    pub(crate) at_work: AtWork,
    pub(crate) samples: FxHashMap<StackId, f64>,
    /// The same samples, by thread: a cell has one thread at its end.
    ran: Vec<(ThreadIdx, StackId, f64)>,
    /// Where its waiters blocked, by the length of these waits in nanoseconds.
    pub(crate) wait_stacks: FxHashMap<StackId, u64>,
    /// Where which terminal let them go, by the same.
    releases: FxHashMap<(ThreadIdx, StackId), u64>,
    /// Where the terminals themselves wait.
    pub(crate) sites: FxHashMap<StackId, f64>,
    /// The locks that it is about, or that were held across its disk wait.
    pub(crate) locks: FxHashSet<LockId>,
    /// Blame by terminal thread.
    pub(crate) by_thread: FxHashMap<ThreadIdx, f64>,
    /// The same for those that had just got the lock.
    handed_to: FxHashMap<ThreadIdx, f64>,
    /// What of the cells has its own spans.
    subjects: FxHashSet<Key>,
}

impl Tally {
    /// Adds a cell of which the share `useful` counts.
    pub(super) fn add(&mut self, key: &Key, cell: &Cell, useful: f64) {
        self.waited += Nanos(cell.thread_ns);
        let rank = Amount(cell.rank_ns * useful);
        self.rank += rank;
        self.wasted += Amount(cell.rank_ns) - rank;
        self.idle += Amount(cell.idle_ns);
        match key.terminal {
            Terminal::Handoff => self.handoff += rank,
            Terminal::Overhead => self.overhead += rank,
            Terminal::NotRunning | Terminal::Stopped => {
                self.not_running += rank;
                self.not_running_idle += Amount(cell.cpu_ns);
                self.stopped += if key.terminal == Terminal::Stopped { rank } else { Amount::ZERO };
            }
            Terminal::Timer => self.slept += rank,
            Terminal::Outside => self.outside += rank,
            Terminal::Stuck => self.stuck += rank,
            Terminal::IdleByDesign => {
                self.at_rest += Nanos(cell.thread_ns);
                self.asleep += if key.kind == WaitKind::Timer { Nanos(cell.thread_ns) } else { Nanos::ZERO };
            }
            _ => {}
        }
        if matches!(key.terminal, Terminal::Timer | Terminal::Disk | Terminal::Outside | Terminal::Stuck) {
            self.waiting += rank;
        }
        self.waits += cell.waits;
        self.longest = self.longest.max(Nanos(cell.longest_ns));
        self.threads.extend(&cell.threads);
        self.at_work.absorb(cell.at_work.clone());
        for (&stack, &weight) in &cell.samples {
            *self.samples.entry(stack).or_default() += weight;
            self.ran.push((key.thread, stack, weight));
        }
        // Where nothing is known of the lock's own waiters, those behind them are better than none.
        let stacks = if cell.wait_stacks.is_empty() { &cell.behind_stacks } else { &cell.wait_stacks };
        for (&stack, &ns) in stacks {
            *self.wait_stacks.entry(stack).or_default() += ns;
        }
        for (&stack, &ns) in &cell.release_stacks {
            *self.releases.entry((key.thread, stack)).or_default() += ns;
        }
        if key.kind == WaitKind::Lock && key.lock != LockId::NONE {
            self.locks.insert(key.lock);
        }
        let weight = rank.0 + cell.idle_ns + cell.thread_ns as f64 * 1e-6;
        if key.site != StackId::NONE {
            *self.sites.entry(key.site).or_default() += weight;
        }
        // In a hand-off nobody holds the lock: the woken thread is no culprit.
        let by = if key.terminal == Terminal::Handoff { &mut self.handed_to } else { &mut self.by_thread };
        *by.entry(key.thread).or_default() += weight;
        self.subjects.insert(key.subject());
    }

    /// Leaves out how long threads were idle that have no task: they wait for whichever gets one, and say nothing of what that one waits for.
    pub(super) fn set_aside(&mut self, key: &Key, cell: &Cell) {
        self.at_rest.0 -= cell.thread_ns;
        self.asleep.0 -= if key.kind == WaitKind::Timer { cell.thread_ns } else { 0 };
    }

    /// Whether those who did not run were mostly stopped, so that no CPU would have helped them.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped > 0.5 * self.not_running
    }

    pub(super) fn absorb(&mut self, other: Tally) {
        self.waited += other.waited;
        self.rank += other.rank;
        self.wasted += other.wasted;
        self.idle += other.idle;
        self.handoff += other.handoff;
        self.overhead += other.overhead;
        self.not_running += other.not_running;
        self.not_running_idle += other.not_running_idle;
        self.stopped += other.stopped;
        self.waiting += other.waiting;
        self.slept += other.slept;
        self.outside += other.outside;
        self.stuck += other.stuck;
        self.at_rest += other.at_rest;
        self.asleep += other.asleep;
        self.waits += other.waits;
        self.longest = self.longest.max(other.longest);
        self.threads.extend(other.threads);
        self.at_work.absorb(other.at_work);
        other.samples.into_iter().for_each(|(k, v)| *self.samples.entry(k).or_default() += v);
        other.wait_stacks.into_iter().for_each(|(k, v)| *self.wait_stacks.entry(k).or_default() += v);
        other.releases.into_iter().for_each(|(k, v)| *self.releases.entry(k).or_default() += v);
        other.sites.into_iter().for_each(|(k, v)| *self.sites.entry(k).or_default() += v);
        other.by_thread.into_iter().for_each(|(k, v)| *self.by_thread.entry(k).or_default() += v);
        other.handed_to.into_iter().for_each(|(k, v)| *self.handed_to.entry(k).or_default() += v);
        self.ran.extend(other.ran);
        self.locks.extend(other.locks);
        self.subjects.extend(other.subjects);
    }

    /// Adds what others cost that wait for the same at one remove. What it is about, and where, stays.
    pub(super) fn absorb_behind(&mut self, other: &Tally) {
        self.waited += other.waited;
        self.rank += other.rank;
        self.idle += other.idle;
        self.waits += other.waits;
        self.longest = self.longest.max(other.longest);
        self.threads.extend(&other.threads);
        self.at_work.absorb(other.at_work.clone());
    }

    /// What ranks the group, in CPU time.
    pub(crate) fn blame(&self) -> Amount {
        self.rank + self.idle
    }

    /// Blame by the thread at the chain's end; where all of it is handing over, by who got the lock.
    pub(crate) fn ends(&self) -> &FxHashMap<ThreadIdx, f64> {
        if self.by_thread.is_empty() { &self.handed_to } else { &self.by_thread }
    }

    /// What those threads at the chain's end ran while others waited for them.
    pub(crate) fn ran_by(&self, threads: &[ThreadIdx]) -> impl Iterator<Item = (ThreadIdx, StackId, f64)> + '_ {
        let threads: FxHashSet<ThreadIdx> = threads.iter().copied().collect();
        self.ran.iter().copied().filter(move |(thread, ..)| threads.contains(thread))
    }

    /// Where those threads mostly let their waiters go; where none did, any.
    pub(crate) fn main_release(&self, threads: &[ThreadIdx]) -> StackId {
        let most = |own: bool| {
            let mut sums: FxHashMap<StackId, u64> = FxHashMap::default();
            let of = self.releases.iter().filter(|((thread, _), _)| !own || threads.contains(thread));
            of.for_each(|((_, stack), ns)| *sums.entry(*stack).or_default() += ns);
            sums.into_iter().max_by_key(|(stack, ns)| (*ns, std::cmp::Reverse(*stack))).map(|(stack, _)| stack)
        };
        most(true).or_else(|| most(false)).unwrap_or(StackId::NONE)
    }

    /// The share of what they waited that ended where `is_it` picks, from 0 to 1; 0 where that is of none known. O(stacks).
    pub(super) fn share_released(&self, is_it: impl Fn(StackId) -> bool) -> f64 {
        share(self.releases.iter().map(|((_, stack), ns)| (*stack, *ns as f64)), is_it)
    }

    /// The share of what the terminals themselves waited at sites that `is_it` picks, from 0 to 1; 0 where they did not wait. O(stacks).
    pub(super) fn share_of_sites(&self, is_it: impl Fn(StackId) -> bool) -> f64 {
        share(self.sites.iter().map(|(stack, time)| (*stack, *time)), is_it)
    }

    /// How many threads its time is the time of: those that waited, or that were ready themselves.
    pub(crate) fn count(&self) -> usize {
        self.threads.len().max(self.ends().len())
    }

    /// Whether most of the blame is that of threads that `wanted` picks.
    pub(super) fn is_mostly_of(&self, wanted: impl Fn(ThreadIdx) -> bool) -> bool {
        let own: f64 = self.ends().iter().filter(|(thread, _)| wanted(**thread)).map(|(_, blame)| blame).sum();
        2.0 * own > self.ends().values().sum()
    }

    /// The share of that thread in the blame.
    pub(crate) fn largest_share(&self) -> f64 {
        let all: f64 = self.ends().values().sum();
        self.ends().values().fold(0.0, |most: f64, &b| most.max(b)) / all.max(f64::MIN_POSITIVE)
    }

    /// A stack of the place at which its waiters waited longest.
    pub(crate) fn common_stack(&self, classifier: &Classifier) -> StackId {
        self.common_stack_of(classifier, |_| true)
    }

    /// For how long its waiters waited at places that `is_it` picks, in nanoseconds. O(stacks).
    pub(super) fn waited_at(&self, is_it: impl Fn(StackId) -> bool) -> u64 {
        self.wait_stacks.iter().filter(|(stack, _)| is_it(**stack)).map(|(_, ns)| ns).sum()
    }

    /// The same as a share of all of it, from 0 to 1; 0 where nobody waited.
    pub(super) fn share_at(&self, is_it: impl Fn(StackId) -> bool) -> f64 {
        share(self.wait_stacks.iter().map(|(stack, ns)| (*stack, *ns as f64)), is_it)
    }

    /// The same of those that `wanted` picks.
    pub(crate) fn common_stack_of(&self, classifier: &Classifier, wanted: impl Fn(StackId) -> bool) -> StackId {
        let stacks = self.wait_stacks.iter().filter(|(stack, _)| wanted(**stack));
        main_stack(classifier, stacks.map(|(stack, ns)| (*stack, *ns as f64)))
    }

    /// A stack of the place at which the terminals mostly wait.
    pub(crate) fn main_site(&self, classifier: &Classifier) -> StackId {
        // A thread without a task waits for whichever of them gets one, and one that is there to wait tells nothing of the program.
        let tells = |stack: &StackId| {
            let facts = classifier.facts(*stack);
            (*stack != StackId::NONE && facts.verdict != Some(Verdict::Idle), !facts.parked)
        };
        let mut weights: BTreeMap<_, f64> = BTreeMap::default();
        self.sites.iter().for_each(|(stack, weight)| *weights.entry(tells(stack)).or_default() += weight);
        let all: f64 = weights.values().sum();
        let most = weights.into_iter().rev().find(|(_, weight)| *weight > CHANCE * all).map(|(tells, _)| tells);
        let sites = self.sites.iter().filter(|(stack, _)| Some(tells(stack)) == most);
        main_stack(classifier, sites.map(|(stack, weight)| (*stack, *weight)))
    }

    /// Whether its threads mostly slept by design.
    pub(crate) fn is_asleep(&self) -> bool {
        2 * self.asleep.0 > self.at_rest.0
    }

    /// How long each of its threads was idle by design, on average.
    pub(crate) fn rested_each(&self) -> Amount {
        self.at_rest.amount() / self.ends().len().max(1) as f64
    }

    /// What was done for most of the time that is charged to it.
    pub(crate) fn activity(&self) -> Activity {
        if self.outside + self.stuck > 0.5 * self.rank {
            Activity::Waited
        } else if self.slept > 0.5 * self.rank {
            Activity::Slept
        } else {
            Activity::Ran
        }
    }

    /// What it is about.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = &Key> {
        self.subjects.iter()
    }

    /// When others waited for the subjects that `wanted` picks.
    pub(crate) fn spans<'a>(
        &'a self,
        all: &'a FxHashMap<Key, Vec<Span>>,
        wanted: impl Fn(&Key) -> bool + 'a,
    ) -> impl Iterator<Item = Span> + 'a {
        let own = self.subjects.iter().filter(move |key| wanted(key));
        own.filter_map(|key| all.get(key)).flatten().copied()
    }

    /// Whom and what it is about.
    pub(super) fn about(&self) -> About {
        let mut subjects: Vec<Key> = self.subjects().copied().collect();
        subjects.sort_unstable();
        let mut culprits: Vec<(ThreadIdx, f64)> = self.ends().iter().map(|(thread, blame)| (*thread, *blame)).collect();
        culprits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut waiters: Vec<ThreadIdx> = self.threads.iter().copied().collect();
        waiters.sort_unstable();
        About {
            subjects,
            culprits: culprits.into_iter().map(|(thread, _)| thread).collect(),
            waiters,
            ..About::default()
        }
    }

    /// Whether most of the blame is hand-off: then the place that takes the lock is what to mend.
    pub(super) fn is_handed_over(&self) -> bool {
        self.handoff + self.overhead > 0.5 * self.rank
    }
}

/// Less of the time than this in a place may be chance.
const CHANCE: f64 = 0.01;
