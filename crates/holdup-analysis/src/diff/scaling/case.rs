//! Both sides laid against each other, and what grew.

use std::collections::BTreeMap;
use std::rc::Rc;

use holdup_trace::Amount;

use super::lost::{self, Lost};
use super::{At, Law, LossCause, LossSite, Machine, SMALLEST};
use crate::diff::facts::{Facts, Family, Place};
use crate::diff::items::{HeldItem, HeldKey, Sides};
use crate::diff::series::{Disturbance, Noise, Series, middle};

/// Standard deviations of noise from which on growth is shown.
const SHOWN: f64 = 2.0;

/// Both sides, in the work of the smaller number.
pub(super) struct Case<'a> {
    pub(super) sides: Sides<'a>,
    /// The same for CPU time.
    pub(super) executed: Sides<'a>,
    pub(super) work: f64,
    /// The numbers of threads.
    pub(super) n: [usize; 2],
    /// CPU time, waiting and what is lost for want of anything to do, at both numbers.
    pub(super) cost: [f64; 2],
    held: BTreeMap<HeldKey, HeldItem>,
    pub(super) lost: Lost,
    pub(super) by: Disturbance,
    pub(super) period_ns: f64,
    /// The share of CPU time that the host left to the program, at the smaller number.
    pub(super) received: f64,
    pub(super) machine: Machine,
}

impl<'a> Case<'a> {
    pub(super) fn new(small: &At<'a>, large: &At<'a>, machine: Machine) -> Self {
        let sides = Sides { before: small.runs, after: large.runs, scale: small.work / large.work };
        let mut held = sides.held();
        // Where others take the CPUs, threads that do not get one say nothing of the program. Who waits for a thread that works
        // is told by what is lost meanwhile.
        let by = sides.disturbance();
        let quiet = by.is_quiet();
        held.retain(|key, _| key.family != Family::Thread && (quiet || key.family != Family::Scheduler));
        let n = [small.n, large.n];
        held.values_mut().for_each(|item| item.wait.scale(waits_that_count(small), waits_that_count(large)));
        let mut lost = lost::lost(&sides, n);
        lost::settle(&mut lost, &sides, n, by);
        let ran = sides.total(|f| f.ran_ns * received(f));
        let mut cost = [ran.was(), ran.now()];
        for item in held
            .iter()
            .filter(|(key, _)| matches!(key.family, Family::Lock | Family::Disk | Family::Sleep))
            .map(|(_, item)| item)
        {
            cost = [cost[0] + item.wait.was(), cost[1] + item.wait.now()];
        }
        for series in lost.values() {
            cost = [cost[0] + series.was(), cost[1] + series.now()];
        }
        let period_ns = small.runs.iter().chain(large.runs).map(|f| f.period_ns).fold(0.0, f64::max);
        let typical = |runs: &[Facts]| middle(&runs.iter().map(received).collect::<Vec<_>>());
        let (before, after) = (typical(small.runs), typical(large.runs));
        // Samples are taken of time that the program had, switches tell of time that the host took, too.
        let executed = Sides { scale: sides.scale * after / before, ..sides };
        Case { work: small.work, n, cost, held, lost, by, period_ns, received: before, executed, machine, sides }
    }

    /// In seconds for each unit of work.
    fn per_unit(&self, series: &Series) -> [f64; 2] {
        [series.was(), series.now()].map(|ns| Amount(ns).seconds() / self.work)
    }

    pub(super) fn share(&self, series: &Series) -> f64 {
        series.delta() / self.cost[1].max(1.0)
    }

    pub(super) fn grew(&self, series: &Series, noise: Noise) -> bool {
        series.delta() > 0.0 && self.share(series) >= SMALLEST && series.is_real(noise, SHOWN)
    }

    /// What is waited for.
    pub(super) fn waits(&self) -> Vec<LossCause> {
        let noise = self.noise_of_waits();
        let grown = self.held.iter().filter(|(_, item)| self.grew(&item.wait, noise));
        grown.map(|(key, item)| self.waited(key, item)).collect()
    }

    /// Disturbance lengthens waits, but it does not make any that few threads do not have.
    pub(super) fn noise_of_waits(&self) -> Noise {
        let by = Disturbance { neighbours: self.by.neighbours.min(0.25), stolen: self.by.stolen.min(0.2), ..self.by };
        Noise::waits(by)
    }

    fn waited(&self, key: &HeldKey, item: &HeldItem) -> LossCause {
        let place = Place { process: key.process.clone(), function: item.function.clone() };
        let at = if key.at.is_empty() { String::new() } else { format!(" in `{}`", key.at) };
        let share = 100.0 * self.share(&item.wait);
        let (law, what, because) = match key.family {
            Family::Lock if item.handed_over => (
                Law::Sigma,
                LossSite::Lock,
                format!("threads wait{at} for a lock that is handed over all the time, and held by nobody for long"),
            ),
            Family::Lock => (
                Law::Sigma,
                LossSite::Lock,
                format!("threads wait{at} for a lock while it runs: only one can at a time"),
            ),
            Family::Disk => (
                Law::Sigma,
                LossSite::WaitSite,
                "threads wait for the disk here, or for a lock held meanwhile".to_owned(),
            ),
            Family::Sleep => (Law::Sigma, LossSite::WaitSite, "others wait while it sleeps".to_owned()),
            Family::Scheduler | Family::Thread | Family::Idle => {
                (Law::Capacity, LossSite::WaitSite, "threads could run and did not, while CPUs were idle".to_owned())
            }
        };
        let because = format!("{because}; {share:.0} % of all thread time at the larger number");
        self.cause(law, what, &place, &item.wait, String::new(), because)
    }

    pub(super) fn cause(
        &self,
        law: Law,
        what: LossSite,
        place: &Place,
        series: &Series,
        instruction: String,
        because: String,
    ) -> LossCause {
        LossCause {
            law,
            what,
            name: place.function.to_string(),
            process: place.process.to_string(),
            source: self.line(place),
            instruction,
            s_per_unit: self.per_unit(series),
            share: self.share(series),
            because,
            lock_code: false,
            in_kernel: false,
        }
    }

    /// The line of a function where most of the growth is, or most of the time where nothing grew.
    fn line(&self, place: &Place) -> String {
        let mine = |facts: &Facts, add: &mut dyn FnMut(Rc<str>, f64)| {
            let from = (place.clone(), Rc::from(""));
            let all = facts.lines.range(from..).take_while(|((p, _), _)| p == place);
            all.for_each(|((_, line), ns)| add(line.clone(), *ns));
        };
        let lines = self.executed.collect(mine);
        let growth = lines.iter().max_by(|a, b| a.1.delta().total_cmp(&b.1.delta()));
        let time = lines.iter().max_by(|a, b| a.1.now().total_cmp(&b.1.now()));
        growth.filter(|(_, s)| s.delta() > 0.0).or(time).map_or(String::new(), |(line, _)| line.to_string())
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let [neighbours, stolen] = [self.by.neighbours, self.by.stolen].map(|share| 100.0 * share.min(1.0));
        if neighbours + stolen > 5.0 {
            notes.push(format!(
                "meanwhile other programs used up to {neighbours:.0} % of the CPUs and the host {stolen:.0} %: the speed-up \
                 suffers from that, the costs above less so"
            ));
        }
        if self.sides.before.iter().chain(self.sides.after).any(|f| f.functions.is_empty()) {
            notes.push("a run without CPU samples is among them: nothing is known of functions".into());
        }
        notes
    }
}

/// The share of the waiting that keeps one of the n threads from work: where more wait than there are places left beside those
/// that run, as who waits for all the others to be done, the rest is no loss.
fn waits_that_count(at: &At) -> f64 {
    let (mut counts, mut all) = (0.0, 0.0);
    for (&(busy, waiting), ns) in at.runs.iter().flat_map(|facts| &facts.waiting) {
        counts += waiting.min(at.n.saturating_sub(busy)) as f64 * ns;
        all += waiting as f64 * ns;
    }
    if all > 0.0 { counts / all } else { 1.0 }
}

/// The share of its CPU time that the host left to the program. A clock's samples stop while the host has the CPU.
fn received(facts: &Facts) -> f64 {
    let sampled: f64 = facts.functions.values().map(|ran| ran.samples).sum::<f64>() * facts.period_ns;
    if sampled > 0.0 { (sampled / facts.ran_ns.max(1.0)).min(1.0) } else { 1.0 }
}
