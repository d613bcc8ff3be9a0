//! Who asks whom, looked at now and then: the threads of other programs that wait for whoever a chain ends at, without another program
//! between.
//!
//! ```text
//!   client ──▶ web server (asks) ──▶ backend's worker ──▶ backend's timer (the chain's end)
//! ```
//!
//! How many ask at a time is what a pool, or a number of workers, lets in. A look at each of a few hundred instants tells it; to
//! follow it exactly would cost something at every switch.

use std::cmp::Ordering;

use holdup_trace::{LockId, StackId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Window;
use super::forest::{Class, Forest, NONE, Queue};
use super::key::{Key, Terminal};
use crate::classify::WaitKind;
use crate::intervals::{Place, State, Wait};

/// So many instants are looked at, at most.
const INSTANTS: u64 = 256;
/// So many threads in all instants together, at most: with more threads there are fewer instants.
const LOOKS: u64 = 1 << 22;
/// Chains are followed so far.
const DEEPEST: usize = 64;
/// So many askers are kept, at most.
const ROOM: usize = 1 << 20;

/// One that asks, at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asker {
    /// Which instant.
    pub instant: u32,
    /// Who asks.
    pub thread: ThreadIdx,
    /// Where it waits.
    pub stack: StackId,
    /// How many it may ask at this instant, as far as its wait tells.
    pub asks: Asks,
    /// Whether threads of another process wait for it.
    pub is_waited_for: bool,
    /// Where most threads of its own process stand that wait for it as for a lock, such as for their turn to ask; none if no two do.
    pub behind: StackId,
    /// The thread of its process that it holds up at the fewest removes, and where that stands; none where there are several.
    pub by: (ThreadIdx, StackId),
}

/// How many a thread may ask at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Asks {
    /// It is in the middle of its work: the one that it waits for.
    One,
    /// It waits for input of whatever kind where its work begins, as an event loop does.
    Several,
    /// Its place does not tell.
    Unknown,
}

impl Asks {
    fn of(class: Class, wait: &Wait) -> Self {
        match (wait.place, class) {
            (Place::Home, _) if wait.kind == WaitKind::Input => Asks::Several,
            (Place::Home, _) => Asks::Unknown,
            (_, Class::HeldUp) => Asks::One,
            _ => Asks::Unknown,
        }
    }
}

/// By the subject at the chain's end.
pub(super) type Askers = FxHashMap<Key, Vec<Asker>>;

/// How many waited for a time to pass, or for input that no thread is known to have sent, by where and at which instant.
pub(super) type Resting = FxHashMap<(StackId, u32), u32>;

/// What all instants come to.
#[derive(Debug, Default)]
pub(super) struct Looks {
    pub(super) instants: u64,
    pub(super) askers: Askers,
    pub(super) resting: Resting,
}

impl Looks {
    /// Adds those of another part.
    pub(super) fn absorb(&mut self, other: Looks) {
        self.instants += other.instants;
        other.askers.into_iter().for_each(|(key, askers)| self.askers.entry(key).or_default().extend(askers));
        other.resting.into_iter().for_each(|(place, n)| *self.resting.entry(place).or_default() += n);
    }
}

/// What was seen at the instants of a part.
#[derive(Debug)]
pub(super) struct Census {
    window: Window,
    step: u64,
    /// The next instant, going backwards, and when that is.
    next: u64,
    at: u64,
    seen: Looks,
    room: usize,
}

impl Census {
    /// Of a part that ends at `to`, of a trace with so many threads.
    pub(super) fn new(window: Window, to: u64, threads: usize) -> Self {
        let instants = (LOOKS / threads.max(1) as u64).clamp(1, INSTANTS);
        let step = (window.to.saturating_sub(window.from) / instants).max(1);
        let passed = to.min(window.to).saturating_sub(window.from + step / 2);
        // The instant at a part's very end is that of the next part.
        let next = passed.div_ceil(step);
        let mut census = Census { window, step, next, at: 0, seen: Looks::default(), room: ROOM };
        census.settle();
        census
    }

    fn settle(&mut self) {
        self.at = match self.next {
            0 => 0,
            next => self.window.from + (next - 1) * self.step + self.step / 2,
        };
    }

    /// Whether an instant lies at `t` or behind it.
    #[inline]
    pub(super) fn is_due(&self, t: u64) -> bool {
        self.next > 0 && t <= self.at
    }

    /// Looks at what is so at all instants since `t`, going backwards. O(threads × depth) where there is one.
    #[cold]
    pub(super) fn look<'w>(
        &mut self,
        t: u64,
        forest: &Forest,
        pid: impl Fn(u32) -> u32,
        wait: impl Fn(u32) -> &'w Wait,
    ) {
        let first = self.next;
        while self.is_due(t) {
            self.next -= 1;
            self.settle();
        }
        let instants = self.next as u32..first as u32;
        self.seen.instants += instants.len() as u64;
        let view = View { forest, pid, wait };
        let (waited_for, behind, nearest) = (view.waited_for(), view.behind(), view.nearest());
        for i in 0..forest.threads.len() as u32 {
            let Some(wait) = view.waits(i) else { continue };
            let Wait { stack, kind, .. } = *wait;
            let is_time = kind == WaitKind::Timer || wait.is_timed_out();
            if forest.at(i).queue == NONE && (is_time || kind.is_for_bytes()) {
                instants.clone().for_each(|instant| *self.seen.resting.entry((stack, instant)).or_default() += 1);
            }
            // Who has no room to write into asks nothing.
            let Some(key) = view.asked(i).filter(|_| kind != WaitKind::Write) else { continue };
            let asks = Asks::of(forest.at(i).anywhere, wait);
            self.room = self.room.saturating_sub(instants.len());
            if self.room > 0 {
                let (thread, is_waited_for) = (ThreadIdx(i), waited_for.contains(&i));
                let behind = behind.get(&i).copied().unwrap_or(StackId::NONE);
                let by = view.by(i, &nearest);
                let asker = |instant| Asker { instant, thread, stack, asks, is_waited_for, behind, by };
                self.seen.askers.entry(key).or_default().extend(instants.clone().map(asker));
            }
        }
    }

    /// All of it; no askers where there were too many to keep.
    pub(super) fn finish(self) -> Looks {
        if self.room == 0 { Looks { askers: Askers::default(), ..self.seen } } else { self.seen }
    }
}

/// The threads at an instant: who waits for whom, of which process each is, and its wait.
struct View<'f, P, W> {
    forest: &'f Forest,
    pid: P,
    wait: W,
}

impl<'w, P: Fn(u32) -> u32, W: Fn(u32) -> &'w Wait> View<'_, P, W> {
    fn waits(&self, i: u32) -> Option<&'w Wait> {
        match self.forest.at(i).state {
            State::Waiting(w) => Some((self.wait)(w)),
            _ => None,
        }
    }

    /// Whom a thread waits for, and so on to the end of its chain.
    fn ahead(&self, i: u32) -> impl Iterator<Item = (u32, &Queue)> {
        let path = self.forest.path(self.forest.at(i).queue).take(DEEPEST).map(|q| self.forest.queue(q));
        path.map(|queue| (queue.parent, queue)).take_while(|(parent, _)| *parent != NONE)
    }

    /// For whom threads of another process wait, be it at some removes, and not only for their end.
    fn waited_for(&self) -> FxHashSet<u32> {
        let mut found = FxHashSet::default();
        for i in 0..self.forest.threads.len() as u32 {
            let ahead = self.ahead(i).take_while(|(_, queue)| queue.kind.kind != WaitKind::Join);
            found.extend(ahead.map(|(parent, _)| parent).filter(|&parent| (self.pid)(parent) != (self.pid)(i)));
        }
        found
    }

    /// Where most threads stand that wait for another one of their process as for a lock, be it at some removes, such as by a database that keeps a
    /// row for that one, if they are several. O(threads × depth).
    fn behind(&self) -> FxHashMap<u32, StackId> {
        let mut stand: FxHashMap<u32, FxHashMap<StackId, u32>> = FxHashMap::default();
        for i in 0..self.forest.threads.len() as u32 {
            let (Some(wait), Class::HeldUp | Class::ByEnd) = (self.waits(i), self.forest.at(i).anywhere) else {
                continue;
            };
            let mut is_for_turn = false;
            let ahead = self.ahead(i).take_while(|(_, queue)| queue.kind.kind != WaitKind::Join);
            let behind_turn = ahead.filter_map(|(parent, queue)| {
                is_for_turn |= queue.kind.kind.is_for_turn();
                is_for_turn.then_some(parent)
            });
            if let Some(last) = behind_turn.filter(|&parent| (self.pid)(parent) == (self.pid)(i)).last() {
                *stand.entry(last).or_default().entry(wait.stack).or_default() += 1;
            }
        }
        let most = |places: FxHashMap<StackId, u32>| {
            let several = places.into_iter().filter(|(_, n)| *n > 1);
            several.max_by_key(|&(stack, n)| (n, stack))
        };
        stand.into_iter().filter_map(|(of, places)| Some((of, most(places)?.0))).collect()
    }

    /// By thread: at how few removes it holds up one of its process, and which one; [`NONE`] where it is several. Those that are only held up by
    /// the chain's end, as who has nothing to do is, come behind those in the middle of their work. O(threads × depth).
    fn nearest(&self) -> FxHashMap<u32, ((bool, usize), u32)> {
        let mut found: FxHashMap<u32, ((bool, usize), u32)> = FxHashMap::default();
        let class = |i: u32| self.forest.at(i).anywhere;
        let is_held_up = |i: &u32| matches!(class(*i), Class::HeldUp | Class::ByEnd);
        for i in (0..self.forest.threads.len() as u32).filter(is_held_up) {
            let own = self.ahead(i).map(|(parent, _)| parent).take_while(|&parent| (self.pid)(parent) == (self.pid)(i));
            for (removes, parent) in own.enumerate() {
                let far = (matches!(class(i), Class::ByEnd), removes);
                let nearest = found.entry(parent).or_insert((far, i));
                *nearest = match far.cmp(&nearest.0) {
                    Ordering::Less => (far, i),
                    Ordering::Equal if nearest.1 != i => (far, NONE),
                    Ordering::Equal | Ordering::Greater => *nearest,
                };
            }
        }
        found
    }

    /// Whom a thread holds up, as [`Asker::by`] has it.
    fn by(&self, i: u32, nearest: &FxHashMap<u32, ((bool, usize), u32)>) -> (ThreadIdx, StackId) {
        let only = nearest.get(&i).map(|(_, only)| *only).filter(|only| *only != NONE);
        let stands = only.and_then(|only| Some((ThreadIdx(only), self.waits(only)?.stack)));
        stands.unwrap_or((ThreadIdx::NONE, StackId::NONE))
    }

    /// What a thread asks for, of what others than its own process do for it.
    fn asked(&self, i: u32) -> Option<Key> {
        if self.forest.at(i).anywhere == Class::None {
            return None;
        }
        let mut ahead = self.ahead(i).peekable();
        let server = (self.pid)(ahead.peek()?.0);
        if server == (self.pid)(i) {
            return None;
        }
        let mut last = None;
        for (parent, queue) in ahead {
            if (self.pid)(parent) != server {
                return None;
            }
            last = Some(queue);
        }
        let key = last?.edge?.key;
        let tells = matches!(key.terminal, Terminal::Timer | Terminal::Outside | Terminal::Running);
        (tells && key.lock == LockId::NONE).then(|| key.subject())
    }
}
