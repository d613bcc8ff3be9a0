//! Who takes turns: two threads of which one always waits for the other, as a client and its server do.
//!
//! ```text
//!   client  ▪▪│. . . . . . . .│▪▪      own work, from running again to asking
//!   server  . .┆▪▪▪▪▪▪▪▪│. . . . .      the way there, and the other's work, from running to answering
//!                       ┆    ↑          the way back
//! ```
//!
//! A round trip is these four times. From the other's side it is the same one. Spreading the work of either over threads, or
//! handing it over sooner, gains nothing while each waits for the other.

mod held_back;

use holdup_trace::{StackId, ThreadIdx};
use rustc_hash::FxHashMap;

use crate::blame::Study;
use crate::classify::WaitKind;
use crate::intervals::{Chunk, State, Step, Wait};

pub(crate) use held_back::{Delays, HeldBack};

/// Pairs are kept up to so many.
const ROOM: usize = 1 << 16;

/// Round trips of one thread through another, all together; times in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trips {
    pub(crate) count: u64,
    /// The one's work.
    pub(crate) own: u64,
    /// From the wake-up of the other until it runs.
    pub(crate) there: u64,
    /// The other's work.
    pub(crate) other: u64,
    /// From the wake-up of the one until it runs.
    pub(crate) back: u64,
    /// How long both were at work at once.
    pub(crate) both: u64,
    /// How often the one's waits were ended by the other: some round trips have no wait, because the answer is there when
    /// the one gets a CPU again.
    pub(crate) waits: u64,
    /// How long those waits took, and the sum of their squares in µs².
    waited: u64,
    squares: u64,
    /// When the first began, and the last ended.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Where the one waits, in its longest one.
    pub(crate) stack: StackId,
    /// Its longest wait.
    pub(crate) longest: u64,
}

impl Trips {
    /// All round trips together.
    pub(crate) const fn length(&self) -> u64 {
        self.own + self.there + self.other + self.back
    }

    /// Whether a few unusually long waits for the other are most of it: an average says nothing, and those few are something else.
    fn is_mostly_outliers(&self) -> bool {
        let (waits, waited, longest) = (self.waits as f64, self.waited as f64 / 1e3, self.longest as f64 / 1e3);
        let squares = self.squares as f64;
        self.waited > self.length() / 2
            && squares * waits > OUTLIERS * waited * waited
            && squares >= OF_OUTLIERS * waited * longest
    }

    /// Adds others.
    pub(crate) fn absorb(&mut self, other: &Trips) {
        if other.count > 0 {
            self.from = if self.count == 0 { other.from } else { self.from.min(other.from) };
        }
        self.count += other.count;
        self.waits += other.waits;
        self.waited = self.waited.saturating_add(other.waited);
        self.squares = self.squares.saturating_add(other.squares);
        self.own += other.own;
        self.there += other.there;
        self.other += other.other;
        self.back += other.back;
        self.both += other.both;
        self.to = self.to.max(other.to);
        if other.longest > self.longest {
            (self.longest, self.stack) = (other.longest, other.stack);
        }
    }
}

/// All that is known of threads that take turns.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// By the one and the other.
    trips: FxHashMap<(ThreadIdx, ThreadIdx), Trips>,
    /// How often each thread waited, whatever for.
    waited: FxHashMap<ThreadIdx, u64>,
    held_back: HeldBack,
}

/// The last wait of a thread.
#[derive(Debug, Clone, Copy)]
struct Last {
    woken: u64,
    resumed: u64,
    waker: ThreadIdx,
}

/// When each thread was last kept from running: whom the one that it has woken takes the CPU from is not at work with it.
struct Kept<'a> {
    steps: &'a [Step],
    /// When each thread's state began.
    since: Vec<u64>,
    /// From when to when it could run and did not.
    ready: Vec<(u64, u64)>,
}

impl<'a> Kept<'a> {
    fn of(chunk: &'a Chunk) -> Self {
        let threads = chunk.last.len();
        Kept { steps: chunk.steps(), since: vec![chunk.from; threads], ready: vec![(0, 0); threads] }
    }

    /// Up to `t`. O(steps) for all calls together.
    fn follow(&mut self, t: u64) {
        while let Some((step, rest)) = self.steps.split_first().filter(|(step, _)| step.t <= t) {
            let i = step.thread.index();
            let since = std::mem::replace(&mut self.since[i], step.t);
            if matches!(step.before(), State::Runnable(_) | State::Yields(_)) {
                self.ready[i] = (since, step.t);
            }
            self.steps = rest;
        }
    }

    /// For how long of that time, in nanoseconds.
    fn within(&self, thread: ThreadIdx, from: u64, to: u64) -> u64 {
        let (since, until) = self.ready[thread.index()];
        until.min(to).saturating_sub(since.max(from))
    }
}

impl Seen {
    /// From one part. O(steps + waits).
    pub(crate) fn of(chunk: &Chunk, study: &Study) -> Self {
        let pid = |thread: ThreadIdx| study.trace.threads.pid.get(thread.index()).copied().unwrap_or_default();
        let mut seen = Seen { held_back: HeldBack::of(chunk, pid), ..Seen::default() };
        let threads = chunk.last.len();
        let (mut last, mut waited): (Vec<Option<Last>>, Vec<u64>) = (vec![None; threads], vec![0; threads]);
        let mut kept = Kept::of(chunk);
        for wait in chunk.waits() {
            kept.follow(wait.start);
            let inside = wait.start >= study.window.from && wait.woken <= study.window.to;
            if wait.goes_on != 0 || wait.exempt || wait.open || study.focus.is_kernel(wait.thread) || !inside {
                continue;
            }
            waited[wait.thread.index()] += 1;
            if is_for_reply(wait) {
                let trips = seen.trips.entry((wait.thread, wait.waker)).or_default();
                trips.waits += 1;
                trips.waited = trips.waited.saturating_add(wait.length());
                trips.squares = trips.squares.saturating_add((wait.length() / 1000).saturating_pow(2));
                if let Some(own) = &last[wait.thread.index()]
                    && let Some(Some(other)) = last.get(wait.waker.index())
                    && let Some(trip) = trip(own, other, wait)
                {
                    let kept = kept.within(wait.thread, other.resumed, wait.start);
                    trips.absorb(&Trips { both: trip.both.saturating_sub(kept), ..trip });
                }
            }
            last[wait.thread.index()] = Some(Last { woken: wait.woken, resumed: wait.resumed, waker: wait.waker });
        }
        let waited = (0..).map(ThreadIdx).zip(waited);
        seen.waited = waited.filter(|(_, count)| *count > 0).collect();
        seen
    }

    /// Adds what an earlier part tells.
    pub(crate) fn absorb(&mut self, earlier: Seen) {
        earlier.trips.iter().for_each(|(pair, trips)| self.trips.entry(*pair).or_default().absorb(trips));
        earlier.waited.into_iter().for_each(|(thread, count)| *self.waited.entry(thread).or_default() += count);
        self.held_back.absorb(&earlier.held_back);
        if self.trips.len() > ROOM {
            self.trips.retain(|_, trips| trips.waits > 1);
        }
    }

    /// Messages that the network held back.
    pub(crate) fn held_back(&self) -> &HeldBack {
        &self.held_back
    }

    /// The pairs that take turns, each once, in the order of their threads.
    pub(crate) fn pairs(&self) -> Vec<Pair> {
        let pair = |(&(one, other), trips): (&(ThreadIdx, ThreadIdx), &Trips)| {
            let back = self.trips.get(&(other, one)).filter(|_| one < other)?;
            Some(Pair { threads: [one, other], trips: *trips, back: *back })
        };
        let mut pairs: Vec<Pair> = self.trips.iter().filter_map(pair).filter(|p| self.take_turns(p)).collect();
        pairs.sort_unstable_by_key(|pair| pair.threads);
        pairs
    }

    fn take_turns(&self, pair: &Pair) -> bool {
        let mostly = |thread, trips: &Trips| {
            let waits = self.waited.get(&thread).copied().unwrap_or_default();
            trips.waits as f64 >= MOSTLY * waits as f64
        };
        let Pair { threads: [one, other], trips, back } = pair;
        let apart = (trips.both as f64) <= TOGETHER * trips.length() as f64;
        let regular = trips.count >= FEWEST && trips.count as f64 >= SEEN * pair.count() as f64;
        regular && apart && mostly(*one, trips) && mostly(*other, back)
    }
}

/// Two threads that take turns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) threads: [ThreadIdx; 2],
    /// As the one and as the other see them.
    pub(crate) trips: Trips,
    pub(crate) back: Trips,
}

impl Pair {
    /// How many round trips there were: each has a wait on one side at least.
    pub(crate) fn count(&self) -> u64 {
        self.trips.waits.max(self.back.waits)
    }

    /// Whether a few unusually long waits of either for the other are most of what it waits.
    pub(crate) fn is_uneven(&self) -> bool {
        self.trips.is_mostly_outliers() || self.back.is_mostly_outliers()
    }

    /// How long all of them took together in nanoseconds, by those that are known from end to end.
    pub(crate) fn length(&self) -> u64 {
        let scale = self.count() as f64 / self.trips.count.max(1) as f64;
        let span = self.trips.to.saturating_sub(self.trips.from);
        ((self.trips.length() as f64 * scale) as u64).min(span.max(self.trips.length()))
    }

    /// The same with the other as the one.
    pub(crate) const fn turned(&self) -> Pair {
        let Pair { threads: [one, other], trips, back } = *self;
        Pair { threads: [other, one], trips: trips.turned(back.stack), back: back.turned(trips.stack) }
    }
}

impl Trips {
    /// The same round trips as the other side sees them, which waits at `stack`.
    const fn turned(&self, stack: StackId) -> Trips {
        Trips { own: self.other, there: self.back, other: self.own, back: self.there, stack, ..*self }
    }
}

/// Fewer round trips are no habit.
const FEWEST: u64 = 20;
/// Of each thread's waits so many are for the other.
const MOSTLY: f64 = 0.8;
/// So many of the round trips are seen from end to end: neither answered before the other slept.
const SEEN: f64 = 0.1;
/// The mean square of what waits take is so many times the square of their mean where a few are nearly all of it; 2 where they are
/// exponentially distributed.
const OUTLIERS: f64 = 30.0;
/// Were all outliers as long as the longest wait, they were this share of the time; half of it is more where some are shorter.
const OF_OUTLIERS: f64 = 0.3;
/// Threads that are at work at once for more of the time than this do not take turns.
const TOGETHER: f64 = 0.2;

/// Whether it is for what another thread does, and no lock. That there is room again, in a full pipe, is no answer.
fn is_for_reply(wait: &Wait) -> bool {
    use WaitKind::{Condition, Futex, Input, Read, Signal, Unknown};
    let kind = matches!(wait.kind, Condition | Futex | Input | Read | Signal | Unknown);
    kind && wait.waker.is_real() && wait.waker != wait.thread
}

/// The round trip that ends with `wait`, if it is one: since `own`, its thread's wait before, it has woken the other, and that
/// has nobody else to thank for running now.
fn trip(own: &Last, other: &Last, wait: &Wait) -> Option<Trips> {
    let in_order = own.resumed <= other.woken && other.woken <= other.resumed && other.resumed <= wait.woken;
    if other.waker != wait.thread || !in_order {
        return None;
    }
    let trips = Trips {
        count: 1,
        waits: 0,
        waited: 0,
        squares: 0,
        own: other.woken - own.resumed,
        there: other.resumed - other.woken,
        other: wait.woken - other.resumed,
        back: wait.resumed.saturating_sub(wait.woken),
        both: wait.start.min(wait.woken).saturating_sub(other.resumed),
        from: own.resumed,
        to: wait.resumed,
        stack: wait.stack,
        longest: wait.length(),
    };
    Some(trips)
}
