//! Cause or symptom?
//!
//! A thread that runs longer does so by itself: that is a *cause*. A thread that waits, waits for something: its wait
//! is a *symptom* of whatever the blame of the interval engine ends at, unless it is the hand-over itself that takes
//! the time. Spinning is waiting, too: a *symptom* if somebody else worked longer meanwhile, else the pause itself is
//! the cause.

mod causes;
mod spins;
mod symptoms;

use std::collections::BTreeMap;

use holdup_trace::Amount;

use super::change::{Change, Subject};
use super::facts::Place;
use super::functions::FunctionItem;
use super::items::{HeldItem, HeldKey, Sides};
use super::series::{Disturbance, Noise, Series};
use crate::label::duration;

/// Changes below this share of the whole are not shown.
const SMALLEST: f64 = 0.01;
/// Standard deviations from which on a difference is shown. (To fail a build takes more.)
const SHOWN: f64 = 2.0;

/// All changes with their roles, and what they were told from.
pub(super) struct Judged {
    pub(super) changes: Vec<Change>,
    pub(super) within_noise: usize,
    pub(super) functions: BTreeMap<Place, FunctionItem>,
    pub(super) held: BTreeMap<HeldKey, HeldItem>,
    /// What the larger side cost in all, in nanoseconds.
    pub(super) whole: f64,
    /// The longest sampling period.
    pub(super) period_ns: f64,
}

/// What the judges look at.
struct Case<'a> {
    sides: &'a Sides<'a>,
    elapsed: &'a Series,
    functions: BTreeMap<Place, FunctionItem>,
    held: BTreeMap<HeldKey, HeldItem>,
    whole: f64,
    period_ns: f64,
    disturbed: Disturbance,
    within_noise: usize,
}

/// Tells causes from symptoms. O(items²) in the few that changed.
pub(super) fn judge(sides: &Sides, elapsed: &Series) -> Judged {
    let period = |f: &super::facts::Facts| f.period_ns;
    let mut case = Case {
        sides,
        elapsed,
        functions: sides.functions(),
        held: sides.held(),
        whole: sides.whole(),
        period_ns: sides.before.iter().chain(sides.after).map(period).fold(0.0, f64::max),
        disturbed: sides.disturbance(),
        within_noise: 0,
    };
    let mut changes = causes::find(&mut case);
    changes.extend(spins::find(&case, &changes));
    changes.extend(symptoms::find(&mut case, &changes));
    changes.extend(spins::instructions(&case, &changes));
    changes.sort_by(order);
    let Case { within_noise, functions, held, whole, period_ns, .. } = case;
    Judged { changes, within_noise, functions, held, whole, period_ns }
}

/// Causes first, then by size; instructions after the functions that they belong to.
fn order(a: &Change, b: &Change) -> std::cmp::Ordering {
    let rank = |c: &Change| (c.role, c.what == Subject::Instruction);
    let size = |c: &Change| c.delta_s.abs();
    rank(a).cmp(&rank(b)).then(size(b).total_cmp(&size(a))).then_with(|| a.name.cmp(&b.name))
}

impl Case<'_> {
    /// Whether a change matters and is no noise.
    fn shows(&mut self, series: &Series, noise: Noise) -> bool {
        let matters = series.delta().abs() >= SMALLEST * self.whole;
        let real = matters && series.is_real(noise, SHOWN);
        self.within_noise += usize::from(matters && !real);
        real
    }

    /// A function as it is shown: one that is always inlined in another says in which.
    fn name(&self, place: &Place) -> String {
        let within = self.functions.get(place).and_then(|f| f.within.as_deref());
        within.map_or_else(|| place.function.to_string(), |w| format!("{} (inlined in {w})", place.function))
    }

    fn cpu_noise(&self) -> Noise {
        Noise::cpu(self.disturbed, self.period_ns)
    }

    fn wait_noise(&self) -> Noise {
        Noise::waits(self.disturbed)
    }
}

fn seconds(series: &Series) -> [f64; 2] {
    [series.was(), series.now()].map(|ns| Amount(ns).seconds())
}

/// `0.42 s instead of 0.12 s`.
fn instead(series: &Series) -> String {
    format!("{} instead of {}", time(series.now()), time(series.was()))
}

/// Nanoseconds in the unit in which they are read best.
pub(super) fn time(ns: f64) -> String {
    duration(Amount(ns).seconds())
}
