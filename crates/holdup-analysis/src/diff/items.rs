//! What both sides have in common, matched by name, with its measures run by run.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::facts::{Facts, Family, Held, Place, Under};
use super::series::{Disturbance, Series, middle};
use crate::classify::WaitKind;
use crate::report::FindingKind;

/// Both sides, and by how much the later one is scaled to the work of the earlier.
pub(super) struct Sides<'a> {
    pub(super) before: &'a [Facts],
    pub(super) after: &'a [Facts],
    /// Units of work before, divided by those after.
    pub(super) scale: f64,
}

/// What is waited for in the same way on both sides.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HeldKey {
    pub(super) process: Rc<str>,
    pub(super) family: Family,
    /// Where the waiters stand; for disks and sleeps the culprit itself.
    pub(super) at: Rc<str>,
    pub(super) lock: String,
}

/// What held threads up, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldItem {
    pub(super) blame: Series,
    pub(super) wait: Series,
    pub(super) waits: Series,
    /// The one that explains the change: see [`Sides::culprit`].
    pub(super) function: Rc<str>,
    pub(super) handed_over: bool,
    /// Undisturbed hold times by the function that lets go.
    pub(super) holds: BTreeMap<Rc<str>, Hold>,
}

/// How long a lock is held if nothing disturbs: the lower quartile and decile, in nanoseconds.
///
/// Preemption, interrupts and busy neighbours only ever lengthen a hold, so the upper part of the distribution tells
/// of the machine, the lower of the program: it moved by less than 2 % between equal runs when four fifths of the
/// CPUs were taken away.
#[derive(Debug, Clone, Default)]
pub(super) struct Hold {
    pub(super) quartile: Series,
    pub(super) decile: Series,
    /// How many holds were seen on both sides.
    pub(super) count: [u64; 2],
}

impl<'a> Sides<'a> {
    /// Sums what `each` tells of every run, by key.
    pub(super) fn collect<K: Ord>(&self, each: impl Fn(&Facts, &mut dyn FnMut(K, f64))) -> BTreeMap<K, Series> {
        self.collect_by_side(|_, facts, add| each(facts, add))
    }

    /// The same, where `each` has to know whether the run is one of before (0) or after (1).
    pub(super) fn collect_by_side<K: Ord>(
        &self,
        each: impl Fn(usize, &Facts, &mut dyn FnMut(K, f64)),
    ) -> BTreeMap<K, Series> {
        let (n, m) = (self.before.len(), self.after.len());
        let mut items: BTreeMap<K, Series> = BTreeMap::new();
        let empty = || Series { before: vec![0.0; n], after: vec![0.0; m] };
        for (side, (runs, scale)) in [(self.before, 1.0), (self.after, self.scale)].into_iter().enumerate() {
            for (i, facts) in runs.iter().enumerate() {
                each(side, facts, &mut |key, value| {
                    items.entry(key).or_insert_with(empty).side_mut(side)[i] += value * scale;
                });
            }
        }
        items
    }

    /// One measure of the whole run.
    pub(super) fn total(&self, of: impl Fn(&Facts) -> f64) -> Series {
        self.collect(|facts, add| add((), of(facts))).remove(&()).unwrap_or_default()
    }

    /// All waits by place and kind: thread nanoseconds, and how many.
    pub(super) fn waits(&self) -> BTreeMap<(Place, WaitKind), (Series, Series)> {
        let ns = self.collect(|facts, add| facts.waits.iter().for_each(|(k, w)| add(k.clone(), w.ns)));
        let mut counts = self.collect(|facts, add| facts.waits.iter().for_each(|(k, w)| add(k.clone(), w.count)));
        ns.into_iter()
            .map(|(k, ns)| {
                let count = counts.remove(&k).unwrap_or_default();
                (k, (ns, count))
            })
            .collect()
    }

    /// Everything that held threads up.
    pub(super) fn held(&self) -> BTreeMap<HeldKey, HeldItem> {
        let sum = |of: fn(&Held) -> f64| {
            self.collect(move |facts, add| facts.held.iter().for_each(|h| add(key_of(h), of(h))))
        };
        let (mut waits, mut wait) = (sum(|h| h.waits), sum(|h| h.wait_ns));
        let mut items = BTreeMap::new();
        for (key, blame) in sum(|h| h.blame_ns) {
            let larger = self.larger(&key, blame.delta() <= 0.0);
            let mut item = HeldItem {
                wait: wait.remove(&key).unwrap_or_default(),
                waits: waits.remove(&key).unwrap_or_default(),
                handed_over: larger.is_some_and(|h| h.handed_over),
                holds: self.holds(&key),
                ..HeldItem::default()
            };
            item.function = self.culprit(&key, &blame, larger);
            item.blame = blame;
            items.insert(key, item);
        }
        items
    }

    /// The largest of its kind on the side that has more of it.
    fn larger(&self, key: &HeldKey, is_before: bool) -> Option<&'a Held> {
        let runs = if is_before { self.before } else { self.after };
        let all = runs.iter().flat_map(|f| &f.held).filter(|h| key_of(h) == *key);
        all.max_by(|a, b| a.blame_ns.total_cmp(&b.blame_ns))
    }

    /// The innermost function that covers most of the *change*; without samples of it, the culprit where it is larger.
    fn culprit(&self, key: &HeldKey, blame: &Series, larger: Option<&Held>) -> Rc<str> {
        /// The same share as in a finding.
        const COVERAGE: f64 = 0.6;
        let named = larger.map_or_else(|| key.at.clone(), |h| h.function.clone());
        if larger.is_none_or(|h| {
            h.handed_over
                || !matches!(h.family, Family::Lock | Family::Thread)
                || h.kind == FindingKind::OwnerNotRunning
        }) {
            return named;
        }
        let (old, new) = (self.ran_under(key, self.before, 1.0), self.ran_under(key, self.after, self.scale));
        let sign = blame.delta().signum();
        let mut best: Option<(f64, Rc<str>)> = None;
        for name in old.keys().chain(new.keys()) {
            let (a, b) = (old.get(name).copied().unwrap_or_default(), new.get(name).copied().unwrap_or_default());
            let depth = (a.depths + b.depths) / (a.ns + b.ns).max(f64::MIN_POSITIVE);
            let covers = (b.ns - a.ns) * sign >= COVERAGE * blame.delta().abs();
            // What the finding names is more telling than a helper below it.
            if covers && *name == named {
                return named;
            }
            if covers && best.as_ref().is_none_or(|(d, _)| depth > *d) {
                best = Some((depth, name.clone()));
            }
        }
        best.map_or(named, |(_, name)| name)
    }

    /// What the terminals ran, with weights that sum up to the blame of a typical run.
    fn ran_under(&self, key: &HeldKey, runs: &[Facts], scale: f64) -> BTreeMap<Rc<str>, Under> {
        let mut under: BTreeMap<Rc<str>, Under> = BTreeMap::new();
        for held in runs.iter().flat_map(|f| &f.held).filter(|h| key_of(h) == *key && h.sampled_ns > 0.0) {
            let weight = scale * held.blame_ns / held.sampled_ns / runs.len() as f64;
            for (name, ran) in &held.ran {
                let sum = under.entry(name.clone()).or_default();
                sum.ns += ran.ns * weight;
                sum.depths += ran.depths * weight;
            }
        }
        under
    }

    fn holds(&self, key: &HeldKey) -> BTreeMap<Rc<str>, Hold> {
        /// Fewer holds have no quartile worth comparing.
        const FEWEST: usize = 40;
        let mut holds: BTreeMap<Rc<str>, Hold> = BTreeMap::new();
        for (side, runs) in [self.before, self.after].into_iter().enumerate() {
            for facts in runs {
                for (name, mut all) in holds_of(facts, key) {
                    let count = all.len();
                    if count < FEWEST {
                        continue;
                    }
                    let mut part = |n: usize| *all.select_nth_unstable(n).1 as f64;
                    let (decile, quartile) = (part(count / 10), part(count / 4));
                    let hold = holds.entry(name).or_default();
                    hold.count[side] += count as u64;
                    hold.decile.side_mut(side).push(decile);
                    hold.quartile.side_mut(side).push(quartile);
                }
            }
        }
        holds.retain(|_, h| !h.quartile.before.is_empty() && !h.quartile.after.is_empty() && h.is_sharp());
        holds
    }

    /// What the focus cost in all: its CPU time and the idleness charged, in nanoseconds of a typical run.
    pub(super) fn whole(&self) -> f64 {
        let cost = |runs: &[Facts], scale: f64| {
            let all: Vec<f64> =
                runs.iter().map(|f| scale * (f.ran_ns + f.held.iter().map(|h| h.blame_ns).sum::<f64>())).collect();
            middle(&all)
        };
        cost(self.before, 1.0).max(cost(self.after, self.scale)).max(1.0)
    }

    /// What disturbed the run that was disturbed most.
    pub(super) fn disturbance(&self) -> Disturbance {
        let most = |of: fn(&Facts) -> f64| self.before.iter().chain(self.after).map(of).fold(0.0, f64::max);
        let typical = |runs: &[Facts]| middle(&runs.iter().map(Facts::neighbours).collect::<Vec<_>>());
        let shift = (typical(self.before) - typical(self.after)).abs();
        Disturbance { neighbours: most(Facts::neighbours), stolen: most(|f| f.stolen), shift }
    }
}

impl Hold {
    /// Whether each hold is one critical section: then the shortest are about as long as each other. A thread that
    /// takes a lock many times before anybody else gets it seems to hold it for anything.
    fn is_sharp(&self) -> bool {
        const SPREAD: f64 = 1.15;
        let sharp = |d: &[f64], q: &[f64]| d.iter().zip(q).all(|(d, q)| *q <= SPREAD * d);
        sharp(&self.decile.before, &self.quartile.before) && sharp(&self.decile.after, &self.quartile.after)
    }

    /// The part that changed less: a disturbance rarely moves both by as much.
    pub(super) fn steadier(&self) -> &Series {
        let change = |s: &Series| (s.delta() / s.was().max(1.0)).abs();
        if change(&self.decile) < change(&self.quartile) { &self.decile } else { &self.quartile }
    }
}

fn key_of(held: &Held) -> HeldKey {
    let itself = matches!(held.family, Family::Disk | Family::Sleep);
    let at = if itself { held.function.clone() } else { held.waits_at.clone() };
    HeldKey { process: held.process.clone(), family: held.family, at, lock: held.lock.clone() }
}

fn holds_of(facts: &Facts, key: &HeldKey) -> BTreeMap<Rc<str>, Vec<u64>> {
    let mut all: BTreeMap<Rc<str>, Vec<u64>> = BTreeMap::new();
    for held in facts.held.iter().filter(|h| key_of(h) == *key) {
        for (name, ns) in &held.holds {
            all.entry(name.clone()).or_default().extend(ns);
        }
    }
    all
}
