//! Who waited, at a lock or for a thread.

use holdup_trace::{COMPILED, LockId, Nanos, StackId, StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::context::Context;
use super::lock_names;
use super::spans::levels;
use super::stories::median;
use super::tally::{Group, Tally};
use super::{names, place};
use crate::blame::{Key, Span};
use crate::classify::WaitKind;
use crate::intervals::Place;
use crate::known::{self, Known, Runs};
use crate::report::{Activity, LockFacts, Waiters};

/// From this share of the waiting on, those in the middle of their work are those to name.
const PART: f64 = 0.1;
/// What a sum of times may be too great by, relative, before it is taken for that of more waits.
const SLACK: f64 = 0.02;

pub(super) const DEADLOCK: &str = "See whether whoever has that lock waits for this one (a deadlock, which a time-out ends): take locks in the \
                        same order everywhere, or let this one go first.";

/// A convoy: many hand-offs that take most of the waiting; or, of three and more threads, each longer than what is done under the lock,
/// and no thread that holds it for most of the time.
pub(super) fn is_convoy(context: &Context, lock: LockId, tally: &Tally) -> bool {
    let Some(story) = context.learned.locks.get(&lock) else { return false };
    let (hold, handoff) = (median(&story.holds), median(&story.handoffs));
    let spread = story.threads.len() >= 3 && hold.0 < 5 * handoff.0.max(1) && tally.largest_share() < 0.5;
    story.waits >= 50 && (story.threads.len() >= 2 && tally.is_handed_over() || spread)
}

/// The lock that people know by a name, if most of the waiting was for such a one.
pub(super) fn known(context: &Context, tally: &Tally) -> Option<&'static Known> {
    let mut sums: FxHashMap<&'static str, (u64, &'static Known)> = FxHashMap::default();
    for (&stack, &ns) in &tally.wait_stacks {
        // In the kernel the same function waits for a pipe's lock and for room in it.
        let is_lock = || context.classifier.facts(stack).kind == Some(WaitKind::Lock);
        let known = lock_names::at(context.trace, context.classifier, stack);
        if let Some(known) = known.filter(|known| known.place != known::Place::Kernel || is_lock()) {
            sums.entry(known.name).or_insert((0, known)).0 += ns;
        }
    }
    let all: u64 = tally.wait_stacks.values().sum();
    sums.into_values()
        .max_by_key(|(ns, known)| (*ns, known.name))
        .filter(|(ns, _)| 2 * ns > all)
        .map(|(_, known)| known)
        .or_else(|| by_waiter(context, tally))
}

/// What most of those that wait have asked for, if people know that by a name.
pub(super) fn asked(context: &Context, tally: &Tally) -> Option<&'static Known> {
    known(context, tally).filter(|known| known.place == known::Place::Answer)
}

/// What to do about a lock that people know by a name in `function`. One that a library of the language takes is not the program's to keep shorter.
pub(super) fn advice(context: &Context, tally: &Tally, known: &Known, function: &str) -> String {
    match taker(context, tally).filter(|_| known.place == known::Place::Runtime && known.runs == Runs::Any) {
        Some(taker) => format!(
            "That lock is taken in {}: call it less often at the same time in {function}, let each thread have one of its own, or take one that \
             several may use at once.",
            context.trace.text(taker)
        ),
        None => known.advice(function),
    }
}

/// The function of a library, of code that is compiled while it runs, that takes the lock, if it is none of the program's.
fn taker(context: &Context, tally: &Tally) -> Option<StringId> {
    let trace = context.trace;
    let locations = trace.stacks.frames(tally.common_stack(context.classifier)).flat_map(|f| trace.names.locations(f));
    // What has no dot is a stub of the compiler's.
    let mut compiled = locations.filter(|l| trace.text(l.module) == COMPILED && trace.text(l.function).contains('.'));
    compiled.next().filter(|l| !context.classifier.is_application(l)).map(|l| l.function)
}

/// The same by whoever waits for the lock itself, where those count for little that wait for that one.
fn by_waiter(context: &Context, tally: &Tally) -> Option<&'static Known> {
    let mut locks = tally.locks.iter();
    let story = context.learned.locks.get(locks.next()?).filter(|_| locks.next().is_none())?;
    lock_names::at(context.trace, context.classifier, story.site).filter(|known| known.place == known::Place::Runtime)
}

/// The same, if those who sleep, or wait for the outside, at a chain's end do so for it, too: others may wait for a lock that one of them
/// has who waits for somebody's sleep.
pub(super) fn tried(context: &Context, tally: &Tally) -> Option<&'static Known> {
    known(context, tally).filter(|known| at_site(context, tally) == Some(known))
}

/// The lock for which whoever is at a chain's end waits there, if people know it by name.
pub(super) fn at_site(context: &Context, tally: &Tally) -> Option<&'static Known> {
    lock_names::at(context.trace, context.classifier, tally.main_site(context.classifier))
}

/// Whether the function that waits at the chain's end has a lock's name, or is known to wait for one.
pub(super) fn is_at_lock(context: &Context, tally: &Tally) -> bool {
    let named = context.classifier.facts(tally.main_site(context.classifier)).lock_function != StringId::default();
    named || at_site(context, tally).is_some_and(|known| known.place == known::Place::Runtime)
}

/// Whether whoever has a lock sleeps because it waits for one itself, until a time is over: two that wait for each other do.
pub(super) fn waits_for_another(context: &Context, group: &Group, tally: &Tally) -> bool {
    group.is_lock() && tally.activity() == Activity::Slept && is_at_lock(context, tally)
}

/// Whether those who wait for what somebody does mostly wait for locks, which others keep until it is done: shells of which each runs a
/// program under `flock`, requests of one session while one of them asks another server. Whoever waits for the end of a child does so in any
/// case.
pub(super) fn is_kept_meanwhile(context: &Context, group: &Group, tally: &Tally) -> bool {
    if !matches!(group, Group::Serial(_) | Group::Timer(..) | Group::Disk(..)) {
        return false;
    }
    let [locks, all] = for_locks(context, tally);
    // Those of whom nobody knows where they waited are none of them.
    2 * locks > all && 2.0 * locks as f64 > tally.rank.0
}

/// That a lock was kept meanwhile, and by which program where that is another than whoever sleeps, works, or waits for the disk: only its own
/// threads wait.
pub(super) fn was_kept(context: &Context, tally: &Tally) -> String {
    let of = |threads: &mut dyn Iterator<Item = ThreadIdx>| -> FxHashSet<StringId> {
        threads.map(|thread| context.program(thread)).collect()
    };
    let (wait, end) = (of(&mut tally.threads.iter().copied()), of(&mut tally.ends().keys().copied()));
    match wait.iter().next() {
        Some(keeper) if wait.len() == 1 && !end.contains(keeper) => {
            format!("{} kept a lock", context.trace.text(*keeper))
        }
        _ => "a lock was kept".to_owned(),
    }
}

/// From this share of the waiting on, a lock is worth a word.
const WORTH: f64 = 0.05;

/// Whether some of them wait for locks, which may be kept by one that waits itself.
pub(super) fn may_be_kept(context: &Context, tally: &Tally) -> bool {
    let [locks, all] = for_locks(context, tally);
    locks as f64 > WORTH * all as f64
}

/// For how long, in nanoseconds, threads waited for locks, and for anything but somebody's end.
fn for_locks(context: &Context, tally: &Tally) -> [u64; 2] {
    let is_join = |stack| context.classifier.facts(stack).kind == Some(WaitKind::Join);
    [tally.waited_at(|stack| is_for_lock(context, stack)), tally.waited_at(|stack| !is_join(stack))]
}

/// One that nothing is known of.
static ANY: Known = Known::of_runtime("a lock", "Let it go before {} waits.", &[]);

/// The lock that whoever waits in the function that a group is about has, if for most of the time others of the program wait for it.
/// O(cells), and O(n log n) in spans.
pub(super) fn kept_at(context: &Context, group: &Group, tally: &Tally) -> Option<&'static Known> {
    let (Group::Timer(program, function) | Group::Outside(program, function)) = *group else { return None };
    let time = |spans: Vec<&[Span]>| levels(&spans).iter().skip(1).sum::<f64>();
    let is_it = |key: &Key| {
        let waits = || context.classifier.facts(key.site).application == function;
        key.kind == WaitKind::Lock && context.program(key.thread) == program && waits()
    };
    let all = tally.subjects().filter_map(|key| context.blame.spans.get(key)).map(Vec::as_slice);
    let kept = context.blame.spans.iter().filter(|(key, _)| is_it(key)).map(|(_, spans)| spans.as_slice());
    if 2.0 * time(kept.collect()) <= time(all.collect()) {
        return None;
    }
    let mut names: FxHashMap<Option<&'static str>, (u64, Option<&'static Known>)> = FxHashMap::default();
    for (stack, ns) in context.blame.cells.iter().filter(|(key, _)| is_it(key)).flat_map(|(_, cell)| &cell.wait_stacks)
    {
        let known = lock_names::at(context.trace, context.classifier, *stack);
        names.entry(known.map(|known| known.name)).or_insert((0, known)).0 += ns;
    }
    let (_, known) = names.into_values().max_by_key(|(ns, known)| (*ns, known.map(|known| known.name)))?;
    Some(known.unwrap_or(&ANY))
}

/// Whether a lock is waited for there, by whatever means: a server may sleep at a latch for a row's lock.
fn is_for_lock(context: &Context, stack: StackId) -> bool {
    let facts = context.classifier.facts(stack);
    facts.kind == Some(WaitKind::Lock) || facts.lock_function != StringId::default()
}

/// A stack of the place at which waiters waited longest; for a lock that is known by a name, where they waited for that.
pub(super) fn main_wait(context: &Context, group: &Group, tally: &Tally) -> StackId {
    if is_kept_meanwhile(context, group, tally) {
        return tally.common_stack_of(context.classifier, |stack| is_for_lock(context, stack));
    }
    // Who sleeps is no better place than where those are that wait for him, if that is known.
    if matches!(group, Group::Timer(..)) {
        let awake = tally.common_stack_of(context.classifier, |stack| !tally.sites.contains_key(&stack));
        let tells = place::place(context, awake).is_some();
        return if tells { awake } else { tally.common_stack(context.classifier) };
    }
    let known = if group.is_lock() { known(context, tally) } else { None };
    let is_for = |stack| known.is_none() || lock_names::at(context.trace, context.classifier, stack) == known;
    // Those who keep house wait for whoever gives them something to do, and have waited longest: others have more to lose.
    let works = |stack| context.timeline.place(stack) != Place::Home;
    let of = |wanted: &dyn Fn(StackId) -> bool| -> u64 {
        tally.wait_stacks.iter().filter(|(stack, _)| wanted(**stack)).map(|(_, ns)| ns).sum()
    };
    let at_work = of(&|stack| is_for(stack) && works(stack));
    let at_work = at_work > 0 && at_work as f64 >= PART * of(&is_for) as f64;
    tally.common_stack_of(context.classifier, |stack| is_for(stack) && (!at_work || works(stack)))
}

/// Threads of a runtime may have so many words to sleep at, each for itself.
const WORDS: usize = 3;

/// Whether each thread waits at words of its own, so that what they wait for is behind these, and is no more locks than one. O(locks).
fn is_of_waiters(context: &Context, tally: &Tally) -> bool {
    let is_own = |lock| context.learned.locks.get(lock).is_some_and(|story| story.threads.len() == 1);
    (2..=WORDS * tally.threads.len()).contains(&tally.locks.len()) && tally.locks.iter().all(is_own)
}

/// All that is known of such a lock: where it is taken.
fn behind_waiters(context: &Context, group: &Group, tally: &Tally) -> Option<LockFacts> {
    let at = place::application(context, main_wait(context, group, tally))?;
    Some(LockFacts { name: context.trace.text(at.function).to_owned(), ..LockFacts::default() })
}

/// What is known of the lock of a group: its own name, if it has one, or what people call it.
pub(super) fn facts(context: &Context, group: &Group, tally: &Tally) -> Option<LockFacts> {
    let lock =
        if is_of_waiters(context, tally) { behind_waiters(context, group, tally) } else { context.lock(group.lock()?) };
    let Some(known) = known(context, tally) else { return lock };
    let facts = lock.unwrap_or_default();
    // One of which there is but a function has that as its name.
    let has_own = !facts.name.is_empty() && !facts.address.is_empty();
    Some(if has_own { facts } else { LockFacts { name: known.name.to_owned(), ..facts } })
}

/// The share of the waiting from which on those who keep house, or have no task, are left out beside those who were at work.
const MANY: f64 = 1.0 / 3.0;

/// Who waited, by the charges. `within` is how long anybody waited. Those who keep house, or have no task, count only where few others
/// wait.
pub(super) fn waiters(context: &Context, group: &Group, tally: &Tally, within: Nanos) -> Waiters {
    let all: u64 = tally.wait_stacks.values().sum();
    let at_work = Some(&tally.at_work).filter(|w| w.waits > 0 && w.total_ns as f64 >= MANY * all as f64);
    let threads = at_work.map_or(&tally.threads, |w| &w.threads);
    let longest = at_work.map_or(tally.longest, |w| Nanos(w.longest_ns));
    let waited = at_work.map_or(tally.waited, |w| tally.waited.min(Nanos(w.total_ns)));
    let counted = at_work.map_or(tally.waits, |w| w.waits);
    // Every one of them waited at least once, even where waits that began earlier are not counted.
    let count = if at_work.is_some() { threads.len() } else { tally.count() };
    let (kernel, mut named): (Vec<_>, Vec<_>) = threads.iter().copied().partition(|t| context.focus.is_kernel(*t));
    // The kernel's threads work for the others.
    named = if named.is_empty() { kernel } else { named };
    named.sort_unstable();
    let total = waited.amount();
    // Of a wait that was charged to many, only the last charges are counted: so long in that time, at least so many waited.
    let at_least = |each: Nanos| match each.0 {
        0 => 0,
        _ => (total.0 / each.amount().0 * (1.0 - SLACK)).ceil() as u64,
    };
    let (by_time, by_length) = (at_least(within), at_least(longest.min(within)));
    let count = count.max(by_time as usize);
    let waits = counted.max(if counted > 0 { by_time.max(by_length) } else { 0 });
    // A wait that was charged to several has no more to do with this one than lasted, and than was charged to it.
    let max_s = context.limits.once(longest.min(within).min(waited).amount());
    let mean_s = context.limits.once(total / waits.max(count as u64).max(1) as f64).min(max_s);
    let mut waiters = Waiters {
        threads: threads.len().max(by_time as usize),
        waits,
        total_s: context.limits.of_threads(total, count),
        mean_s,
        max_s,
        names: names::grouped(named.into_iter().map(|t| context.thread_name(t))),
        ..Waiters::default()
    };
    if let Some(at) = place::waiting(context, main_wait(context, group, tally)) {
        waiters.function = context.trace.text(at.function).to_owned();
        waiters.source = context.source(&at);
    }
    waiters
}
