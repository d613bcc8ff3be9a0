//! Is a thread at home where it waits, or in the middle of its work?
//!
//! A thread is at home where its cycle begins and its input arrives: there it may wait by design. Anywhere else it has
//! begun something that it cannot go on with, and is held up. Both may look alike in the kernel (a server polls its
//! client's socket, and polls a latch for a row's lock); what tells them apart is the whole user stack:
//!
//! ```text
//!   main ─ loop ┬ read_command ─ poll                    home: what it works at begins in the frame that waits here
//!               └ execute ┬ update ─ lock_row ─ poll     in the middle: most of its work shares these frames
//!                         └ update ─ find_row            work
//! ```
//!
//! So the frames that a place has in common with the thread's work are counted, for each place where it waits. At home
//! they are few; a place that shares more is in the middle of the work. What several threads say of one place is put to
//! the vote. Short sleeps, one after the other, of a thread that has work besides are no home either.

mod path;

use std::rc::Rc;

use holdup_trace::{SpaceId, StackId, StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use self::path::{Path, Paths};
use super::origin::{Origin, origin};
use super::place::{LONGEST_NAP_NS, Place};
use super::prepare::Dictionary;
use super::sites::Seen;
use super::trie::Trie;
use super::wait::Wait;
use crate::classify::WaitKind;

/// Work below this many samples and waits tells nothing of where it lies.
const FEW: u32 = 8;
/// So many samples tell that it is no chance.
const SOME: u32 = 2;
/// A place with less than this share of a thread's arrivals is not where its cycle begins.
const RARE: f64 = 0.05;
/// One of so many of the work's paths has to share a frame for it to be the work's.
const HALF: u32 = 2;
/// The same for what belongs to a request: much of a thread's work may be to get requests and to answer.
const TENTH: u32 = 10;
/// Where in a stack the function lies in which a thread begins: behind `clone` and `start_thread`, or `_start` and `__libc_start_main`.
const ENTRY: usize = 2;
/// A thread with less work than this beside its short sleeps, in samples and waits for each of them, keeps house; so does one that works
/// less than this share of what the busiest thread of its process does.
const HOUSEKEEPING: f64 = 0.2;

/// What every place is.
#[derive(Debug, Default)]
pub(super) struct Homes {
    /// By stack.
    places: Vec<Place>,
    /// Sleeps of servers that are taken to be within requests, though nobody was seen to ask: he never had to wake it.
    presumed: FxHashSet<StackId>,
    /// Sleeps of threads to which other processes send something about as often: they may be what is done with that.
    fed: FxHashSet<StackId>,
    /// Of waits without a stack: what most others of the program are that were in this system call and ended so, and one
    /// of their stacks.
    alike: FxHashMap<(StringId, i16, Origin), (Place, StackId)>,
}

impl Homes {
    pub(super) fn place(&self, stack: StackId) -> Place {
        self.places.get(stack.index()).copied().unwrap_or_default()
    }

    /// Whether a sleep is only taken to be in the middle of what somebody asked for.
    pub(super) fn is_presumed(&self, stack: StackId) -> bool {
        self.presumed.contains(&stack)
    }

    /// Whether other processes send a thread something about as often as it sleeps there.
    pub(super) fn is_fed(&self, stack: StackId) -> bool {
        self.fed.contains(&stack)
    }

    /// What the wait's place is, and a stack that tells for what it waits.
    pub(super) fn of(&self, wait: &Wait, dictionary: &Dictionary) -> (Place, StackId) {
        if wait.stack != StackId::NONE {
            return (self.place(wait.stack), wait.stack);
        }
        let trace = dictionary.trace;
        let program = trace.threads.process.get(wait.thread.index()).copied().unwrap_or_default();
        self.alike.get(&(program, wait.syscall, origin(wait, dictionary))).copied().unwrap_or_default()
    }

    /// Judges all places; `answers` is how often threads of servers ended a wait of another program. O(places × their depth).
    pub(super) fn new(
        waits: FxHashMap<(ThreadIdx, StackId), Seen>,
        samples: FxHashMap<(ThreadIdx, StackId), u32>,
        answers: &FxHashMap<ThreadIdx, u32>,
        dictionary: &Dictionary,
    ) -> Self {
        let mut threads: FxHashMap<Life, Activity> = FxHashMap::default();
        let mut ends: FxHashMap<(StringId, i16, Origin), FxHashMap<StackId, u64>> = FxHashMap::default();
        let mut paths = Paths::new(dictionary);
        let mut last: FxHashMap<ThreadIdx, SpaceId> = FxHashMap::default();
        for (thread, stack) in waits.keys().chain(samples.keys()) {
            let known = last.entry(*thread).or_insert(SpaceId::KERNEL);
            *known = (*known).max(paths.of(*stack).space);
        }
        // What is in the kernel alone tells of no program.
        let life = |thread: ThreadIdx, path: &Path| match path.space {
            SpaceId::KERNEL => (thread, last[&thread]),
            space => (thread, space),
        };
        for ((thread, stack), seen) in waits {
            let program = dictionary.trace.threads.process.get(thread.index()).copied().unwrap_or_default();
            for (origin, n) in seen.by_origin().into_iter().filter(|(_, n)| *n > 0) {
                let stacks = ends.entry((program, seen.syscall, origin)).or_default();
                *stacks.entry(stack).or_default() += u64::from(n);
            }
            let path = paths.of(stack);
            let activity = threads.entry(life(thread, &path)).or_default();
            activity.answers = answers.get(&thread).copied().unwrap_or(0);
            activity.waits.push((path, stack, seen));
        }
        let pid = |thread: ThreadIdx| dictionary.trace.threads.pid.get(thread.index()).copied().unwrap_or_default();
        let (mut ran, mut busiest): (FxHashMap<Life, u32>, FxHashMap<u32, u32>) = Default::default();
        for ((thread, stack), n) in samples {
            let busiest = busiest.entry(pid(thread)).or_default();
            let path = paths.of(stack);
            let life = life(thread, &path);
            let own = ran.entry(life).or_default();
            *own += n;
            *busiest = (*busiest).max(*own);
            if let Some(activity) = threads.get_mut(&life) {
                activity.samples.push((path, n));
            }
        }
        for ((thread, _), activity) in &mut threads {
            activity.busiest = busiest.get(&pid(*thread)).copied().unwrap_or(0);
            activity.presume();
        }
        let program = |thread: ThreadIdx| dictionary.trace.threads.process.get(thread.index()).copied();
        let crew = |thread, activity: &Activity| (program(thread), activity.begins_in());
        let mut crews: FxHashMap<_, Trie> = FxHashMap::default();
        for ((thread, _), activity) in &threads {
            activity.add_work(crews.entry(crew(*thread, activity)).or_default());
        }
        let mut votes: FxHashMap<u64, [u64; 3]> = FxHashMap::default();
        let mut stacks: Vec<(StackId, u64)> = Vec::new();
        let (mut presumed, mut fed) = (FxHashSet::default(), FxHashSet::default());
        for ((thread, _), activity) in &threads {
            presumed.extend(activity.waits.iter().filter(|(_, _, seen)| seen.presumed).map(|(_, stack, _)| *stack));
            fed.extend(activity.fed_sleeps());
            for (path, stack, place, weight) in activity.judge(&crews[&crew(*thread, activity)]) {
                votes.entry(path.hash).or_default()[place as usize] += u64::from(weight);
                stacks.push((stack, path.hash));
            }
        }
        let places = vec![Place::Home; dictionary.trace.stacks.len() + 1];
        let mut homes = Homes { places, presumed, fed, alike: FxHashMap::default() };
        for (stack, hash) in stacks {
            if let Some(place) = homes.places.get_mut(stack.index()) {
                *place = winner(votes[&hash]);
            }
        }
        homes.alike = ends.into_iter().map(|(end, stacks)| (end, homes.most(stacks))).collect();
        homes
    }

    /// What most of these are, and the most frequent stack of those.
    fn most(&self, stacks: FxHashMap<StackId, u64>) -> (Place, StackId) {
        let mut votes = [0; 3];
        stacks.iter().for_each(|(stack, n)| votes[self.place(*stack) as usize] += n);
        let place = winner(votes);
        let alike = stacks.into_iter().filter(|(stack, _)| self.place(*stack) == place);
        let most = alike.max_by_key(|(stack, n)| (*n, std::cmp::Reverse(*stack)));
        (place, most.map_or(StackId::NONE, |(stack, _)| stack))
    }
}

fn winner(votes: [u64; 3]) -> Place {
    let [home, unsure, middle] = votes;
    if middle > home.max(unsure) {
        Place::Middle
    } else if unsure > home {
        Place::Unsure
    } else {
        Place::Home
    }
}

/// A thread while it runs one program: whoever starts another has a home of his own there.
type Life = (ThreadIdx, SpaceId);

/// What one thread does.
#[derive(Default)]
struct Activity {
    waits: Vec<(Rc<Path>, StackId, Seen)>,
    samples: Vec<(Rc<Path>, u32)>,
    /// Samples of the busiest thread of its process.
    busiest: u32,
    /// How often it ended a wait of another program, if it is a server's.
    answers: u32,
}

impl Activity {
    /// What each place is to this thread, and how often it waits there. `crew` is the work of those that begin as it does: of a pool's
    /// threads each may have done next to nothing.
    fn judge(&self, crew: &Trie) -> Vec<(Rc<Path>, StackId, Place, u32)> {
        let mut work = Trie::default();
        self.add_work(&mut work);
        let whose = if work.total < FEW { crew } else { &work };
        let home = self.home(whose);
        let judged = |(path, stack, seen): &(Rc<Path>, StackId, Seen)| {
            (path.clone(), *stack, self.place(path, seen, &work, whose, home), seen.waits)
        };
        self.waits.iter().map(judged).collect()
    }

    /// The function in which its program lets it begin, by the first of its stacks.
    fn begins_in(&self) -> Option<u64> {
        self.waits.first().and_then(|(path, _, _)| path.functions.get(ENTRY).copied())
    }

    /// Samples, and waits that are no home to anybody.
    fn add_work(&self, work: &mut Trie) {
        self.samples.iter().for_each(|(path, n)| work.add(&path.functions, *n));
        let others = self.waits.iter().filter(|(_, _, seen)| !may_be_home(seen.kind));
        others.for_each(|(path, _, seen)| work.add(&path.functions, seen.waits));
    }

    /// The place that shares least with the thread's work, of those where something arrives for it: how much that is, and
    /// how deep it lies.
    fn home(&self, work: &Trie) -> Option<Home> {
        let places = || self.waits.iter().filter(|(_, _, seen)| may_be_home(seen.kind) && seen.kind != WaitKind::Timer);
        let arrivals: u32 = places().map(|(_, _, seen)| seen.arrivals()).sum();
        let often = |seen: &Seen| seen.arrivals() > 0 && f64::from(seen.arrivals()) >= RARE * f64::from(arrivals);
        let homes = places().filter(|(_, _, seen)| often(seen)).map(|(path, _, seen)| Home {
            shared: work.shared(&path.functions, HALF),
            ever: work.shared(&path.functions, TENTH),
            depth: path.functions.len(),
            is_input: seen.from_outside > 0,
        });
        homes.min_by_key(|home| (home.shared, !home.is_input, home.depth))
    }

    /// `work` is its own, `whose` that by which its home was found.
    fn place(&self, path: &Path, seen: &Seen, work: &Trie, whose: &Trie, home: Option<Home>) -> Place {
        let Seen { kind, waits, ns, again, .. } = *seen;
        // A thread whose waits time out again and again watches over locks.
        let watches = seen.arrivals() == 0 && waits > 2;
        if !may_be_home(kind) || path.keeps_thread || path.asks {
            return Place::Middle;
        } else if path.parked || path.in_loop {
            return Place::Home;
        }
        if kind == WaitKind::Timer {
            let is_long = ns > LONGEST_NAP_NS * u64::from(waits);
            let looks = 2 * again >= waits && works_beside(path, waits, work);
            let serves = self.serves(path, waits, work, home);
            let works = |of: u32| f64::from(work.total) >= HOUSEKEEPING * f64::from(of);
            let unseen = path.blind && work.total > 0 && works(waits) && works(self.busiest);
            return match () {
                () if seen.asked || seen.presumed => Place::Middle,
                () if is_long => Place::Home,
                () if path.says_lock => Place::Middle,
                () if looks || serves || unseen => Place::Unsure,
                () => Place::Home,
            };
        }
        if path.says_lock && !watches {
            return Place::Middle;
        }
        let shared = whose.shared(&path.functions, HALF);
        let deeper = match home {
            _ if whose.total >= FEW => home.is_some_and(|h| shared > h.shared),
            // Without work to compare with: input arrives at a place nearer to where the thread begins, and none here.
            Some(h) => h.is_input && seen.from_outside == 0 && path.functions.len() > h.depth,
            None => false,
        };
        if deeper { Place::Middle } else { Place::Home }
    }

    /// If it takes input that it never has to wait for, those of its sleeps after which somebody else has his answer are within requests.
    fn presume(&mut self) {
        let waits_for_input =
            self.waits.iter().any(|(_, _, seen)| seen.kind != WaitKind::Timer && seen.from_outside > 0);
        let receives = self.samples.iter().filter(|(path, _)| path.receives).map(|(_, n)| n).sum::<u32>();
        if waits_for_input || receives < SOME {
            return;
        }
        for (_, _, seen) in self.waits.iter_mut().filter(|(_, _, seen)| seen.kind == WaitKind::Timer) {
            seen.presumed = !seen.asked && 2 * self.answers >= seen.waits;
        }
    }

    /// Its sleeps of which there are not many more than what other processes send it.
    fn fed_sleeps(&self) -> impl Iterator<Item = StackId> + '_ {
        let (sleeps, others): (Vec<_>, Vec<_>) =
            self.waits.iter().partition(|(_, _, seen)| seen.kind == WaitKind::Timer);
        let sent: u32 = others.iter().map(|(_, _, seen)| seen.brought.iter().sum::<u32>()).sum();
        let fed = sleeps.into_iter().filter(move |(_, _, seen)| 2 * sent >= seen.waits).map(|(_, stack, _)| *stack);
        // What has no stack is many places.
        fed.filter(|stack| *stack != StackId::NONE)
    }

    /// Whether a sleep belongs to what the thread does for somebody.
    fn serves(&self, path: &Path, sleeps: u32, work: &Trie, home: Option<Home>) -> bool {
        match home {
            // Input arrives elsewhere, and the sleep lies deeper in what the thread does with it.
            Some(home) if home.is_input => work.total >= FEW && work.shared(&path.functions, TENTH) > home.ever,
            // There was always input, so that it never had to be awaited; after its sleeps somebody else has his answer.
            _ => 2 * self.answers >= sleeps && beside(path, work) >= FEW,
        }
    }
}

/// Whether the thread has work that does not belong to its sleeping at `path`.
fn works_beside(path: &Path, sleeps: u32, work: &Trie) -> bool {
    let beside = beside(path, work);
    beside >= FEW && f64::from(beside) >= HOUSEKEEPING * f64::from(sleeps)
}

/// How much of the work does not lie in the function that waits at `path`.
fn beside(path: &Path, work: &Trie) -> u32 {
    work.total - work.through(&path.functions[..path.application])
}

/// Whether threads may wait so by design.
fn may_be_home(kind: WaitKind) -> bool {
    use WaitKind::{Condition, Futex, Input, Read, Signal, Timer, Unknown};
    matches!(kind, Condition | Futex | Input | Read | Signal | Timer | Unknown)
}

#[derive(Clone, Copy)]
struct Home {
    shared: usize,
    /// How much of it a tenth of the work shares.
    ever: usize,
    depth: usize,
    is_input: bool,
}

#[cfg(test)]
mod tests;
