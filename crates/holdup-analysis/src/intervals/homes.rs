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
//! the vote. A short sleep is home to nobody who works in between.

use std::rc::Rc;

use holdup_trace::{StackId, StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;

use super::prepare::Dictionary;
use super::sites::{Origin, Seen, Sites, origin};
use super::wait::Wait;
use crate::classify::{WaitKind, is_kernel_module};

/// What a place is to those that wait there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Place {
    /// Where its cycle begins, as far as is known.
    #[default]
    Home,
    /// A short sleep of a thread that works in between: perhaps it waits for something.
    Unsure,
    /// In the middle of its work.
    Middle,
}

/// Work below this many samples and waits tells nothing of where it lies.
const FEW: u32 = 8;
/// A place with less than this share of a thread's arrivals is not where its cycle begins.
const RARE: f64 = 0.05;
/// A thread that spends less than this share of its time outside its short sleeps has no work that they would hold up.
const HOUSEKEEPING: f64 = 0.05;
/// A sleep longer than this on average is no look at something now and then, in nanoseconds.
const LONGEST_NAP_NS: u64 = 200_000_000;

/// What every place is.
#[derive(Debug, Default)]
pub(super) struct Homes {
    /// By stack.
    places: Vec<Place>,
    /// Of waits without a stack: what most others of the program are that were in this system call and ended so, and one
    /// of their stacks.
    alike: FxHashMap<(StringId, i16, Origin), (Place, StackId)>,
}

impl Homes {
    pub(super) fn place(&self, stack: StackId) -> Place {
        self.places.get(stack.index()).copied().unwrap_or_default()
    }

    /// What the wait's place is, and a stack that tells for what it waits.
    pub(super) fn of(&self, wait: &Wait, dictionary: &Dictionary) -> (Place, StackId) {
        if wait.stack != StackId::NONE {
            return (self.place(wait.stack), wait.stack);
        }
        let trace = dictionary.trace;
        let program = trace.threads.process.get(wait.thread.index()).copied().unwrap_or_default();
        self.alike.get(&(program, wait.syscall, origin(wait, trace))).copied().unwrap_or_default()
    }

    /// Judges all places. O(places × their depth).
    pub(super) fn new(sites: Sites, dictionary: &Dictionary) -> Self {
        let mut threads: FxHashMap<ThreadIdx, Activity> = FxHashMap::default();
        let mut ends: FxHashMap<(StringId, i16, Origin), FxHashMap<StackId, u64>> = FxHashMap::default();
        let mut paths = Paths { dictionary, known: FxHashMap::default() };
        for ((thread, stack), seen) in sites.waits {
            let program = dictionary.trace.threads.process.get(thread.index()).copied().unwrap_or_default();
            for (origin, n) in seen.by_origin().into_iter().filter(|(_, n)| *n > 0) {
                let stacks = ends.entry((program, seen.syscall, origin)).or_default();
                *stacks.entry(stack).or_default() += u64::from(n);
            }
            threads.entry(thread).or_default().waits.push((paths.of(stack), stack, seen));
        }
        for ((thread, stack), n) in sites.samples {
            if let Some(activity) = threads.get_mut(&thread) {
                activity.samples.push((paths.of(stack), n));
            }
        }
        let mut votes: FxHashMap<u64, [u64; 3]> = FxHashMap::default();
        let mut stacks: Vec<(StackId, u64)> = Vec::new();
        for activity in threads.values() {
            for (path, stack, place, weight) in activity.judge() {
                votes.entry(path.hash).or_default()[place as usize] += u64::from(weight);
                stacks.push((stack, path.hash));
            }
        }
        let mut homes =
            Homes { places: vec![Place::Home; dictionary.trace.stacks.len() + 1], alike: FxHashMap::default() };
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

/// The user's part of a stack, by functions, the outermost first.
#[derive(Debug)]
struct Path {
    functions: Vec<u64>,
    hash: u64,
    /// Whether the functions around the wait have a lock's name.
    says_lock: bool,
}

struct Paths<'d, 'a> {
    dictionary: &'d Dictionary<'a>,
    known: FxHashMap<StackId, Rc<Path>>,
}

impl Paths<'_, '_> {
    fn of(&mut self, stack: StackId) -> Rc<Path> {
        if let Some(path) = self.known.get(&stack) {
            return path.clone();
        }
        let path = Rc::new(self.make(stack));
        self.known.insert(stack, path.clone());
        path
    }

    fn make(&self, stack: StackId) -> Path {
        let Dictionary { trace, classifier, .. } = self.dictionary;
        let mut functions = Vec::new();
        for frame in trace.stacks.frames(stack) {
            let mut named = false;
            for location in trace.names.locations(frame) {
                named = true;
                if is_kernel_module(trace.text(location.module)) {
                    continue;
                }
                let name = trace.text(location.function);
                let by_name = !name.is_empty() && !name.contains("+0x");
                functions.push(if by_name { u64::from(location.function.0) } else { u64::from(frame.0) | 1 << 32 });
            }
            if !named {
                functions.push(u64::from(frame.0) | 1 << 32);
            }
        }
        functions.reverse();
        let mut hasher = FxHasher::default();
        functions.iter().for_each(|function| hasher.write_u64(*function));
        Path {
            functions,
            hash: hasher.finish(),
            says_lock: classifier.facts(stack).lock_function != StringId::default(),
        }
    }
}

/// What one thread does.
#[derive(Default)]
struct Activity {
    waits: Vec<(Rc<Path>, StackId, Seen)>,
    samples: Vec<(Rc<Path>, u32)>,
}

impl Activity {
    /// What each place is to this thread, and how often it waits there.
    fn judge(&self) -> impl Iterator<Item = (Rc<Path>, StackId, Place, u32)> + '_ {
        let work = self.work();
        let home = self.home(&work);
        self.waits
            .iter()
            .map(move |(path, stack, seen)| (path.clone(), *stack, self.place(path, seen, &work, home), seen.waits))
    }

    /// Samples, and waits that are no home to anybody.
    fn work(&self) -> Trie {
        let mut work = Trie::default();
        self.samples.iter().for_each(|(path, n)| work.add(&path.functions, *n));
        let others = self.waits.iter().filter(|(_, _, seen)| !may_be_home(seen.kind));
        others.for_each(|(path, _, seen)| work.add(&path.functions, seen.waits));
        work
    }

    /// The place that shares least with the thread's work, of those where something arrives for it: how much that is, and
    /// how deep it lies.
    fn home(&self, work: &Trie) -> Option<Home> {
        let places = || self.waits.iter().filter(|(_, _, seen)| may_be_home(seen.kind) && seen.kind != WaitKind::Timer);
        let arrivals: u32 = places().map(|(_, _, seen)| seen.arrivals()).sum();
        let often = |seen: &Seen| seen.arrivals() > 0 && f64::from(seen.arrivals()) >= RARE * f64::from(arrivals);
        let homes = places().filter(|(_, _, seen)| often(seen)).map(|(path, _, seen)| Home {
            shared: work.shared(&path.functions),
            depth: path.functions.len(),
            is_input: seen.from_outside > 0,
        });
        homes.min_by_key(|home| (home.shared, !home.is_input, home.depth))
    }

    fn place(&self, path: &Path, seen: &Seen, work: &Trie, home: Option<Home>) -> Place {
        let Seen { kind, waits, ns, .. } = *seen;
        // A thread whose waits time out again and again watches over locks.
        let watches = seen.arrivals() == 0 && waits > 2;
        if !may_be_home(kind) || path.says_lock && kind != WaitKind::Timer && !watches {
            return Place::Middle;
        }
        let shared = work.shared(&path.functions);
        let deeper = match home {
            _ if work.total >= FEW => home.is_some_and(|h| shared > h.shared),
            // Without work to compare with: input arrives at a place nearer to where the thread begins, and none here.
            Some(h) => h.is_input && seen.from_outside == 0 && path.functions.len() > h.depth,
            None => false,
        };
        let nap = kind == WaitKind::Timer;
        if nap && ns > LONGEST_NAP_NS * u64::from(waits) {
            Place::Home
        } else if deeper || nap && path.says_lock {
            Place::Middle
        } else if nap && self.works_between(ns) {
            Place::Unsure
        } else {
            Place::Home
        }
    }

    /// Whether the thread does something besides sleeping for `ns`.
    fn works_between(&self, ns: u64) -> bool {
        let busy = self.waits.iter().filter(|(_, _, seen)| matches!(seen.kind, WaitKind::Disk | WaitKind::Lock));
        let busy: u64 = busy.map(|(_, _, seen)| seen.ns).sum();
        let ran: u64 = self.samples.iter().map(|(_, n)| u64::from(*n) * SAMPLE_NS).sum();
        (busy + ran) as f64 > HOUSEKEEPING * (busy + ran + ns) as f64
    }
}

/// A sample stands for about this much.
const SAMPLE_NS: u64 = 1_000_000;

/// Whether threads may wait so by design.
fn may_be_home(kind: WaitKind) -> bool {
    use WaitKind::{Condition, Futex, Input, Read, Signal, Timer, Unknown};
    matches!(kind, Condition | Futex | Input | Read | Signal | Timer | Unknown)
}

#[derive(Clone, Copy)]
struct Home {
    shared: usize,
    depth: usize,
    is_input: bool,
}

/// Paths by what they have in common.
#[derive(Default)]
struct Trie {
    total: u32,
    nodes: FxHashMap<(u32, u64), (u32, u32)>,
}

impl Trie {
    fn add(&mut self, path: &[u64], n: u32) {
        if path.is_empty() {
            return;
        }
        self.total += n;
        let mut at = 0;
        for function in path {
            let next = self.nodes.len() as u32 + 1;
            let node = self.nodes.entry((at, *function)).or_insert((next, 0));
            node.1 += n;
            at = node.0;
        }
    }

    /// How many frames at least half of the paths share with `path`, but for those that go through all of it.
    fn shared(&self, path: &[u64]) -> usize {
        let mut counts = Vec::new();
        let mut at = 0;
        for function in path {
            let Some(&(node, n)) = self.nodes.get(&(at, *function)) else { break };
            counts.push(n);
            at = node;
        }
        let own = if counts.len() == path.len() { counts.last().copied().unwrap_or(0) } else { 0 };
        let others = self.total - own;
        counts.iter().take_while(|&&n| others > 0 && 2 * (n - own) >= others).count()
    }
}
