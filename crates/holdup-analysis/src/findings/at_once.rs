//! How many slept, or waited for the outside, at a time. Where that is always the same number, though there are more that do it in their
//! turn, something lets no more in.
//!
//! A pool of connections, workers or permits that is too small makes requests wait for something that takes long, but would serve
//! more of them at once. The pool is not in the trace; that number is.
//!
//! Of a server that waits for timers of many tasks in one place only those tell it who ask: threads in the middle of their work, for which
//! others wait in turn. Of an event loop that asks nothing is known but by how many connections it does so, and where.

use holdup_trace::tables::LocationRow;
use holdup_trace::{StackId, StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

mod steady;
mod words;

use steady::steady;
pub(super) use words::{advice, words};

use super::asked::Asked;
use super::context::Context;
use super::lock;
use super::spans::levels;
use super::tally::{Group, Tally};
use super::{place, room};
use crate::blame::{Asker, Asks, Key, Span, Terminal};
use crate::intervals;
use crate::known::Known;

/// It is that number on average but for so much, for less than the rest of the time more, and hardly any did it while nobody waited for them,
const STEADY: f64 = 0.8;
/// and for this share of what is looked at.
const LONG: f64 = 0.25;
/// Who is woken by one program so many of the times waits for no other.
const ALONE: f64 = 0.9;
/// So many wake-ups tell that it is no chance.
const MANY: f64 = 20.0;
/// One, and the other end of its connection.
const PAIR: usize = 2;
/// Fewer times may be chance.
const FEWEST: u64 = 20;
/// So many times more that do it in their turn are no chance, either.
const MANY_MORE: usize = 4;
/// For so many answers at least one of what they ask must have been seen.
const SEEN: u64 = 3;
/// Calls of the kernel that open a connection, or close it.
const OPENS_OR_CLOSES: [&str; 4] = ["__sys_connect", "__sys_shutdown", "__fput", "__sock_release"];
/// By more connections than this nobody is kept from asking.
const FEW: usize = 16;

/// How many at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    at_once: usize,
    told_by: ToldBy,
    /// The program that asks, and where in it, if those that do it are not told apart by that.
    asked_by: Option<(StringId, LocationRow)>,
}

impl Limit {
    /// The program that asks, if that tells it.
    pub(super) fn asker(&self) -> Option<StringId> {
        match self.told_by {
            ToldBy::Askers(Askers { program, .. }) | ToldBy::Connections(program) => Some(program),
            ToldBy::All | ToldBy::Some | ToldBy::Lock(_) => None,
        }
    }

    /// Whether it is the number of a thread, which may do it for several at once.
    fn is_one_thread(&self) -> bool {
        matches!(self.told_by, ToldBy::All) && self.at_once == 1
    }
}

/// Who tells how many it is at a time.
#[derive(Debug, Clone, Copy)]
enum ToldBy {
    /// Those that do it: always the same ones.
    All,
    /// Some of those that do it in their turn.
    Some,
    /// Those that do it while others wait for a lock, which lets no more of them in.
    Lock(&'static Known),
    /// The threads of a program that ask for it.
    Askers(Askers),
    /// The connections by which a program asks for it.
    Connections(StringId),
}

/// Those that ask.
#[derive(Debug, Clone, Copy)]
struct Askers {
    program: StringId,
    /// Where in it they mostly do so, if that is known.
    within: Option<LocationRow>,
    /// Where others of it mostly wait meanwhile for their turn.
    behind: Option<LocationRow>,
}

/// How many at a time, if it is always so many and there are others: as those who sleep tell, or else those who ask them.
pub(super) fn limit(context: &Context, group: &Group, tally: &Tally) -> Option<Limit> {
    // Who has no room to write into asks nobody.
    let asks = matches!(group, Group::Timer(..))
        || matches!(group, Group::Outside(..)) && room::wanted(context, tally).is_none();
    if !asks {
        return None;
    }
    let sleepers = sleepers(context, group, tally);
    // Who lets no more through is nearer to the cause than that no more sleep, unless fewer sleep than are asked.
    let tells = |asked: &Limit| sleepers.is_none_or(|s| s.is_one_thread() || asked.at_once <= s.at_once);
    let limit = askers(context, tally).filter(tells).or(sleepers);
    let loops = Loops::of(context, tally);
    // A server with a thread for each connection has but one where it is asked over one.
    let over_one = || loops.as_ref()?.limit(context).filter(|limit| limit.at_once == 1);
    match limit {
        Some(Limit { told_by: ToldBy::Askers(_), .. }) => limit,
        Some(limit) => {
            let asked_by = || loops.as_ref()?.asks_in(context);
            let over_one = if limit.is_one_thread() { over_one() } else { None };
            over_one.or_else(|| Some(Limit { asked_by: asked_by(), ..limit }))
        }
        None => loops.and_then(|loops| loops.limit(context)),
    }
}

/// The program that asks one that works for one thing at a time, from outside of it: by threads, or by connections.
pub(super) fn asked_alone(context: &Context, group: &Group, tally: &Tally) -> Option<Limit> {
    let works = matches!(group, Group::Serial(_)) && !tally.starved;
    let often = |loops: &Loops| loops.times() >= FEWEST;
    let loops = || Loops::of(context, tally).filter(often)?.limit(context);
    let limit = || askers(context, tally).or_else(loops);
    // Who waits for what it has started asks for nothing else.
    let is_it = |asker: Option<StringId>, thread: ThreadIdx| {
        let starter = context.starter(thread).map(|starter| context.program(starter));
        asker.is_some_and(|asker| asker == context.program(thread) || starter == Some(asker))
    };
    let own = |limit: &Limit| tally.ends().keys().any(|thread| is_it(limit.asker(), *thread));
    if works { limit().filter(|limit| limit.at_once == 1 && !own(limit)) } else { None }
}

/// How many sleep at a time. O(n log n) in spans, and O(cells) where there are any.
///
/// A thread that waits for events and timers alike at home is as many tasks as it has, so that its number says nothing.
fn sleepers(context: &Context, group: &Group, tally: &Tally) -> Option<Limit> {
    let (Group::Timer(program, site) | Group::Outside(program, site)) = *group else { return None };
    if is_at_home(context, tally) {
        return None;
    }
    let mut of: FxHashMap<_, Vec<Span>> = FxHashMap::default();
    for key in tally.subjects() {
        of.entry(key.thread).or_default().extend(context.blame.spans.get(key).into_iter().flatten());
    }
    let times: usize = of.values().map(Vec::len).sum();
    let time = levels(&of.values().map(Vec::as_slice).collect::<Vec<_>>());
    let whole: f64 = time.iter().skip(1).sum();
    let at_once = steady(&time)?;
    // Where an event loop waits for several, only one of them is charged.
    let at_once =
        resting(context, site).map_or(Some(at_once), |(at_once, share)| (share >= STEADY).then_some(at_once))?;
    let (from, to) = context.blame.window;
    let is_long = whole >= LONG * (to - from) as f64;
    // Processes that each sleep once, one after another, are a script's.
    if at_once == 1 && of.len() > 1 && context.processes(of.keys().copied()) >= times {
        return None;
    }
    // Servers, and those to which others send what more than one and its other end wait for.
    let is_server = |thread: &ThreadIdx| context.is_server(*thread);
    let is_fed = || context.timeline.is_fed(tally.main_site(context.classifier)) && tally.threads.len() > PAIR;
    let serves = || of.keys().all(is_server) || is_fed();
    let are_all = of.len() == at_once && (at_once > 1 || serves());
    // One after the other goes on without a gap.
    let often = times as u64 >= FEWEST || (are_all || of.len() >= MANY_MORE * at_once) && tally.waits >= FEWEST;
    let seen = is_long && often && (are_all || of.len() >= 2 * at_once);
    // Their own waits, whether or not others waited for them.
    let all = || {
        let at_site = |key: &Key| context.classifier.facts(key.site).application == site;
        let same = |key: &Key| context.program(key.thread) == program && at_site(key);
        context.blame.thread_ns(|key| key.terminal == Terminal::IdleByDesign && same(key)) as f64
    };
    if !seen || STEADY * all() > at_once as f64 * whole {
        return None;
    }
    let by_number = if are_all { ToldBy::All } else { ToldBy::Some };
    let told_by = lock::kept_at(context, group, tally).map_or(by_number, ToldBy::Lock);
    Some(Limit { at_once, told_by, asked_by: None })
}

/// How many were in the function at most instants at which there were any, and at which share of these. O(resting).
fn resting(context: &Context, site: StringId) -> Option<(usize, f64)> {
    let mut at: FxHashMap<u32, usize> = FxHashMap::default();
    let here = |stack: StackId| site != StringId::default() && context.classifier.facts(stack).application == site;
    for ((_, instant), n) in context.blame.resting.iter().filter(|((stack, _), _)| here(*stack)) {
        *at.entry(*instant).or_default() += *n as usize;
    }
    let mut levels: FxHashMap<usize, usize> = FxHashMap::default();
    at.values().for_each(|n| *levels.entry(*n).or_default() += 1);
    let (at_once, instants) = levels.into_iter().max_by_key(|(n, instants)| (*instants, std::cmp::Reverse(*n)))?;
    Some((at_once, instants as f64 / at.len() as f64))
}

/// How many threads of another program ask at a time while others wait for them. O(askers + places).
fn askers(context: &Context, tally: &Tally) -> Option<Limit> {
    let mut of: FxHashMap<u32, Vec<&Asker>> = FxHashMap::default();
    for asker in tally.subjects().filter_map(|key| context.blame.askers.get(key)).flatten() {
        of.entry(asker.instant).or_default().push(asker);
    }
    let servers: FxHashSet<StringId> = tally.ends().keys().map(|thread| context.program(*thread)).collect();
    let mut places = FxHashMap::default();
    let mut asks = |asker: &Asker| {
        // One function may wait for clients and servers alike, called on different ways.
        let of = [Place::of(context, asker.stack), Place::Stack(asker.stack)];
        let mut is_for = |place: Place| *places.entry(place).or_insert_with(|| place.is_for(context, &servers));
        match asker.asks {
            _ if is_next_in_pipe(context, asker, tally) => false,
            Asks::One => true,
            Asks::Several => false,
            Asks::Unknown => of.into_iter().any(&mut is_for),
        }
    };
    let (mut levels, mut programs): (Vec<f64>, FxHashMap<StringId, f64>) = Default::default();
    let (mut waited_for, mut within, mut behind) = (0.0, Vec::new(), Vec::new());
    for asking in of.values().filter(|asking| asking.iter().all(|asker| asks(asker))) {
        let threads: FxHashSet<ThreadIdx> = asking.iter().map(|asker| asker.thread).collect();
        levels.resize(levels.len().max(threads.len() + 1), 0.0);
        levels[threads.len()] += 1.0;
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
    let behind = if 2 * behind.len() > of.len() { function(&behind, place::waiting) } else { None };
    let told_by = ToldBy::Askers(Askers { program: by, within: function(&within, place::own), behind });
    Some(Limit { at_once, told_by, asked_by: None })
}

/// Whether it reads from a pipe what one sends that has been started beside it, by a shell: who reads so asks nothing.
fn is_next_in_pipe(context: &Context, asker: &Asker, tally: &Tally) -> bool {
    let reads = |name: &str| matches!(name, "anon_pipe_read" | "pipe_read");
    let starter = context.starter(asker.thread);
    starter.is_some()
        && place::has(context, asker.stack, reads)
        && tally.ends().keys().all(|sender| context.starter(*sender) == starter)
}

/// The event loops of a program that ask while others wait for them.
struct Loops<'a> {
    program: StringId,
    /// What each of them asked.
    asked: FxHashMap<u32, Vec<&'a Asked>>,
    /// Which of them ask, by instant: processes that follow one another are as good as one.
    at: FxHashMap<u32, FxHashSet<u32>>,
    /// How often what is asked woke them: by answers, and their parts.
    answers: u64,
}

impl<'a> Loops<'a> {
    /// Those that ask for what is charged, if they are of one program. O(askers).
    fn of(context: &'a Context, tally: &Tally) -> Option<Self> {
        let askers = || tally.subjects().filter_map(|key| context.blame.askers.get(key)).flatten();
        // By program: when, and which processes.
        let mut loops: FxHashMap<StringId, FxHashMap<u32, FxHashSet<u32>>> = FxHashMap::default();
        let mut stacks: FxHashSet<StackId> = FxHashSet::default();
        let all: FxHashSet<u32> = askers().map(|asker| asker.instant).collect();
        for asker in askers().filter(|asker| asker.asks == Asks::Several && matters(context, asker)) {
            let at = loops.entry(context.program(asker.thread)).or_default();
            at.entry(asker.instant).or_default().insert(context.pid(asker.thread));
            stacks.insert(asker.stack);
        }
        let (program, at) = loops.into_iter().max_by_key(|(program, at)| (at.len(), *program))?;
        let is_steady = at.len() as f64 >= STEADY * all.len() as f64;
        let lasts = all.len() as f64 >= LONG * context.blame.instants as f64;
        let servers: FxHashSet<StringId> = tally.ends().keys().map(|thread| context.program(*thread)).collect();
        let asked = |pid: u32| servers.iter().filter_map(|of| context.learned.asked.of(pid, *of)).collect();
        let asked = at.values().flatten().map(|pid| (*pid, asked(*pid))).collect();
        let brought = context.timeline.brought().iter();
        let answers = brought.filter(|((stack, by), _)| stacks.contains(stack) && servers.contains(by));
        let answers = answers.map(|(_, n)| u64::from(*n)).sum();
        (is_steady && lasts).then_some(Loops { program, asked, at, answers })
    }

    /// How often they are seen to ask.
    fn times(&self) -> u64 {
        self.asked.values().flatten().map(|asked| asked.times()).sum()
    }

    /// Over how many connections they ask. Whoever is asked while he works is not woken by it: those that come meanwhile are not seen.
    fn limit(&self, context: &Context) -> Option<Limit> {
        if SEEN * self.times() < self.answers {
            return None;
        }
        let opens_or_closes = |stack| place::has(context, stack, |name| OPENS_OR_CLOSES.contains(&name));
        let of = |(pid, asked): (&u32, &Vec<&Asked>)| {
            let counts: Option<Vec<usize>> = asked.iter().map(|asked| asked.connections(opens_or_closes)).collect();
            Some((*pid, counts?.into_iter().sum::<usize>()))
        };
        let connections: FxHashMap<u32, usize> = self.asked.iter().map(of).collect::<Option<_>>()?;
        let at_once = self.at.values().map(|pids| pids.iter().map(|pid| connections[pid]).sum()).max()?;
        let asked_by = self.asks_in(context);
        (1..=FEW).contains(&at_once).then_some(Limit { at_once, told_by: ToldBy::Connections(self.program), asked_by })
    }

    /// In which function of its own it mostly asks.
    fn asks_in(&self, context: &Context) -> Option<(StringId, LocationRow)> {
        let mut at: FxHashMap<StringId, (u32, LocationRow)> = FxHashMap::default();
        let (mut all, own) = (0, |stack| place::own_frames(context, stack).next());
        for (stack, n) in self.asked.values().flatten().flat_map(|asked| asked.places()) {
            all += n;
            if let Some((_, location)) = own(stack) {
                at.entry(location.function).or_insert((0, location)).0 += n;
            }
        }
        at.into_values().find(|(n, _)| 2 * n > all).map(|(_, location)| (self.program, location))
    }
}

/// Whether others wait for who asks, or it is what is looked at: who makes load for all others is no limit to them.
fn matters(context: &Context, asker: &Asker) -> bool {
    asker.is_waited_for || !context.focus.is_everything() && context.focus.contains(asker.thread)
}

/// The function that most of so many places are in, as it is found first. O(places).
fn mostly_in(places: impl Iterator<Item = LocationRow>, of: usize) -> Option<LocationRow> {
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

/// Whether it is a timer of an event loop, which waits for input in the same place, or of what runs tasks.
pub(super) fn is_at_home(context: &Context, tally: &Tally) -> bool {
    let site = tally.main_site(context.classifier);
    let is_home = context.timeline.place(site) == intervals::Place::Home && !context.timeline.is_aside(site);
    // Where a task waits, something of the program is on the stack.
    let is_of_runtime = || context.classifier.unseen_at(site).is_some() && place::application(context, site).is_none();
    is_home && (place::is_at_input(context, site) || context.classifier.scheduler_at(site).is_some()) || is_of_runtime()
}
