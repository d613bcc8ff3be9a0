//! Whoever sleeps while others wait: what is said of it, and what to do.

use holdup_trace::StringId;
use rustc_hash::FxHashSet;

use super::at_once::{self, Limit};
use super::context::Context;
use super::crew::Crew;
use super::tally::{Group, Tally};
use super::{holder, lock};
use crate::report::Culprit;

/// The sentence, where `limit` says how many did it at a time, `lasted` how long, and `stood` who stood still meanwhile.
pub(super) fn title(
    context: &Context,
    (group, tally): (&Group, &Tally),
    crew: &Crew,
    limit: Option<Limit>,
    lasted: &str,
    stood: &str,
) -> String {
    let who = crew.words(context);
    let it = if crew.is_many() { "them" } else { "it" };
    let at_once = at_once::words(context, limit);
    let (own, alone) = if tally.by_thread.len() == 1 { ("its", "it") } else { ("their", "they") };
    let at_home = at_once::is_at_home(context, tally);
    let slept = if at_home { format!("waited for a timer of {own} own") } else { "slept".to_owned() };
    let known = lock::tried(context, tally);
    if known.is_some() || lock::is_at_lock(context, tally) {
        let named = known.or_else(|| lock::at_site(context, tally).filter(|_| lock::is_at_lock(context, tally)));
        let lock = named.map_or("a lock", |known| known.name);
        if lock::kept_at(context, group, tally).is_some() {
            return format!(
                "{who} slept for {lasted} in tries to get {lock}, while others waited for one of {own} own; {stood}"
            );
        }
        let meanwhile = holder::likely(context, tally).map(|doing| doing.past(context));
        let meanwhile = meanwhile.map(|did| format!(", while another one {did}")).unwrap_or_default();
        format!("{who} slept for {lasted} in tries to get {lock}{meanwhile}; {stood}")
    } else if !at_home && is_for_itself(tally) {
        format!("{who} slept for {lasted}{at_once} in the middle of {own} work")
    } else if lock::is_kept_meanwhile(context, group, tally) {
        format!("{who} {slept} for {lasted} while a lock was kept for {it}; {stood}")
    } else if at_home {
        format!("{who} {slept} for {lasted} before {alone} answered{}; {stood}", at_once.trim_end_matches(','))
    } else {
        format!("{who} slept for {lasted}{at_once} while others waited for {it}; {stood}")
    }
}

/// What to do, where `function` is what sleeps.
pub(super) fn advice(
    context: &Context,
    (group, tally): (&Group, &Tally),
    limit: Option<Limit>,
    c: &Culprit,
    function: &str,
) -> String {
    let process = &c.process;
    if tries_lock(context, tally) {
        if lock::kept_at(context, group, tally).is_some() {
            return lock::DEADLOCK.to_owned();
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
    } else if let Some(limit) = limit {
        at_once::advice(context, limit, function, &format!("see why {process} sleeps in {function}"))
    } else if is_another_program(context, tally) {
        format!("See why {process} sleeps in {function} before it answers, or ask it less often.")
    } else {
        format!(
            "Wait for the event instead of sleeping in {function} (a condition variable, a futex, an eventfd), unless it is meant to \
             keep to a limit of its rate."
        )
    }
}

/// Whether it is said to sleep for a lock, of which nobody tells who has it.
pub(super) fn tries_lock(context: &Context, tally: &Tally) -> bool {
    lock::is_at_lock(context, tally) && lock::tried(context, tally).is_none()
}

/// Whether nobody waits but those that sleep.
pub(super) fn is_for_itself(tally: &Tally) -> bool {
    tally.threads.iter().all(|thread| tally.by_thread.contains_key(thread))
}

/// Whether it is a server that sleeps, or nobody at its end is in focus or, where everybody is, of the program of those that are kept from their work.
fn is_another_program(context: &Context, tally: &Tally) -> bool {
    if tally.ends().keys().all(|thread| context.timeline.is_server(*thread) == Some(true)) {
        return true;
    }
    if !context.focus.is_everything() {
        return !tally.ends().keys().any(|thread| context.focus.contains(*thread));
    }
    let ends: FxHashSet<StringId> = tally.ends().keys().map(|thread| context.program(*thread)).collect();
    let mut waiters = tally.at_work.threads.iter().map(|thread| context.program(*thread)).peekable();
    waiters.peek().is_some() && waiters.all(|program| !ends.contains(&program))
}
