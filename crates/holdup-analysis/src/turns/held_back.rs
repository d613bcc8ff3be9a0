//! Messages that the network of this machine held back.
//!
//! ```text
//!   client  ▪ writes, writes again, reads . . . . . . . . . . . . ▪
//!   server  . ▪ reads the first, waits for the second . . . . . ▪     woken by no thread, but when a timer let it through
//! ```
//!
//! The second part stays in the sender's kernel until the first is acknowledged (Nagle), and the receiver's kernel
//! acknowledges after 40 ms unless it has something to send. Both threads wait for each other all that time. Others may wait for the
//! receiver as long: the sender is the one whose first part woke it before.
//!
//! Where the recorder saw that the acknowledgement was sent by its timer, whoever got something then had been sent the first part 40 ms before: by
//! the thread that woke it at that time, among all that wake an event loop.
//!
//! Else, a receiver with many connections has no such wait of its own, as others wake it meanwhile. There the sender's wait tells: it took as
//! long, and whoever ended it had only just been woken by no thread.

use holdup_trace::{StackId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::intervals::{Chunk, Wait};

/// An acknowledgement is held back so long in nanoseconds: 40 ms, and what a timer and a wake-up may add.
const DELAY: std::ops::RangeInclusive<u64> = 38_000_000..=50_000_000;
/// Whoever gets what was held back asks again at once: within so many nanoseconds.
const ANSWERS_WITHIN: u64 = 1_000_000;
/// So long an acknowledgement is held back at least, in nanoseconds.
const HELD: u64 = 40_000_000;

/// Waits of one thread within waits of another for it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Delays {
    pub(crate) count: u64,
    /// All together, in nanoseconds.
    pub(crate) ns: u64,
    pub(crate) longest: u64,
    /// Of how many the recorder saw that it was an acknowledgement.
    pub(crate) seen: u64,
    /// Of how many of these the sender is known: it woke the receiver when the acknowledgement began to be held back.
    pub(crate) known: u64,
    /// When the first began, and the last ended.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Where the receiver waits.
    pub(crate) stack: StackId,
    /// Where the sender waits meanwhile, or sent what was to be acknowledged.
    pub(crate) sender_stack: StackId,
}

/// What was held back.
#[derive(Debug, Default)]
pub(crate) struct HeldBack {
    /// By receiver and sender.
    delays: FxHashMap<(ThreadIdx, ThreadIdx), Delays>,
    /// By receiver, who else waited for it as long, and how often.
    behind: FxHashMap<ThreadIdx, FxHashMap<ThreadIdx, u64>>,
}

impl HeldBack {
    /// From one part. O(waits + long waits log long waits), and n log n in the waits of those that end long ones.
    pub(super) fn of(chunk: &Chunk, pid: impl Fn(ThreadIdx) -> u32) -> Self {
        let mut found = HeldBack::default();
        let is_seen = found.add_seen(chunk, pid);
        if !is_seen {
            found.add_of_many(chunk);
        }
        let received = received(chunk);
        if received.is_empty() {
            return found;
        }
        // Each wait belongs to the part in which the sender's begins.
        for wait in chunk.waits_begun().iter().filter(|w| w.waker.is_real() && w.length() >= *DELAY.start()) {
            for (sender, waits) in received.get(&wait.waker).into_iter().flatten() {
                // Those that end within this one; most of each has to lie in it, and it for the most part consists of them.
                let first = waits.partition_point(|w| w.woken <= wait.start);
                let inside = waits[first..].iter().take_while(|w| w.woken <= wait.woken);
                for w in inside.filter(|w| w.woken - w.start.max(wait.start) > w.length() / 2) {
                    if *sender == wait.thread && !is_seen {
                        found.add(w, wait, w.woken - w.start.max(wait.start));
                    } else if *sender != wait.thread {
                        *found.behind.entry(w.thread).or_default().entry(wait.thread).or_default() += 1;
                    }
                }
            }
        }
        found
    }

    /// Those that the recorder saw, if there are any. O(waits).
    fn add_seen(&mut self, chunk: &Chunk, pid: impl Fn(ThreadIdx) -> u32) -> bool {
        let late: FxHashSet<ThreadIdx> =
            chunk.waits().iter().filter(|w| w.is_by_late_ack()).map(|w| w.thread).collect();
        if late.is_empty() {
            return false;
        }
        let senders = Senders::of(chunk, &late.iter().map(|t| pid(*t)).collect(), &pid);
        for wait in chunk.waits().iter().filter(|w| !w.open && w.is_by_late_ack() && w.kind.is_for_bytes()) {
            if let Some((first, is_known)) = senders.first_part(wait, pid(wait.thread)) {
                let ns = wait.length().clamp(HELD, *DELAY.end());
                let known = u64::from(is_known);
                let delay = Delays { seen: 1, known, sender_stack: first.stack, ..Delays::once(wait, ns) };
                self.delays.entry((wait.thread, first.sender)).or_default().absorb(&delay);
            }
        }
        true
    }

    /// Messages to receivers that others wake meanwhile.
    fn add_of_many(&mut self, chunk: &Chunk) {
        let sent = || {
            chunk.waits().iter().filter(|w| w.waker.is_real() && w.kind.is_for_bytes() && DELAY.contains(&w.length()))
        };
        let mut arrivals: FxHashMap<ThreadIdx, Vec<&Wait>> = sent().map(|w| (w.waker, Vec::new())).collect();
        if arrivals.is_empty() {
            return;
        }
        for wait in chunk.waits().iter().filter(|w| !w.open) {
            if let Some(waits) = arrivals.get_mut(&wait.thread) {
                waits.push(wait);
            }
        }
        arrivals.values_mut().for_each(|waits| waits.sort_unstable_by_key(|w| w.woken));
        for sent in sent() {
            let waits = &arrivals[&sent.waker];
            let last = waits[..waits.partition_point(|w| w.woken <= sent.woken)].last();
            let answered =
                |w: &&&Wait| w.is_from_network() && w.kind.is_for_bytes() && sent.woken - w.woken <= ANSWERS_WITHIN;
            // One that waited so long itself is found by that.
            if let Some(received) = last.filter(answered).filter(|w| !DELAY.contains(&w.length())) {
                self.add(received, sent, sent.length());
            }
        }
    }

    fn add(&mut self, received: &Wait, sent: &Wait, ns: u64) {
        let delay = Delays { sender_stack: sent.stack, ..Delays::once(received, ns) };
        self.delays.entry((received.thread, sent.thread)).or_default().absorb(&delay);
    }

    pub(super) fn absorb(&mut self, earlier: &HeldBack) {
        earlier.delays.iter().for_each(|(pair, delays)| self.delays.entry(*pair).or_default().absorb(delays));
        for (receiver, behind) in &earlier.behind {
            let known = self.behind.entry(*receiver).or_default();
            behind.iter().for_each(|(thread, count)| *known.entry(*thread).or_default() += count);
        }
    }

    /// Who waited for `receiver` meanwhile, other than the sender, at least so often.
    pub(crate) fn behind(&self, receiver: ThreadIdx, least: u64) -> impl Iterator<Item = ThreadIdx> + '_ {
        let often = self.behind.get(&receiver).into_iter().flatten().filter(move |(_, count)| **count >= least);
        often.map(|(behind, _)| *behind)
    }

    /// By receiver and sender, in the order of their threads.
    pub(crate) fn pairs(&self) -> Vec<(ThreadIdx, ThreadIdx, Delays)> {
        let delays = self.delays.iter();
        let mut pairs: Vec<_> = delays.map(|(&(receiver, sender), delays)| (receiver, sender, *delays)).collect();
        pairs.sort_unstable_by_key(|(receiver, sender, _)| (*receiver, *sender));
        pairs
    }
}

/// A message that woke its receiver: when, who sent it, and where.
#[derive(Debug, Clone, Copy)]
struct Sent {
    t: u64,
    sender: ThreadIdx,
    stack: StackId,
}

/// Who sent what to the threads of the processes that get what was held back, each list in the order of time.
///
/// In a runtime that gives its work to whichever thread is free, the first part may have woken another thread than the second; and its own
/// threads wake each other where they wait for bytes.
#[derive(Default)]
struct Senders {
    /// Of another process, by receiver.
    to_thread: FxHashMap<ThreadIdx, Vec<Sent>>,
    /// Of another process, by the receiver's.
    to_process: FxHashMap<u32, Vec<Sent>>,
    /// Of the same process, by receiver.
    own: FxHashMap<ThreadIdx, Vec<Sent>>,
}

impl Senders {
    /// To these `processes`. O(waits log waits).
    fn of(chunk: &Chunk, processes: &FxHashSet<u32>, pid: impl Fn(ThreadIdx) -> u32) -> Self {
        let mut senders = Senders::default();
        for wait in chunk.waits().iter().filter(|w| !w.open && w.waker.is_real() && processes.contains(&pid(w.thread)))
        {
            let sent = Sent { t: wait.woken, sender: wait.waker, stack: wait.waker_stack };
            if pid(wait.waker) == pid(wait.thread) {
                senders.own.entry(wait.thread).or_default().push(sent);
            } else if wait.kind.is_for_bytes() {
                senders.to_thread.entry(wait.thread).or_default().push(sent);
                senders.to_process.entry(pid(wait.thread)).or_default().push(sent);
            }
        }
        let lists =
            senders.to_thread.values_mut().chain(senders.to_process.values_mut()).chain(senders.own.values_mut());
        lists.for_each(|sent| sent.sort_unstable_by_key(|s| s.t));
        senders
    }

    /// What was to be acknowledged where that ended `received`, a wait of this process, and whether that is known: it came when the
    /// acknowledgement began to be held back. One that came while its receiver was awake woke nobody: then it may be the last one that did.
    /// O(log waits + those of a delay).
    fn first_part(&self, received: &Wait, process: u32) -> Option<(Sent, bool)> {
        let (thread, t) = (&received.thread, received.woken);
        let others = || [self.to_thread.get(thread), self.to_process.get(&process)].into_iter().flatten();
        let last = |sent: &Vec<Sent>| before(sent, t).last().copied();
        let held = others().find_map(|sent| when_held(sent, t));
        let guessed = || others().chain(self.own.get(thread)).find_map(last);
        held.map(|sent| (sent, true)).or_else(|| Some((guessed()?, false)))
    }
}

/// What was sent before `t`.
fn before(sent: &[Sent], t: u64) -> &[Sent] {
    &sent[..sent.partition_point(|s| s.t < t)]
}

/// What was sent as long before `t` as an acknowledgement is held back.
fn when_held(sent: &[Sent], t: u64) -> Option<Sent> {
    let sent = before(sent, t.saturating_sub(*DELAY.start()));
    let recent = sent.iter().rev().take_while(|s| t - s.t <= *DELAY.end());
    recent.min_by_key(|s| (t - s.t).abs_diff(HELD)).copied()
}

impl Delays {
    /// What this wait was for had been held back so long.
    fn once(received: &Wait, ns: u64) -> Self {
        let (from, to) = (received.woken.saturating_sub(ns), received.woken);
        Delays { count: 1, ns, longest: ns, from, to, stack: received.stack, ..Delays::default() }
    }

    /// How much time went by, in nanoseconds: several may wait at once.
    pub(crate) fn lasted(&self) -> u64 {
        self.ns.min(self.to - self.from)
    }

    /// Adds others.
    pub(crate) fn absorb(&mut self, other: &Delays) {
        self.from = if self.count == 0 { other.from } else { self.from.min(other.from) };
        self.count += other.count;
        self.seen += other.seen;
        self.known += other.known;
        self.ns += other.ns;
        self.longest = self.longest.max(other.longest);
        self.to = self.to.max(other.to);
        let known = |present: StackId, new: StackId| if present == StackId::NONE { new } else { present };
        self.stack = known(self.stack, other.stack);
        self.sender_stack = known(self.sender_stack, other.sender_stack);
    }
}

/// What was let through, by who received it and who had woken the receiver before.
fn received(chunk: &Chunk) -> FxHashMap<ThreadIdx, FxHashMap<ThreadIdx, Vec<&Wait>>> {
    let waits = || chunk.waits().iter().filter(|w| !w.open);
    // Most traces have none, so that nobody's last waker need be kept.
    let mut last: FxHashMap<ThreadIdx, ThreadIdx> =
        waits().filter(|w| is_let_through(w)).map(|w| (w.thread, ThreadIdx::NONE)).collect();
    let mut received: FxHashMap<ThreadIdx, FxHashMap<ThreadIdx, Vec<&Wait>>> = FxHashMap::default();
    if last.is_empty() {
        return received;
    }
    for wait in waits() {
        let Some(last) = last.get_mut(&wait.thread) else { continue };
        let before = std::mem::replace(last, wait.waker);
        if before.is_real() && is_let_through(wait) {
            received.entry(wait.thread).or_default().entry(before).or_default().push(wait);
        }
    }
    received
}

/// Whether the wait was for bytes, took as long as an acknowledgement is held back, and was ended by no thread.
fn is_let_through(wait: &Wait) -> bool {
    wait.kind.is_for_bytes()
        && wait.is_from_network()
        && !wait.open
        && DELAY.contains(&wait.woken.saturating_sub(wait.start))
}
