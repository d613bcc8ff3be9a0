//! Whoever sleeps while others wait: what is said of it, and what to do.

use holdup_trace::tables::LocationRow;
use holdup_trace::{ThreadIdx, is_made_at_run_time};
use rustc_hash::FxHashSet;

use super::at_once::{self, Limit};
use super::context::Context;
use super::crew::Crew;
use super::doing::Doing;
use super::outsiders::{self, Outsiders};
use super::tally::{Group, Tally};
use super::{holder, lock, place, several};
use crate::classify::WaitKind;
use crate::report::Finding;
use crate::runtime;

/// So many of them are named.
const NAMED: usize = 2;

/// What another one of the program does while these try to get a lock that it may have, if that is what they sleep for. O(waits) if it is.
pub(super) fn holder(context: &Context, group: &Group, tally: &Tally) -> Option<Doing> {
    let tries = matches!(group, Group::Timer(..)) && wanted(context, tally).is_some();
    (tries && lock::kept_at(context, group, tally).is_none()).then(|| holder::likely(context, tally)).flatten()
}

/// What they did, where `limit` and `holder` say how many did it at a time, and what another one did meanwhile, and `lasted` how long.
pub(super) fn title(
    context: &Context,
    (group, tally): (&Group, &Tally),
    crew: &Crew,
    (limit, holder): (Option<Limit>, Option<Doing>),
    lasted: &str,
) -> String {
    let who = crew.words(context);
    let it = if crew.is_many() { "them" } else { "it" };
    let at_once = at_once::words(context, limit);
    let (own, alone) = if tally.by_thread.len() == 1 { ("its", "it") } else { ("their", "they") };
    let at_home = at_once::is_at_home(context, tally);
    let slept = if at_home { format!("waited for a timer of {own} own") } else { did(context, tally) };
    if let Some(lock) = wanted(context, tally) {
        if lock::kept_at(context, group, tally).is_some() {
            return format!(
                "{who} slept for {lasted} in tries to get {lock}, while others waited for one of {own} own"
            );
        }
        let meanwhile =
            holder.map(|doing| doing.past(context)).map(|did| format!(", while another one {did}")).unwrap_or_default();
        format!("{who} slept for {lasted} in tries to get {lock}{meanwhile}")
    } else if lock::is_kept_meanwhile(context, group, tally) {
        format!("{who} {slept} for {lasted} while {} for {it}", lock::was_kept(context, tally))
    } else if at_home {
        format!("{who} {slept} for {lasted} before {alone} answered{}", at_once.trim_end_matches(','))
    } else {
        format!("{who} {slept} for {lasted}{at_once} while others waited for {it}")
    }
}

/// What who sleeps in the middle of something did.
fn did(context: &Context, tally: &Tally) -> String {
    let did = match () {
        () if awaits_results(context, tally) => "waited in vain for results",
        () if awaits_input(context, tally) => "waited in vain for input",
        () if is_unsignalled(context, tally) => "waited in vain for a signal",
        () => "slept",
    };
    match several::functions(context, tally) {
        several if several.is_empty() => did.to_owned(),
        several => format!("{did} in {} functions ({}, …)", several.len(), several[..NAMED].join(", ")),
    }
}

/// Whether they wait for input that does not come until time is over. Many sleep in the same calls of the kernel.
fn awaits_input(context: &Context, tally: &Tally) -> bool {
    let site = tally.main_site(context.classifier);
    let reads = |name: &str| ["recv", "readline", "read_request", "read_header"].iter().any(|part| name.contains(part));
    let kind = context.classifier.facts(site).kind;
    matches!(kind, Some(WaitKind::Input | WaitKind::Read)) && place::has(context, site, reads)
}

/// Whether they wait for what they have given to others, until time is over.
fn awaits_results(context: &Context, tally: &Tally) -> bool {
    let trace = context.trace;
    let mut locations = trace.stacks.frames(tally.main_site(context.classifier)).flat_map(|f| trace.names.locations(f));
    locations.any(|l| runtime::awaits_result(trace.text(l.module), trace.text(l.function)))
}

/// What they try to get who sleep in between, as the object of a sentence; `None` where it is no lock.
fn wanted(context: &Context, tally: &Tally) -> Option<&'static str> {
    let is_lock = lock::tried(context, tally).is_some() || lock::is_at_lock(context, tally);
    is_lock.then(|| lock::at_site(context, tally).map_or("a lock", |known| known.name))
}

/// Whether they sleep for nobody else, and not where their work begins.
pub(super) fn is_in_its_work(context: &Context, tally: &Tally) -> bool {
    is_for_itself(tally) && !at_once::is_at_home(context, tally) && wanted(context, tally).is_none()
}

/// The whole sentence about those.
pub(super) fn in_its_work(context: &Context, crew: &Crew, tally: &Tally, limit: Option<Limit>, lasted: &str) -> String {
    let own = if tally.by_thread.len() == 1 { "its" } else { "their" };
    let (who, at_once) = (crew.words(context), at_once::words(context, limit));
    let slept = did(context, tally);
    // A limit that says who asks tells more.
    let named = limit.is_some_and(|limit| limit.asker().is_some());
    match outsiders(context, tally).filter(|_| !named) {
        Some(waited) => {
            let it = if crew.is_many() { "them" } else { "it" };
            format!("{who} {slept} for {lasted}{at_once} while {} waited for {it}", waited.words(context))
        }
        None => format!("{who} {slept} for {lasted}{at_once} in the middle of {own} work"),
    }
}

/// Who waits outside of the focus for those that sleep in the middle of their work.
pub(super) fn outsiders(context: &Context, tally: &Tally) -> Option<Outsiders> {
    if is_in_its_work(context, tally) { outsiders::of(context, tally) } else { None }
}

/// What to do, where `function` is what sleeps.
pub(super) fn advice(
    context: &Context,
    (group, tally): (&Group, &Tally),
    limit: Option<Limit>,
    f: &Finding,
    function: &str,
) -> String {
    let (process, asker) = (&f.culprit.process, &f.waiters.function);
    if tries_lock(context, tally) {
        if lock::kept_at(context, group, tally).is_some() {
            return lock::DEADLOCK.to_owned();
        }
        if let Some(known) = lock::at_site(context, tally) {
            return known.advice(function);
        }
        return format!(
            "See who has that lock meanwhile, and for how long: another cause may tell. Wait for it without sleeping in {function}."
        );
    }
    if lock::is_kept_meanwhile(context, group, tally) {
        format!("Let the lock go before waiting for {process}, or see why that sleeps in {function}.")
    } else if at_once::is_at_home(context, tally) {
        let timers = "setTimeout, asyncio.sleep, time.Sleep, a retry, a limit of its rate";
        match limit {
            Some(limit) => {
                at_once::advice(context, limit, function, &format!("see what sets that timer in {process} ({timers})"))
            }
            None => format!("See what sets that timer in {process} ({timers}), and answer without it."),
        }
    } else if awaits_results(context, tally) {
        format!(
            "{function} waits for what it has given to others, and it is its time-out that ends that: see who is to do it. Tasks that wait for \
             tasks of the same pool leave no thread to do these: give them a pool of their own, or do them in place."
        )
    } else if awaits_input(context, tally) {
        format!(
            "{process} waits in {function} for a client that sends nothing, until time is over: where connections are kept open, make that time shorter \
             (KeepAliveTimeout, keepalive_timeout), have more workers, or let one loop wait for all that are idle (mpm_event, asyncio)."
        )
    } else if !several::functions(context, tally).is_empty() {
        "Each of these sleeps for itself, one after another: let them wait for the event instead of for a time, or do them side by side.".to_owned()
    } else if let Some(limit) = limit {
        at_once::advice(context, limit, function, &format!("see why {process} sleeps in {function}"))
    } else if is_unsignalled(context, tally) {
        format!(
            "{function} waits to be signalled (a condition variable, or the like), and it is its time-out that ends that: see whether whoever \
             changes what it waits for signals at all, and the right one (pthread_cond_signal and notify_one wake any one of those that wait: \
             pthread_cond_broadcast, notify_all, or a condition for each thing that is waited for), or why it comes so late."
        )
    } else if let Some(at) = let_in(context, tally) {
        format!(
            "Those that sleep let in those that wait in {}: have more of what is shared there (a larger pool, more permits), keep it for \
             shorter, or see why {process} sleeps in {function}.",
            context.trace.text(at.function)
        )
    } else if let Some(server) = waits_for_client(context, tally) {
        format!(
            "{server} waits for {process} as for a client that does something else meanwhile: let it serve others then (a thread or a task for each \
             connection), or close connections on which nothing comes. Or see why {process} sleeps in {function}."
        )
    } else if tally.ends().keys().all(|thread| context.focus.is_kernel(*thread)) && !asker.is_empty() {
        format!(
            "The kernel takes that long over what {asker} asks for: ask for it less often, or keep what it gave (files, watches, mappings) and use it \
             again."
        )
    } else if let Some(waiting) = outsiders(context, tally) {
        waiting.advice(tally, process, function)
    } else if is_for_others(context, tally) {
        // Whoever serves is not asked to keep a pace.
        let pace = if serves(context, tally) { "" } else { " (perhaps it keeps to a limit of its rate)" };
        let or = match awaits_end(context, tally) {
            true => format!("before it ends{pace}, or go on without waiting for that"),
            false => format!("before it answers{pace}, or ask it less often"),
        };
        format!("See why {process} sleeps in {function} {or}.")
    } else {
        format!(
            "Wait for the event instead of sleeping in {function} (a condition variable, a futex, an eventfd), unless it is meant to \
             keep to a limit of its rate."
        )
    }
}

/// Whether it is a signal that does not come before time is over: at a condition variable of compiled code. Runtimes of languages sleep at one.
fn is_unsignalled(context: &Context, tally: &Tally) -> bool {
    let (trace, site) = (context.trace, tally.main_site(context.classifier));
    let waits = |name: &str| name.contains("cond") && name.contains("wait");
    let is_compiled = |l: LocationRow| {
        let module = trace.text(l.module);
        !is_made_at_run_time(module) && !runtime::is_interpreted(module, trace.text(l.function))
    };
    context.classifier.scheduler_at(site).is_none()
        && place::application(context, site).is_some_and(is_compiled)
        && place::has(context, site, |name| waits(&name.to_ascii_lowercase()))
        // A loop of events of all kinds has timers among them.
        && !place::has(context, site, |name| name.contains("WaitForEvent"))
}

/// Where those wait that sleep at other times, if they mostly are such, and wait for their turn: for something of which there is too little.
fn let_in(context: &Context, tally: &Tally) -> Option<LocationRow> {
    let sleepers = tally.ends();
    let peers = tally.threads.iter().filter(|thread| sleepers.contains_key(thread)).count();
    let is_turn = |stack| {
        let facts = context.classifier.facts(stack);
        !facts.sleeps && facts.kind.is_some_and(WaitKind::is_for_turn)
    };
    let are_peers = sleepers.len() > 1 && 2 * peers > tally.threads.len() && tally.share_at(is_turn) > 0.5;
    are_peers.then(|| place::place(context, tally.common_stack_of(context.classifier, is_turn))).flatten()
}

/// Whether it is said to sleep for a lock, of which nobody tells who has it.
pub(super) fn tries_lock(context: &Context, tally: &Tally) -> bool {
    lock::is_at_lock(context, tally) && lock::tried(context, tally).is_none()
}

/// Whether nobody waits but those that sleep.
pub(super) fn is_for_itself(tally: &Tally) -> bool {
    tally.threads.iter().all(|thread| tally.by_thread.contains_key(thread))
}

/// Whether those that wait mostly do so for the end of a thread or process.
fn awaits_end(context: &Context, tally: &Tally) -> bool {
    tally.share_at(|stack| context.classifier.facts(stack).kind == Some(WaitKind::Join)) > 0.5
}

/// The server that waits for them, if none of them is one, nobody else waits, and it has not started them itself.
fn waits_for_client<'a>(context: &'a Context, tally: &Tally) -> Option<&'a str> {
    let is_server = |thread: &ThreadIdx| context.is_server(*thread);
    let mut waiters = tally.threads.iter().filter(|thread| !tally.ends().contains_key(thread)).peekable();
    let first = waiters.peek().map(|thread| context.program(**thread))?;
    let is_client = |thread: &ThreadIdx| !is_server(thread) && !context.is_begun_by(*thread, first);
    (waiters.all(is_server) && tally.ends().keys().all(is_client)).then(|| context.trace.text(first))
}

/// Whether all that sleep are servers.
fn serves(context: &Context, tally: &Tally) -> bool {
    tally.ends().keys().all(|thread| context.is_server(*thread))
}

/// Whether it is a server that sleeps, or somebody of another process than most of those that wait for it.
fn is_for_others(context: &Context, tally: &Tally) -> bool {
    if serves(context, tally) {
        return true;
    }
    let crew = Crew::of(context, tally);
    let sleep: FxHashSet<u32> = crew.threads.iter().map(|thread| context.pid(*thread)).collect();
    let is_own = |thread: &&ThreadIdx| sleep.contains(&context.pid(**thread));
    let waiters = tally.threads.iter().filter(|thread| !crew.threads.contains(thread));
    let (own, others): (Vec<&ThreadIdx>, Vec<&ThreadIdx>) = waiters.partition(is_own);
    others.len() > own.len()
}
