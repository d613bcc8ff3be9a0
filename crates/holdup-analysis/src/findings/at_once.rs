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

mod askers;
mod steady;
mod words;

use askers::askers;
use steady::steady;
pub(super) use words::{advice, words};

use super::asked::Asked;
use super::context::Context;
use super::lock;
use super::spans::levels;
use super::tally::{Group, Tally};
use super::{place, room, several};
use crate::blame::{Asker, Asks, Key, Span, Terminal};
use crate::intervals;
use crate::known::Known;

/// It is that number on average but for so much, for less than the rest of the time more, and hardly any did it while nobody waited for them,
const STEADY: f64 = 0.8;
/// and for this share of what is looked at.
const LONG: f64 = 0.25;
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
            ToldBy::Askers(Askers { program, .. }) | ToldBy::Connections(program, _) => Some(program),
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
    /// The connections by which a program asks for it, and its thread that waits for each answer, if that is always the same one.
    Connections(StringId, Option<ThreadIdx>),
}

/// Those that ask.
#[derive(Debug, Clone, Copy)]
struct Askers {
    program: StringId,
    /// Where in it they mostly do so, if that is known.
    within: Option<LocationRow>,
    /// Where others of it mostly wait meanwhile for their turn.
    behind: Option<LocationRow>,
    /// Whether it is always the same threads, as many as ask at once: then that is how many there are.
    are_all: bool,
    /// Whether one thread answers all of these, and sleeps for each.
    one_answers: bool,
}

/// How many at a time, if it is always so many and there are others: as those who sleep tell, or else those who ask them.
pub(super) fn limit(context: &Context, group: &Group, tally: &Tally) -> Option<Limit> {
    // Who has no room to write into asks nobody.
    let asks = matches!(group, Group::Timer(..))
        || matches!(group, Group::Outside(..)) && room::wanted(context, tally).is_none();
    // One that sleeps here and there sets its own pace.
    if !asks || !several::functions(context, tally).is_empty() {
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

/// The event loops of a program that ask while others wait for them.
struct Loops<'a> {
    program: StringId,
    /// What each of them asked.
    asked: FxHashMap<u32, Vec<&'a Asked>>,
    /// Which of them ask, by instant: processes that follow one another are as good as one.
    at: FxHashMap<u32, FxHashSet<u32>>,
    /// How often what is asked woke them: by answers, and their parts.
    answers: u64,
    /// The threads that wait for them, and where in the program's own code.
    waiters: Vec<(ThreadIdx, LocationRow)>,
    /// How many instants there are.
    instants: usize,
}

impl<'a> Loops<'a> {
    /// Those that ask for what is charged, if they are of one program. O(askers).
    fn of(context: &'a Context, tally: &Tally) -> Option<Self> {
        let askers = || tally.subjects().filter_map(|key| context.blame.askers.get(key)).flatten();
        // By program: when, and which processes.
        let mut loops: FxHashMap<StringId, FxHashMap<u32, FxHashSet<u32>>> = FxHashMap::default();
        let (mut stacks, mut waiters): (FxHashSet<StackId>, Vec<(ThreadIdx, LocationRow)>) = Default::default();
        let own = |(thread, stack): (ThreadIdx, StackId)| {
            Some((thread, place::own_frames(context, stack).next()?.1)).filter(|_| thread != ThreadIdx::NONE)
        };
        let all: FxHashSet<u32> = askers().map(|asker| asker.instant).collect();
        for asker in askers().filter(|asker| asker.asks == Asks::Several && matters(context, asker)) {
            let at = loops.entry(context.program(asker.thread)).or_default();
            at.entry(asker.instant).or_default().insert(context.pid(asker.thread));
            stacks.insert(asker.stack);
            waiters.extend(own(asker.by));
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
        (is_steady && lasts).then_some(Loops { program, asked, at, answers, waiters, instants: all.len() })
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
        let opens_or_closes = |stack| opens_or_closes(context, stack);
        let of = |(pid, asked): (&u32, &Vec<&Asked>)| {
            let counts: Option<Vec<usize>> = asked.iter().map(|asked| asked.connections(opens_or_closes)).collect();
            Some((*pid, counts?.into_iter().sum::<usize>()))
        };
        let connections: FxHashMap<u32, usize> = self.asked.iter().map(of).collect::<Option<_>>()?;
        let at_once = self.at.values().map(|pids| pids.iter().map(|pid| connections[pid]).sum()).max()?;
        let (waiter, place) = self.waiter().unzip();
        let asked_by = self.asks_in(context).or(place.map(|place| (self.program, place)));
        let told_by = ToldBy::Connections(self.program, waiter.filter(|_| at_once == 1));
        (1..=FEW).contains(&at_once).then_some(Limit { at_once, told_by, asked_by })
    }

    /// The thread that waits for the answers at nearly all instants, and where, if that is one alone.
    fn waiter(&self) -> Option<(ThreadIdx, LocationRow)> {
        let mut times: FxHashMap<ThreadIdx, usize> = FxHashMap::default();
        self.waiters.iter().for_each(|(thread, _)| *times.entry(*thread).or_default() += 1);
        let always = |n: usize| n as f64 >= STEADY * self.instants as f64;
        let (thread, _) = times.into_iter().find(|(_, n)| always(*n))?;
        let place = askers::mostly_in(self.waiters.iter().map(|(_, at)| *at), self.instants)?;
        Some((thread, place))
    }

    /// In which function of its own it mostly asks.
    fn asks_in(&self, context: &Context) -> Option<(StringId, LocationRow)> {
        let mut at: FxHashMap<StringId, (u32, LocationRow)> = FxHashMap::default();
        let (mut all, own) = (0, |stack| place::own_frames(context, stack).next());
        let asks = |stack| !opens_or_closes(context, stack);
        let places = self.asked.values().flatten().flat_map(|asked| asked.places());
        for (stack, n) in places.filter(|(stack, _)| asks(*stack)) {
            all += n;
            if let Some((_, location)) = own(stack) {
                at.entry(location.function).or_insert((0, location)).0 += n;
            }
        }
        at.into_values().find(|(n, _)| 2 * n > all).map(|(_, location)| (self.program, location))
    }
}

/// Whether a server was woken here as a connection was opened or closed.
fn opens_or_closes(context: &Context, stack: StackId) -> bool {
    place::has(context, stack, |name| OPENS_OR_CLOSES.contains(&name))
}

/// Whether others wait for who asks, or it is what is looked at: who makes load for all others is no limit to them.
fn matters(context: &Context, asker: &Asker) -> bool {
    asker.is_waited_for || !context.focus.is_everything() && context.focus.contains(asker.thread)
}

/// Whether it is a timer of an event loop, which waits for input in the same place, or of what runs tasks.
pub(super) fn is_at_home(context: &Context, tally: &Tally) -> bool {
    let site = tally.main_site(context.classifier);
    let is_home = context.timeline.place(site) == intervals::Place::Home && !context.timeline.is_aside(site);
    // Where a task waits, something of the program is on the stack.
    let is_of_runtime = || context.classifier.unseen_at(site).is_some() && place::application(context, site).is_none();
    is_home && (place::is_at_input(context, site) || context.classifier.scheduler_at(site).is_some()) || is_of_runtime()
}
