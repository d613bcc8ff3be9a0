//! How many slept, or waited for the outside, at a time. Where that is always the same number, though there are more that do it in their
//! turn, something lets no more in.
//!
//! A pool of connections, workers or permits that is too small makes requests wait for something that takes long, but would serve
//! more of them at once. The pool is not in the trace; that number is.

use rustc_hash::FxHashMap;

use super::context::Context;
use super::spans::levels;
use super::tally::{Group, Tally};
use crate::blame::{Key, Span, Terminal};

/// It is the same number for this share of the time, and hardly any did it while nobody waited for them,
const STEADY: f64 = 0.8;
/// and for this share of what is looked at.
const LONG: f64 = 0.25;
/// Fewer times may be chance.
const FEWEST: usize = 20;

/// How many at a time, if it is always so many and there are others. O(n log n) in spans, and O(cells) where there are any.
///
/// A thread that waits for events and timers alike is as many tasks as it has, so that its number says nothing.
pub(super) fn limit(context: &Context, group: &Group, tally: &Tally) -> Option<usize> {
    let (Group::Timer(program, site) | Group::Outside(program, site)) = *group else { return None };
    if tally.is_at_input(context.classifier) {
        return None;
    }
    let mut of: FxHashMap<_, Vec<Span>> = FxHashMap::default();
    for key in tally.subjects() {
        of.entry(key.thread).or_default().extend(context.blame.spans.get(key).into_iter().flatten());
    }
    let times: usize = of.values().map(Vec::len).sum();
    let time = levels(&of.values().map(Vec::as_slice).collect::<Vec<_>>());
    let whole: f64 = time.iter().skip(1).sum();
    let (at_once, longest) = time.iter().copied().enumerate().skip(1).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (from, to) = context.blame.window;
    let is_steady = longest >= STEADY * whole && whole >= LONG * (to - from) as f64;
    let seen = is_steady && times >= FEWEST && of.len() >= 2 * at_once;
    // Their own waits, whether or not others waited for them.
    let all = || {
        let at_site = |key: &Key| context.classifier.facts(key.site).application == site;
        let same = |key: &Key| context.program(key.thread) == program && at_site(key);
        context.blame.thread_ns(|key| key.terminal == Terminal::IdleByDesign && same(key)) as f64
    };
    (seen && STEADY * all() <= at_once as f64 * whole).then_some(at_once)
}

/// In a sentence, behind how long it lasted.
pub(super) fn words(at_once: Option<usize>) -> String {
    match at_once {
        None => String::new(),
        Some(1) => ", one at a time,".to_owned(),
        Some(n) => format!(", {n} at a time,"),
    }
}

/// What to do about it.
pub(super) fn advice(at_once: usize, shorter: &str) -> String {
    let never = if at_once == 1 { "two".to_owned() } else { format!("more than {at_once}") };
    format!(
        "Never {never} at once: find what lets no more in (a pool, a number of workers or connections, a lock, calls one after \
         another), and let in more; or {shorter}."
    )
}
