//! Whose CPU time is it: a helper's, or that of those who call it?
//!
//! ```text
//!   mix  ◀── update_book     0.1 → 1.1 s      one caller of `mix` grew, the other did not:
//!        ◀── await_sequence  0.2 → 0.2 s      the change is `update_book`'s
//! ```

use std::collections::BTreeMap;
use std::rc::Rc;

use super::facts::{Call, Place, Ran, Trail};
use super::items::Sides;
use super::series::Series;

/// A function's own CPU time, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct FunctionItem {
    /// Without spinning.
    pub(super) own: Series,
    pub(super) spin: Series,
    pub(super) pause: Series,
    pub(super) atomic: Series,
    pub(super) memory: Series,
    pub(super) kernel: Series,
    pub(super) interrupt: Series,
    /// Without spinning and without locks' own code.
    pub(super) work: Series,
    /// The compiled function that it is part of, if it is inlined.
    pub(super) within: Option<Rc<str>>,
}

/// A caller with less than this share of a helper's time says nothing about it.
const COUNTS: f64 = 0.05;
/// A function with this share of what is inlined from one place is part of that.
const SAME: f64 = 0.9;
/// Callers whose time changed by factors further apart than this changed for reasons of their own.
const APART: f64 = 1.25;

/// A measure of a run, and where it belongs.
type Part = (fn(&Ran) -> f64, fn(&mut FunctionItem) -> &mut Series);
const PARTS: [Part; 7] = [
    (|r| r.ns - r.spin_ns - r.lock_ns, |i| &mut i.work),
    (|r| r.spin_ns, |i| &mut i.spin),
    (|r| r.pause_ns, |i| &mut i.pause),
    (|r| r.atomic_ns, |i| &mut i.atomic),
    (|r| r.memory_ns, |i| &mut i.memory),
    (|r| r.kernel_ns, |i| &mut i.kernel),
    (|r| r.interrupt_ns, |i| &mut i.interrupt),
];

impl Sides<'_> {
    /// All functions, with the time of shared helpers given to their callers where these tell more.
    pub(super) fn functions(&self) -> BTreeMap<Place, FunctionItem> {
        let mut items: BTreeMap<Place, FunctionItem> = BTreeMap::new();
        if self.before.iter().chain(self.after).any(|f| f.functions.is_empty()) {
            // Without samples on one side everything would seem to have come or gone.
            return items;
        }
        for (of, to) in PARTS {
            let trails = self.collect(|facts, put| facts.functions.iter().for_each(|(t, r)| put(t.clone(), of(r))));
            for (place, series) in trails.iter().map(physical) {
                to(items.entry(place).or_default()).add(&series);
            }
        }
        let own = |r: &Ran| r.ns - r.spin_ns;
        let trails = self.collect(|facts, put| facts.functions.iter().for_each(|(t, r)| put(t.clone(), own(r))));
        for (place, (series, within)) in settle(trails) {
            let item = items.entry(place).or_default();
            (item.own, item.within) = (series, within);
        }
        items
    }
}

/// Spinning is done by the function whose code it is, not by the wrapper around `pause` that is inlined there.
fn physical((trail, series): (&Trail, &Series)) -> (Place, Series) {
    (Place { process: trail.process.clone(), function: trail.physical() }, series.clone())
}

/// The time of each function, and into which one it is inlined, if it is always the same.
type Named = BTreeMap<Place, (Series, Option<Rc<str>>)>;

/// Names each trail by its innermost function, or by the next one where the callers changed for reasons of their own.
fn settle(trails: impl IntoIterator<Item = (Trail, Series)>) -> Named {
    let mut open: Vec<(Trail, Series)> = trails.into_iter().collect();
    let mut done = Named::new();
    while !open.is_empty() {
        let mut by_function: BTreeMap<Place, Vec<(Trail, Series)>> = BTreeMap::new();
        for (trail, series) in open.drain(..) {
            let place = Place { process: trail.process.clone(), function: trail.calls[0].function.clone() };
            by_function.entry(place).or_default().push((trail, series));
        }
        for (place, parts) in by_function {
            let helper = changed_apart(&parts);
            let within = inlined_into(&parts);
            for (mut trail, series) in parts {
                if helper && trail.calls.len() > 1 {
                    trail.calls.remove(0);
                    open.push((trail, series));
                } else {
                    let named = done.entry(place.clone()).or_default();
                    named.0.add(&series);
                    named.1.clone_from(&within);
                }
            }
        }
    }
    done
}

/// The function into which all the others are inlined that matter.
fn inlined_into(parts: &[(Trail, Series)]) -> Option<Rc<str>> {
    let mut physical: BTreeMap<Option<Rc<str>>, Series> = BTreeMap::new();
    for (trail, series) in parts {
        let inlined = trail.calls[0].inlined.then(|| trail.physical());
        physical.entry(inlined).or_default().add(series);
    }
    let all: f64 = physical.values().map(weight).sum();
    physical.into_iter().find(|(_, s)| weight(s) >= SAME * all).and_then(|(name, _)| name)
}

/// Whether a function has several callers that matter, and their time in it changed by different factors.
fn changed_apart(parts: &[(Trail, Series)]) -> bool {
    let mut callers: BTreeMap<Option<&Call>, Series> = BTreeMap::new();
    for (trail, series) in parts {
        callers.entry(trail.calls.get(1)).or_default().add(series);
    }
    let all: f64 = callers.values().map(weight).sum();
    let matter = callers.values().filter(|s| weight(s) > COUNTS * all);
    let factors: Vec<f64> = matter.map(|s| s.now().max(1e6) / s.was().max(1e6)).collect();
    let (least, most) = factors.iter().fold((f64::MAX, 0.0_f64), |(a, b), f| (a.min(*f), b.max(*f)));
    factors.len() > 1 && most > APART * least
}

fn weight(series: &Series) -> f64 {
    series.was() + series.now()
}

/// The trail of a function whose callers do not matter.
impl From<&str> for Trail {
    fn from(function: &str) -> Trail {
        Trail { process: Rc::from(""), calls: vec![Call { function: function.into(), inlined: false }] }
    }
}
