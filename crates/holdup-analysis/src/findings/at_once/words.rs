//! What is said of how many did something at a time, and what to do.

use holdup_trace::tables::LocationRow;

use super::{Askers, Limit, ToldBy};
use crate::findings::context::Context;

/// In a sentence, behind how long it lasted.
pub(in crate::findings) fn words(context: &Context, limit: Option<Limit>) -> String {
    let Some(Limit { at_once, told_by, asked_by }) = limit else { return String::new() };
    let number = if at_once == 1 { "one".to_owned() } else { at_once.to_string() };
    let name = |program| context.trace.text(program);
    let asked_in = asked_by.map(|(_, l)| format!(" (in {})", name(l.function))).unwrap_or_default();
    let asked_by = asked_by.map(|(program, _)| format!(" asked by {}{asked_in},", name(program))).unwrap_or_default();
    match told_by {
        ToldBy::All if at_once > 1 => format!(", all {number} at a time,{asked_by}"),
        ToldBy::All | ToldBy::Some => format!(", {number} at a time,{asked_by}"),
        ToldBy::Lock(known) => format!(", {number} at a time, with {},", known.name),
        ToldBy::Connections(program, _) => {
            let connections = if at_once == 1 { "one connection".to_owned() } else { format!("{number} connections") };
            format!(", asked by {} over {connections}{asked_in},", name(program))
        }
        ToldBy::Askers(Askers { program, within, behind, .. }) => {
            let function = |l: LocationRow| context.trace.text(l.function);
            let place = match (within, behind) {
                (_, Some(behind)) => format!(" (others waited in {})", function(behind)),
                (Some(within), None) => format!(" (in {})", function(within)),
                (None, None) => String::new(),
            };
            format!(", asked by {} {number} at a time{place},", context.trace.text(program))
        }
    }
}

/// What to do about it.
pub(in crate::findings) fn advice(context: &Context, limit: Limit, function: &str, shorter: &str) -> String {
    let number = if limit.at_once == 1 { "two".to_owned() } else { format!("more than {}", limit.at_once) };
    let asked_in = limit.asked_by.map(|(_, l)| format!(", in {},", at(context, l))).unwrap_or_default();
    // The event loop waits for all its tasks in one place: where one asks is all that tells it.
    let asker = limit.asked_by.map(|(program, _)| context.trace.text(program)).unwrap_or_default();
    let asks = match asked_in.is_empty() {
        true => String::new(),
        false => format!("; see what {asker}{asked_in} keeps waiting meanwhile, as by a lock of its tasks"),
    };
    match limit.told_by {
        ToldBy::All => {
            let who = if limit.at_once == 1 { "The only one".to_owned() } else { format!("All {}", limit.at_once) };
            format!(
                "{who} did it nearly all the time: if more is to be served at once, have more of them (workers, threads, connections to \
                 it, calls that do not wait for each other){asks}; or {shorter}."
            )
        }
        ToldBy::Some => format!(
            "Never {number} at once: find what lets no more in (a pool, a number of workers or connections, a lock, calls one after \
             another), and let in more{asks}; or {shorter}."
        ),
        ToldBy::Lock(known) => format!("Others wait for that lock. {} Or {shorter}.", known.advice(function)),
        ToldBy::Connections(program, Some(thread)) => format!(
            "{}{asked_in} asks over no more than one connection, and always the same thread ({}) waits there for the answer. Have more of them \
             (workers, threads), or let it begin several before it waits for the first; or {shorter}.",
            context.trace.text(program),
            context.thread_name(thread)
        ),
        ToldBy::Connections(program, None) => {
            let over =
                if limit.at_once == 1 { "one connection".to_owned() } else { format!("{} connections", limit.at_once) };
            format!(
                "{}{asked_in} asks over no more than {over}. If it waits for each answer before it asks again there, find what lets no more \
                 through (a lock kept over the call, a pool, a number of workers, calls one after another), and ask more at once; or \
                 {shorter}.",
                context.trace.text(program)
            )
        }
        ToldBy::Askers(askers) => {
            let name = context.trace.text(askers.program);
            let within = askers.within.map(|l| format!(", in {},", at(context, l))).unwrap_or_default();
            format!(
                "{name}{within} never asks {number} at once: {}; or {shorter}.",
                more_askers(context, askers, limit)
            )
        }
    }
}

/// What to do so that more is asked at once.
fn more_askers(context: &Context, askers: Askers, limit: Limit) -> String {
    match askers {
        Askers { behind: Some(l), .. } => format!(
            "others of it wait meanwhile in {}: let more in there (a larger pool; a lock that is let go, or a transaction that ends, before it asks)",
            at(context, l)
        ),
        Askers { one_answers: true, .. } => {
            "one thread answers all of them, and sleeps for each. Let more of them answer at once (threads, workers)".to_owned()
        }
        Askers { are_all: true, .. } => {
            let who = match limit.at_once {
                1 => "thread does".to_owned(),
                n => format!("{n} threads do"),
            };
            format!(
                "always the same {who} so. Have more of them (workers, processes), or let them begin several before they wait for the first \
                 (asynchronous calls)"
            )
        }
        _ => "find what lets no more through it (a pool, a number of workers or connections, a lock, an event loop that waits in the \
              middle of its work), and let more through"
            .to_owned(),
    }
}

/// A function, and where that is.
fn at(context: &Context, l: LocationRow) -> String {
    match context.source(&l) {
        source if source.is_empty() => context.trace.text(l.function).to_owned(),
        source => format!("{} ({source})", context.trace.text(l.function)),
    }
}
