//! Both sides laid against each other, and what grew.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{At, LossCause, Machine, SMALLEST};
use crate::diff::facts::{Facts, Place, Spot};
use crate::diff::functions::FunctionItem;
use crate::diff::items::{HeldItem, HeldKey, Sides};
use crate::diff::series::{Disturbance, Noise, Series, middle};

/// Standard deviations of noise from which on growth is shown.
const SHOWN: f64 = 2.0;
/// From this share of the growth on it is the atomic instructions, or the pause.
const MOST: f64 = 0.5;
/// An instruction whose share of the growth is above its share of the time before by this much grew by itself.
const ITSELF: f64 = 0.25;
/// What takes longer than arithmetic by more than this factor has other reasons than arithmetic.
const BEYOND: f64 = 1.25;

/// Both sides, in the work of the smaller number.
pub(super) struct Case<'a> {
    sides: Sides<'a>,
    /// The same for CPU time.
    executed: Sides<'a>,
    pub(super) work: f64,
    /// CPU time and waiting, at both numbers.
    pub(super) cost: [f64; 2],
    held: BTreeMap<HeldKey, HeldItem>,
    by: Disturbance,
    period_ns: f64,
    /// The share of CPU time that the host left to the program, at the smaller number.
    received: f64,
    machine: Machine,
}

impl<'a> Case<'a> {
    pub(super) fn new(small: &At<'a>, large: &At<'a>, machine: Machine) -> Self {
        let sides = Sides { before: small.runs, after: large.runs, scale: small.work / large.work };
        let mut held = sides.held();
        // Who waits for all the others to be done is one thread more than there are to keep busy.
        let idle = |f: &Facts| (large.n as f64 * f.elapsed_ns - f.ran_ns).max(0.0) * sides.scale;
        let idle = middle(&large.runs.iter().map(idle).collect::<Vec<_>>());
        for (_, item) in held.iter_mut().filter(|(key, _)| key.family == "thread") {
            item.wait.after.iter_mut().for_each(|ns| *ns = ns.min(idle));
        }
        // Where others take the CPUs, threads that do not get one say nothing of the program, nor do those behind them.
        let by = sides.disturbance();
        let quiet = by.is_quiet();
        held.retain(|key, _| quiet || !matches!(key.family, "thread" | "scheduler"));
        let ran = sides.total(|f| f.ran_ns * received(f));
        let mut cost = [ran.was(), ran.now()];
        for (key, item) in &held {
            match key.family {
                // Somebody always waits for all the others to be done: what grows of that is loss, the rest is not.
                "thread" => cost[1] += item.wait.delta().max(0.0),
                "lock" | "disk" | "sleep" => cost = [cost[0] + item.wait.was(), cost[1] + item.wait.now()],
                _ => {}
            }
        }
        let period_ns = small.runs.iter().chain(large.runs).map(|f| f.period_ns).fold(0.0, f64::max);
        let typical = |runs: &[Facts]| middle(&runs.iter().map(received).collect::<Vec<_>>());
        let (before, after) = (typical(small.runs), typical(large.runs));
        // Samples are taken of time that the program had, switches tell of time that the host took, too.
        let executed = Sides { scale: sides.scale * after / before, ..sides };
        Case { work: small.work, cost, held, by, period_ns, received: before, executed, machine, sides }
    }

    /// In seconds for each unit of work.
    fn per_unit(&self, series: &Series) -> [f64; 2] {
        [series.was(), series.now()].map(|ns| ns / 1e9 / self.work)
    }

    fn share(&self, series: &Series) -> f64 {
        series.delta() / self.cost[1].max(1.0)
    }

    fn grew(&self, series: &Series, noise: Noise) -> bool {
        series.delta() > 0.0 && self.share(series) >= SMALLEST && series.is_real(noise, SHOWN)
    }

    /// What takes more CPU time.
    pub(super) fn functions(&self) -> Vec<LossCause> {
        let by = Disturbance { stolen: 0.0, neighbours: self.by.neighbours.min(1.0), shift: self.by.shift.min(1.0) };
        let noise = Noise::cpu(by, self.period_ns);
        let functions: BTreeMap<Place, FunctionItem> =
            self.executed.functions().into_iter().map(|(place, item)| (place, item.times(self.received))).collect();
        // A lock that is not waited for costs what its cache line does.
        let contended = self.waits().iter().any(|cause| cause.what == "lock");
        let mut found = Vec::new();
        for (place, item) in &functions {
            if self.grew(&item.own, noise) {
                // What instructions do is told of compiled functions.
                let within = item.within.clone().map(|function| Place { function, ..place.clone() });
                let code = within.as_ref().and_then(|w| functions.get(w)).unwrap_or(item);
                found.push(self.worked(place, item, code, contended));
            }
            if self.grew(&item.spin, noise) {
                found.push(self.spun(place, item));
            }
        }
        found
    }

    /// `code` is the compiled function that it is part of: what instructions do is told of these.
    fn worked(&self, place: &Place, item: &FunctionItem, code: &FunctionItem, contended: bool) -> LossCause {
        let grown = item.own.delta();
        let factor = item.own.now() / item.own.was().max(self.period_ns);
        let (instruction, itself) = self.instruction(place, item);
        let more = if item.own.was() < self.period_ns {
            "it took next to nothing before".to_owned()
        } else {
            format!("the same work takes {factor:.1}× as much CPU time here")
        };
        let (atomic, memory) = (code.atomic.delta() / grown, code.memory.delta() / grown);
        let locks = 1.0 - item.work.delta() / grown;
        let (law, because) = if contended && locks > MOST {
            (
                "sigma",
                "to take and to let go of a lock costs more when others wait for it: this is the lock's own code"
                    .to_owned(),
            )
        } else if atomic > MOST {
            let share = 100.0 * atomic.min(1.0);
            let why = "each CPU has to fetch a cache line that another one has just written";
            ("kappa", format!("{more}; {share:.0} % of the growth is on or behind atomic instructions: {why}"))
        } else if itself {
            let why = "memory that other CPUs write";
            ("kappa", format!("{more}, and the growth is at one instruction, which did not take that before: {why}"))
        } else {
            let (law, why) = self.alike(factor, memory);
            (law, format!("{more}, all of it alike: {why}"))
        };
        self.cause(law, "function", place, &item.own, instruction, because)
    }

    /// Why all of a function takes longer by this factor, of which growth so much is where it touches memory.
    fn alike(&self, factor: f64, memory: f64) -> (&'static str, String) {
        let Some(arithmetic) = self.machine.arithmetic else {
            return (
                "capacity",
                "the CPUs share a core, a cache, memory or a clock, or there is more to do".to_owned(),
            );
        };
        let known = format!("arithmetic takes {arithmetic:.2}× as much meanwhile");
        if factor <= BEYOND * arithmetic.max(1.0) {
            return ("capacity", format!("{known}: the CPUs share a core or a clock, or the host takes them away"));
        }
        let touching =
            format!("{known}, and {:.0} % of the growth is where memory is touched", 100.0 * memory.min(1.0));
        match self.machine.fits_cache {
            Some(true) if memory > MOST => (
                "kappa",
                format!("{touching}, all of which has room in the cache: others write the same lines (false sharing)"),
            ),
            _ if memory > MOST => (
                "capacity",
                format!(
                    "{touching}: caches or memory are too small or too slow for all, or others write the same lines"
                ),
            ),
            _ => ("capacity", format!("{known}: a cache or memory is shared, or there is more to do")),
        }
    }

    fn spun(&self, place: &Place, item: &FunctionItem) -> LossCause {
        let (instruction, _) = self.instruction(place, item);
        let of = |part: &Series| part.delta() / item.spin.delta();
        let (law, because) = if of(&item.pause) < MOST && of(&item.atomic) > MOST {
            ("kappa", "it tries again and again to change a cache line that other CPUs change meanwhile")
        } else {
            ("sigma", "threads spin here until another one is done: waiting that uses CPU time")
        };
        self.cause(law, "function", place, &item.spin, instruction, because.to_owned())
    }

    /// What is waited for.
    pub(super) fn waits(&self) -> Vec<LossCause> {
        // Disturbance lengthens waits, but it does not make any that few threads do not have.
        let by = Disturbance { neighbours: self.by.neighbours.min(0.25), stolen: self.by.stolen.min(0.2), ..self.by };
        let noise = Noise::waits(by);
        let grown = self.held.iter().filter(|(_, item)| self.grew(&item.wait, noise));
        grown.map(|(key, item)| self.waited(key, item)).collect()
    }

    fn waited(&self, key: &HeldKey, item: &HeldItem) -> LossCause {
        let place = Place { process: key.process.clone(), function: item.function.clone() };
        let at = if key.at.is_empty() { String::new() } else { format!(" in `{}`", key.at) };
        let share = 100.0 * self.share(&item.wait);
        let (law, what, because) = match key.family {
            "lock" if item.handed_over => (
                "sigma",
                "lock",
                format!("threads wait{at} for a lock that is handed over all the time, and held by nobody for long"),
            ),
            "lock" => ("sigma", "lock", format!("threads wait{at} for a lock while it runs: only one can at a time")),
            "disk" => ("sigma", "wait-site", "threads wait for the disk here, or for a lock held meanwhile".to_owned()),
            "sleep" => ("sigma", "wait-site", "others wait while it sleeps".to_owned()),
            "scheduler" => ("capacity", "wait-site", "threads could run and did not, while CPUs were idle".to_owned()),
            _ => ("sigma", "function", format!("threads wait{at} until it is done: one does this for all")),
        };
        let because = format!("{because}; {share:.0} % of all thread time at the larger number");
        self.cause(law, what, &place, &item.wait, String::new(), because)
    }

    fn cause(
        &self,
        law: &'static str,
        what: &'static str,
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

    /// The instruction of a function that grew most, and whether it grew by itself, not as all of the function did.
    fn instruction(&self, place: &Place, item: &FunctionItem) -> (String, bool) {
        let code = item.within.as_ref().unwrap_or(&place.function);
        let is_mine = |s: &Spot| s.place.function == *code && s.place.process == place.process;
        let spots = self.executed.collect(|facts, add| {
            facts
                .spots
                .iter()
                .filter(|(s, _)| is_mine(s))
                .for_each(|(s, ns)| add((s.code.clone(), s.offset, s.text.clone()), *ns));
        });
        let sum = |of: fn(&Series) -> f64| spots.values().map(of).sum::<f64>().max(1.0);
        let (was, grown) = (sum(Series::was), sum(Series::delta));
        let most = spots.iter().max_by(|a, b| a.1.delta().total_cmp(&b.1.delta()));
        let Some(((code, offset, text), most)) = most.filter(|(_, s)| s.delta() > 0.0) else {
            return Default::default();
        };
        let itself = most.delta() / grown - most.was() / was >= ITSELF;
        (format!("{code}+{offset:#x}: {text}"), itself)
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

/// The share of its CPU time that the host left to the program. A clock's samples stop while the host has the CPU.
fn received(facts: &Facts) -> f64 {
    let sampled: f64 = facts.functions.values().map(|ran| ran.samples).sum::<f64>() * facts.period_ns;
    if sampled > 0.0 { (sampled / facts.ran_ns.max(1.0)).min(1.0) } else { 1.0 }
}

impl FunctionItem {
    fn times(mut self, factor: f64) -> FunctionItem {
        for series in
            [&mut self.own, &mut self.spin, &mut self.pause, &mut self.atomic, &mut self.memory, &mut self.work]
        {
            series.before.iter_mut().chain(&mut series.after).for_each(|value| *value *= factor);
        }
        self
    }
}
