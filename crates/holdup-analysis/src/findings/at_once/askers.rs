//! The threads of another program that ask those who sleep, or work: how many at a time, where, and whether they are all there are.

use holdup_trace::tables::LocationRow;
use holdup_trace::{StackId, StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::steady::steady;
use super::{Askers, LONG, Limit, STEADY, ToldBy, matters};
use crate::blame::{Asker, Asks};
use crate::classify::WaitKind;
use crate::findings::context::Context;
use crate::findings::place;
use crate::findings::tally::Tally;

/// Who is woken by one program so many of the times waits for no other.
const ALONE: f64 = 0.9;
/// So many wake-ups tell that it is no chance.
const MANY: f64 = 20.0;
/// The same ones ask for more than this share of the times.
const NEARLY: f64 = 0.95;
/// Calls of the kernel that wait for few files, mostly for one: a loop that serves many has others.
const FOR_ONE: [&str; 4] = ["do_sys_poll", "do_select", "sock_recvmsg", "sock_read_iter"];

/// How many threads of another program ask at a time while others wait for them. O(askers + places).
pub(super) fn askers(context: &Context, tally: &Tally) -> Option<Limit> {
    let mut of: FxHashMap<u32, Vec<&Asker>> = FxHashMap::default();
    for asker in tally.subjects().filter_map(|key| context.blame.askers.get(key)).flatten() {
        of.entry(asker.instant).or_default().push(asker);
    }
    let servers: FxHashSet<StringId> = tally.ends().keys().map(|thread| context.program(*thread)).collect();
    // Where clients and servers are of one program, nobody knows for which of them it waits.
    let is_like_server = |thread: &ThreadIdx| servers.contains(&context.program(*thread));
    let mut clients = tally.threads.iter().filter(|thread| !tally.ends().contains_key(thread));
    let are_told_apart = !clients.any(is_like_server);
    let mut places = FxHashMap::default();
    let mut asks = |asker: &Asker| {
        // One function may wait for clients and servers alike, called on different ways.
        let of = [Place::of(context, asker.stack), Place::Stack(asker.stack)];
        let mut is_for = |place: Place| *places.entry(place).or_insert_with(|| place.is_for(context, &servers));
        match asker.asks {
            _ if is_next_in_pipe(context, asker, tally) => false,
            Asks::One => true,
            // Who never waits for work of its own asks where its work would begin.
            Asks::Several if !are_told_apart || !waits_for_one(context, asker.stack) => false,
            Asks::Several | Asks::Unknown => of.into_iter().any(&mut is_for),
        }
    };
    let (mut levels, mut programs): (Vec<f64>, FxHashMap<StringId, f64>) = Default::default();
    let (mut waited_for, mut within, mut behind) = (0.0, Vec::new(), Vec::new());
    let mut times: FxHashMap<ThreadIdx, f64> = FxHashMap::default();
    for asking in of.values().filter(|asking| asking.iter().all(|asker| asks(asker))) {
        let threads: FxHashSet<ThreadIdx> = asking.iter().map(|asker| asker.thread).collect();
        levels.resize(levels.len().max(threads.len() + 1), 0.0);
        levels[threads.len()] += 1.0;
        threads.iter().for_each(|thread| *times.entry(*thread).or_default() += 1.0);
        *programs.entry(context.program(asking[0].thread)).or_default() += 1.0;
        waited_for += if asking.iter().any(|asker| matters(context, asker)) { 1.0 } else { 0.0 };
        within.extend(asking.iter().map(|asker| asker.stack));
        behind.extend(asking.iter().map(|asker| asker.behind).filter(|stack| *stack != StackId::NONE));
    }
    let instants = of.len() as f64;
    let (at_once, known) = (steady(&levels)?, levels.iter().sum::<f64>());
    let (by, most) = programs.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
    let is_steady = [known, most, waited_for].iter().all(|n| *n >= STEADY * instants);
    let lasts = instants >= LONG * context.blame.instants as f64;
    if !is_steady || !lasts {
        return None;
    }
    let function = |stacks: &[StackId], at: fn(&Context, StackId) -> Option<LocationRow>| {
        mostly_in(stacks.iter().filter_map(|stack| at(context, *stack)), stacks.len())
    };
    let behind = if 2 * behind.len() > of.len() { function(&behind, stands) } else { None };
    let (within, are_all) = (function(&within, place::own), are_no_more(times, at_once));
    let site = context.classifier.facts(tally.main_site(context.classifier));
    let one_answers = at_once > 1 && tally.ends().len() == 1 && site.kind == Some(WaitKind::Timer);
    let told_by = ToldBy::Askers(Askers { program: by, within, behind, are_all, one_answers });
    Some(Limit { at_once, told_by, asked_by: None })
}

/// Where a thread stands that waits for its turn; in the program's own code, where others take the lock for it.
fn stands(context: &Context, stack: StackId) -> Option<LocationRow> {
    let takes_it = context.classifier.facts(stack).kind.is_some_and(WaitKind::is_for_turn);
    if takes_it { place::waiting(context, stack) } else { place::own(context, stack) }
}

/// Whether it is no loop that serves many, as far as the kernel tells.
fn waits_for_one(context: &Context, stack: StackId) -> bool {
    place::has(context, stack, |name| FOR_ONE.contains(&name))
}

/// Whether so many threads nearly always are those that ask, which each did so many times.
fn are_no_more(times: FxHashMap<ThreadIdx, f64>, at_once: usize) -> bool {
    let mut times: Vec<f64> = times.into_values().collect();
    times.sort_by(|a, b| b.total_cmp(a));
    times.iter().take(at_once).sum::<f64>() > NEARLY * times.iter().sum::<f64>()
}

/// Whether it reads from a pipe what one sends that has been started beside it, by a shell: who reads so asks nothing.
fn is_next_in_pipe(context: &Context, asker: &Asker, tally: &Tally) -> bool {
    let reads = |name: &str| matches!(name, "anon_pipe_read" | "pipe_read");
    let starter = context.starter(asker.thread);
    starter.is_some()
        && place::has(context, asker.stack, reads)
        && tally.ends().keys().all(|sender| context.starter(*sender) == starter)
}

/// The function that most of so many places are in, as it is found first. O(places).
pub(super) fn mostly_in(places: impl Iterator<Item = LocationRow>, of: usize) -> Option<LocationRow> {
    let mut counts: FxHashMap<StringId, (usize, LocationRow)> = FxHashMap::default();
    places.for_each(|l| counts.entry(l.function).or_insert((0, l)).0 += 1);
    counts.into_values().find(|(n, _)| 2 * n > of).map(|(_, location)| location)
}

/// A function of the program in which it waits; where its code has no names, a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Function(StringId),
    Stack(StackId),
}

impl Place {
    fn of(context: &Context, stack: StackId) -> Self {
        match context.classifier.facts(stack).application {
            function if function == StringId::default() => Place::Stack(stack),
            function => Place::Function(function),
        }
    }

    /// Whether who waits here does so for one of these alone, unlike an event loop, which its clients wake as well. O(places).
    fn is_for(self, context: &Context, servers: &FxHashSet<StringId>) -> bool {
        let is_here = |stack: StackId| match self {
            Place::Stack(place) => place == stack,
            Place::Function(_) => Place::of(context, stack) == self,
        };
        let (mut for_them, mut seen) = (0.0, 0.0);
        for ((_, program), n) in context.timeline.brought().iter().filter(|((stack, _), _)| is_here(*stack)) {
            seen += f64::from(*n);
            for_them += if servers.contains(program) { f64::from(*n) } else { 0.0 };
        }
        // On one of many ways others may not have come yet.
        let least = if matches!(self, Place::Stack(_)) { MANY } else { 0.0 };
        for_them > ALONE * seen && seen > least
    }
}
