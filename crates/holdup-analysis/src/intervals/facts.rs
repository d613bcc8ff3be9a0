//! What only the whole trace tells, and every part of it needs.

use holdup_trace::{LockId, StackId, StringId, Table, ThreadIdx, WakeContext};
use rustc_hash::{FxHashMap, FxHashSet};

use super::homes::Homes;
use super::origin::{Origin, origin};
use super::place::Place;
use super::prepare::Dictionary;
use super::sites::{Seen, Sites};
use super::wait::Wait;
use crate::classify::{StackFacts, WaitKind};
use crate::servers::Servers;

/// So many times as many waits ended by the network as by threads are by another machine.
const MOSTLY: u32 = 4;
/// No longer wait is for another machine's answer, in nanoseconds.
const LONGEST_ANSWER_NS: u64 = 1_000_000_000;
/// CPU time after a wait below which the thread only came back to exit, in nanoseconds.
const EXIT_NS: u64 = 300_000;

/// The first wait whose stack told for what a futex is.
#[derive(Debug, Clone, Copy)]
struct Learned {
    start: u64,
    thread: ThreadIdx,
    kind: WaitKind,
}

/// Learned from all waits.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Locks of which an owner was ever seen.
    owned: Vec<bool>,
    /// By lock.
    learned: Vec<Option<Learned>>,
    /// Locks without an address, by process: their ids lie behind those of the trace.
    nameless: FxHashMap<u32, LockId>,
    /// When each thread's last wait begins, and when it has ended.
    last: Vec<(u64, u64)>,
    sites: Sites,
    homes: Homes,
    /// Stacks of sleeps.
    sleeps: FxHashSet<StackId>,
    /// Where input is awaited: how often the program brought it that did so first, and, without a name, others or the network.
    pub(super) brought: FxHashMap<(StackId, StringId), u32>,
    /// Where input is looked for and none arrives, of threads to which it comes elsewhere.
    pub(super) aside: FxHashSet<StackId>,
    /// Waits for input that timed out within requests, by thread and beginning.
    timeouts: FxHashSet<(ThreadIdx, u64)>,
    /// By futex: how often somebody let it go who had waited there himself, and how often somebody else.
    turns: FxHashMap<LockId, [u32; 2]>,
    /// Who waited for which futex.
    waiters: FxHashSet<(LockId, ThreadIdx)>,
    /// Threads that serve nobody, and that hardly anybody answers but the network.
    asking: FxHashSet<ThreadIdx>,
    /// How many waits there are.
    pub(super) waits: u64,
    /// Whether the focus hangs.
    pub(super) hangs: bool,
}

impl Facts {
    pub(super) fn new(locks: usize, threads: usize) -> Self {
        Facts { owned: vec![false; locks], learned: vec![None; locks], last: vec![(0, 0); threads], ..Facts::default() }
    }

    /// A prepared wait that is over, or never ends.
    pub(super) fn learn(&mut self, wait: &Wait, dictionary: &Dictionary) {
        self.waits += 1;
        self.sites.learn(wait, dictionary);
        self.learn_turn(wait);
        let last = &mut self.last[wait.thread.index()];
        *last = (wait.start, wait.resumed).max(*last);
        if let Some(pid) = dictionary.nameless(wait) {
            let next = LockId((self.owned.len() + self.nameless.len()) as u32);
            self.nameless.entry(pid).or_insert(next);
        }
        let tells = matches!(wait.kind, WaitKind::Lock | WaitKind::Condition | WaitKind::Join);
        if let Some(known) = self.learned.get_mut(wait.lock.index()).filter(|_| tells && wait.lock != LockId::NONE) {
            let this = Learned { start: wait.start, thread: wait.thread, kind: wait.kind };
            if known.is_none_or(|k| (this.start, this.thread) < (k.start, k.thread)) {
                *known = Some(this);
            }
        }
    }

    /// All waits of a part that are over, and who woke whom out of one that had begun before the trace.
    pub(super) fn learn_requests<'w>(
        &mut self,
        waits: impl Iterator<Item = &'w Wait> + Clone,
        censored: &[(ThreadIdx, ThreadIdx, u64)],
        dictionary: &Dictionary,
    ) {
        self.sites.requests.learn_part(waits, censored, dictionary.trace);
    }

    /// Of a mutex, those let go who have waited for it; a signal comes from somebody else.
    fn learn_turn(&mut self, wait: &Wait) {
        if wait.kind != WaitKind::Futex || wait.lock == LockId::NONE {
            return;
        }
        self.waiters.insert((wait.lock, wait.thread));
        if wait.waker.is_real() {
            let by_waiter = self.waiters.contains(&(wait.lock, wait.waker));
            self.turns.entry(wait.lock).or_default()[usize::from(!by_waiter)] += 1;
        }
    }

    /// The whole trace has been seen, and these samples.
    pub(super) fn settle(
        &mut self,
        samples: FxHashMap<(ThreadIdx, StackId), u32>,
        servers: &Servers,
        dictionary: &Dictionary,
    ) {
        let Sites { mut waits, mut answers, requests, arrivals, .. } = std::mem::take(&mut self.sites);
        for ((_, stack), seen) in &waits {
            for (program, n) in [(seen.brought_by, seen.brought[0]), (StringId::default(), seen.brought[1])] {
                *self.brought.entry((*stack, program)).or_default() += n;
            }
        }
        self.brought.retain(|_, n| *n > 0);
        self.aside = aside(&waits);
        self.sleeps =
            waits.iter().filter(|(_, seen)| seen.kind == WaitKind::Timer).map(|((_, stack), _)| *stack).collect();
        let serves = |thread: &ThreadIdx| servers.is_server(*thread) == Some(true);
        requests.answers.iter().for_each(|(thread, n)| *answers.entry(*thread).or_default() += n);
        answers.retain(|thread, _| serves(thread));
        for (site, [within, known]) in requests.sleeps.into_iter().filter(|(site, _)| serves(&site.0)) {
            waits.entry(site).or_default().asked = 2 * within > known;
        }
        self.timeouts = requests.timeouts.into_iter().filter(|(thread, _)| serves(thread)).collect();
        self.homes = Homes::new(waits, samples, &answers, dictionary);
        let asks = |thread: &ThreadIdx| servers.is_server(*thread) == Some(false);
        let asking =
            arrivals.into_iter().filter(|(thread, [threads, network])| *network > MOSTLY * *threads && asks(thread));
        self.asking = asking.map(|(thread, _)| thread).collect();
        self.waiters = FxHashSet::default();
    }

    /// Whether threads sleep there, whatever the functions around it say: a `select` of no files does.
    pub(super) fn sleeps_at(&self, stack: StackId) -> bool {
        self.sleeps.contains(&stack)
    }

    /// What the place of a stack is to those that wait there.
    pub(super) fn place(&self, stack: StackId) -> Place {
        self.homes.place(stack)
    }

    /// Whether a sleep is only taken to be in the middle of what somebody asked for.
    pub(super) fn is_presumed(&self, stack: StackId) -> bool {
        self.homes.is_presumed(stack)
    }

    /// Whether other processes send a thread something about as often as it sleeps there.
    pub(super) fn is_fed(&self, stack: StackId) -> bool {
        self.homes.is_fed(stack)
    }

    /// What a futex is of which no stack tells it: a lock if an owner was seen, or if those wake who have waited.
    fn kind_of_futex(&self, lock: LockId) -> WaitKind {
        let learned = || self.learned.get(lock.index()).copied().flatten().map(|l| l.kind);
        match self.turns.get(&lock) {
            _ if self.is_owned(lock) => WaitKind::Lock,
            Some([own, others]) if own > others => WaitKind::Lock,
            _ => learned().unwrap_or(WaitKind::Futex),
        }
    }

    /// Completes a prepared wait, which goes on as its last part does.
    pub(super) fn complete(&self, wait: &mut Wait, dictionary: &Dictionary) {
        wait.waker = dictionary.who_closed(wait);
        if wait.kind == WaitKind::Stopped {
            // Whoever lets it go on has done nothing for it meanwhile.
            (wait.waker, wait.context) = (ThreadIdx::NONE, WakeContext::Unknown);
        }
        // Who has no task waits for one, whoever brings it.
        if wait.kind == WaitKind::Futex && !dictionary.classifier.facts(wait.stack).parked {
            wait.kind = self.kind_of_futex(wait.lock);
        }
        if let Some(lock) = dictionary.nameless(wait).and_then(|pid| self.nameless.get(&pid)) {
            wait.lock = *lock;
        }
        if wait.kind == WaitKind::Lock && dictionary.classifier.facts(wait.waker_stack).signals {
            // Whoever ends the program does not let its locks go.
            (wait.waker, wait.context, wait.open) = (ThreadIdx::NONE, WakeContext::Unknown, true);
        }
        let joins = dictionary.is_join(wait);
        if joins {
            wait.kind = WaitKind::Join;
        }
        let exit = dictionary.trace.threads.end.get(wait.thread.index()).map_or(u64::MAX, |e| e.nanos());
        let (last, resumed) = self.last[wait.thread.index()];
        let returns_to_exit = exit != u64::MAX
            && exit.saturating_sub(resumed) < EXIT_NS
            && last == wait.last_start
            && may_be_told_to_exit(wait, dictionary);
        match wait.kind {
            WaitKind::Lock | WaitKind::Disk | WaitKind::PageFault | WaitKind::Write | WaitKind::Stopped => {
                wait.place = Place::Middle;
                wait.verdict = dictionary.classifier.facts(wait.stack).verdict;
            }
            _ if self.timeouts.contains(&(wait.thread, wait.start)) => wait.place = Place::Middle,
            _ => self.find_place(wait, dictionary),
        }
        if wait.place == Place::Home && self.may_be_answer(wait) {
            wait.place = Place::Unsure;
        }
        wait.exempt = joins || returns_to_exit || wait.kind == WaitKind::KernelIdle || wait.only_stands(self.hangs);
    }

    /// What the wait's place is. Where that is in a function with a lock's name, it is for a lock: a poll, a semaphore or a
    /// signal may serve as one.
    fn find_place(&self, wait: &mut Wait, dictionary: &Dictionary) {
        let (place, stack) = self.homes.of(wait, dictionary);
        let StackFacts { lock_function: lock, takes_lock, verdict, .. } = dictionary.classifier.facts(stack);
        let by_name = place == Place::Middle && lock != StringId::default() && wait.kind != WaitKind::Timer;
        // Of one that never ends, only a lock that people know by its name is one: who handles deadlocks waits for some.
        if by_name && (!wait.is_standing() || takes_lock) {
            (wait.kind, wait.lock) = (WaitKind::Lock, LockId(self.first_place() + lock.0));
        }
        (wait.place, wait.verdict) = (place, verdict);
    }

    /// Whether another machine may have answered one who asked it: a client has nothing to do at home but to wait for answers. Longer than
    /// a second hardly one keeps others waiting; who was told something then may have only listened. Whom threads of this machine mostly
    /// answer has asked these, though some packets arrive in a softirq that does not tell who sent them.
    fn may_be_answer(&self, wait: &Wait) -> bool {
        wait.is_from_network()
            && wait.kind.is_for_bytes()
            && wait.woken.saturating_sub(wait.start) < LONGEST_ANSWER_NS
            && self.asking.contains(&wait.thread)
    }

    /// Locks that are known by a function alone have ids behind all others.
    fn first_place(&self) -> u32 {
        (self.owned.len() + self.nameless.len()) as u32
    }

    /// The function by which a lock is known of which there is nothing else.
    pub(super) fn lock_function(&self, lock: LockId) -> Option<StringId> {
        lock.0.checked_sub(self.first_place()).map(StringId)
    }

    /// Whether an owner of the lock was ever seen.
    pub(super) fn is_owned(&self, lock: LockId) -> bool {
        self.owned.get(lock.index()).copied().unwrap_or(false)
    }

    /// An owner was seen.
    pub(super) fn own(&mut self, span: &super::OwnerSpan, dictionary: &Dictionary) {
        if is_known(span, dictionary) {
            self.owned[span.lock.index()] = true;
        }
    }
}

/// Whether who ended a wait may have done so only for the thread to exit. A time that is over, or what another program sent, is what the
/// thread waited for, though it has nothing left to do then, as `sleep 1`, or a client with one question.
fn may_be_told_to_exit(wait: &Wait, dictionary: &Dictionary) -> bool {
    use WaitKind::{Disk, Lock, PageFault, Stopped, Write};
    let answered = || wait.kind.is_for_bytes() && origin(wait, dictionary) == Origin::Outside;
    !matches!(wait.kind, Lock | Disk | PageFault | Write | Stopped) && !wait.is_timed_out() && !answered()
}

/// Damaged ids, and the idle task, own nothing.
pub(super) fn is_known(span: &super::OwnerSpan, dictionary: &Dictionary) -> bool {
    let trace = dictionary.trace;
    span.lock.index() < trace.locks.len() && span.owner.index() < trace.threads.len() && span.owner.is_real()
}

/// Where threads wait for a time as for input, which comes to them elsewhere.
fn aside(waits: &FxHashMap<(ThreadIdx, StackId), Seen>) -> FxHashSet<StackId> {
    let is_brought = |seen: &Seen| seen.brought != [0; 2];
    let fed: FxHashSet<ThreadIdx> =
        waits.iter().filter(|(_, seen)| is_brought(seen)).map(|((thread, _), _)| *thread).collect();
    let looks = |((thread, _), seen): &(&(ThreadIdx, StackId), &Seen)| seen.kind.is_for_bytes() && fed.contains(thread);
    let mut aside: FxHashSet<StackId> = waits.iter().filter(looks).map(|((_, stack), _)| *stack).collect();
    waits.iter().filter(|(_, seen)| is_brought(seen)).for_each(|((_, stack), _)| {
        aside.remove(stack);
    });
    aside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_fed_elsewhere_waits_for_a_time() {
        let seen = |brought| Seen { kind: WaitKind::Input, brought, ..Seen::default() };
        let waits = [
            // A database's process reads its client's commands in one place, and sleeps where input could come in another.
            ((1, 10), [9, 0]),
            ((1, 11), [0, 0]),
            // Nobody has asked that one yet.
            ((2, 20), [0, 0]),
            // Its sibling has been asked there.
            ((3, 30), [4, 1]),
            ((4, 30), [0, 0]),
            ((4, 40), [1, 0]),
        ];
        let waits = waits.into_iter().map(|((thread, stack), n)| ((ThreadIdx(thread), StackId(stack)), seen(n)));
        assert_eq!(aside(&waits.collect()), FxHashSet::from_iter([StackId(11)]));
    }
}
