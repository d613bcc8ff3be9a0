//! Why more threads give less than that much more: what a unit of work costs beyond what it costs with few threads.
//!
//! A unit costs CPU time and waiting. What does not grow with the number of threads is no loss. What grows is told
//! apart by how it will grow on:
//! - **contention** (σ): threads wait for a lock, or for a part that one thread does for all, asleep or spinning;
//! - **coherence** (κ): the same code takes longer because of memory that other CPUs write: the growth is on or behind
//!   atomic instructions, or at an instruction that had no such part in the time before;
//! - **capacity**: all of the code takes longer: CPUs share a core, a cache, memory or a clock.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::Serialize;

use super::facts::{Facts, Place, Spot};
use super::functions::FunctionItem;
use super::items::{HeldItem, HeldKey, Sides};
use super::series::{Disturbance, Noise, Series, middle};

/// Runs at one number of threads.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// Threads, or CPUs.
    pub n: usize,
    /// Units of work that each run did.
    pub work: f64,
    /// The runs; at least one.
    pub runs: &'a [Facts],
}

/// Where the loss between two numbers of threads comes from.
#[derive(Debug, Clone, Serialize)]
pub struct Attribution {
    /// The smaller number.
    pub from_n: usize,
    /// The larger one.
    pub to_n: usize,
    /// Seconds of CPU and waiting for each unit of work, at both.
    pub cost_s_per_unit: [f64; 2],
    /// The share of the cost at the larger number that is loss.
    pub loss: f64,
    /// The share that is contention.
    pub sigma: f64,
    /// The share that is coherence.
    pub kappa: f64,
    /// The share that is lack of capacity.
    pub capacity: f64,
    /// `scales`, `contention`, `coherence` or `capacity`: what most of the loss is.
    pub verdict: &'static str,
    /// The reason for that.
    pub because: String,
    /// What to do.
    pub advice: String,
    /// The largest first.
    pub causes: Vec<LossCause>,
    /// What the reader should know about how far this can be trusted.
    pub notes: Vec<String>,
}

/// A function, lock or place whose cost for each unit of work grew.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LossCause {
    /// `sigma`, `kappa` or `capacity`.
    pub law: &'static str,
    /// `function`, `lock` or `wait-site`.
    pub what: &'static str,
    /// What it is called.
    pub name: String,
    /// In which process; empty for the program.
    pub process: String,
    /// `file.c:12`: where in it most of the growth is; empty if unknown.
    pub source: String,
    /// The instruction with most of the growth; empty if unknown.
    pub instruction: String,
    /// Seconds for each unit of work, at both numbers.
    pub s_per_unit: [f64; 2],
    /// Its growth as a share of the cost at the larger number.
    pub share: f64,
    /// The reason, with figures.
    pub because: String,
}

/// Loss below this share is none.
const SCALES: f64 = 0.1;
/// Causes below this share of the cost are not shown.
const SMALLEST: f64 = 0.03;
/// Standard deviations of noise from which on growth is shown.
const SHOWN: f64 = 2.0;
/// From this share of the growth on it is the atomic instructions, or the pause.
const MOST: f64 = 0.5;
/// An instruction whose share of the growth is above its share of the time before by this much grew by itself.
const ITSELF: f64 = 0.25;

/// Attributes what a unit of work costs more at `large` than at `small`. O(items).
pub fn attribute(small: &At, large: &At) -> Attribution {
    let case = Case::new(small, large);
    let mut causes = case.functions();
    causes.extend(case.waits());
    causes.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.name.cmp(&b.name)));
    let of_law = |law: &str| causes.iter().filter(|c| c.law == law).map(|c| c.share).fold(0.0, |a, b| a + b);
    let [sigma, kappa, capacity] = ["sigma", "kappa", "capacity"].map(of_law);
    let mut answer = Attribution {
        from_n: small.n,
        to_n: large.n,
        cost_s_per_unit: case.cost.map(|ns| ns / 1e9 / case.work),
        loss: 1.0 - case.cost[0] / case.cost[1].max(1.0),
        sigma,
        kappa,
        capacity,
        verdict: "scales",
        because: String::new(),
        advice: String::new(),
        causes,
        notes: case.notes(),
    };
    let largest = [(sigma, "contention"), (kappa, "coherence"), (capacity, "capacity")];
    let (most, verdict) = largest.into_iter().fold((0.0, "scales"), |a, b| if b.0 > a.0 { b } else { a });
    if most >= SCALES {
        answer.verdict = verdict;
    }
    answer.because = answer.reason();
    answer.advice = answer.what_to_do();
    answer
}

/// Both sides, in the work of the smaller number.
struct Case<'a> {
    sides: Sides<'a>,
    /// The same for CPU time.
    executed: Sides<'a>,
    work: f64,
    /// CPU time and waiting, at both numbers.
    cost: [f64; 2],
    held: BTreeMap<HeldKey, HeldItem>,
    by: Disturbance,
    period_ns: f64,
    /// The share of CPU time that the host left to the program, at the smaller number.
    received: f64,
}

impl<'a> Case<'a> {
    fn new(small: &At<'a>, large: &At<'a>) -> Self {
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
        Case { work: small.work, cost, held, by, period_ns, received: before, executed, sides }
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
    fn functions(&self) -> Vec<LossCause> {
        let by = Disturbance { stolen: 0.0, neighbours: self.by.neighbours.min(1.0), shift: self.by.shift.min(1.0) };
        let noise = Noise::cpu(by, self.period_ns);
        let functions: BTreeMap<Place, FunctionItem> =
            self.executed.functions().into_iter().map(|(place, item)| (place, item.times(self.received))).collect();
        let mut found = Vec::new();
        for (place, item) in &functions {
            if self.grew(&item.own, noise) {
                // What instructions do is told of compiled functions.
                let within = item.within.clone().map(|function| Place { function, ..place.clone() });
                let code = within.as_ref().and_then(|w| functions.get(w)).unwrap_or(item);
                found.push(self.worked(place, item, code.atomic.delta()));
            }
            if self.grew(&item.spin, noise) {
                found.push(self.spun(place, item));
            }
        }
        found
    }

    fn worked(&self, place: &Place, item: &FunctionItem, atomic: f64) -> LossCause {
        let factor = item.own.now() / item.own.was().max(self.period_ns);
        let (instruction, itself) = self.instruction(place, item);
        let atomic = atomic / item.own.delta();
        let more = format!("the same work takes {factor:.1}× as much CPU time here");
        let (law, because) = if atomic > MOST {
            let share = 100.0 * atomic.min(1.0);
            let why = "each CPU has to fetch a cache line that another one has just written";
            ("kappa", format!("{more}; {share:.0} % of the growth is on or behind atomic instructions: {why}"))
        } else if itself {
            let why = "memory that other CPUs write";
            ("kappa", format!("{more}, and the growth is at one instruction, which did not take that before: {why}"))
        } else {
            let why = "the CPUs share a core, a cache, memory or a clock, or there is more to do";
            ("capacity", format!("{more}, all of it alike: {why}"))
        };
        self.cause(law, "function", place, &item.own, instruction, because)
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
    fn waits(&self) -> Vec<LossCause> {
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
            facts.spots.iter().filter(|(s, _)| is_mine(s)).for_each(|(s, ns)| add((s.offset, s.text.clone()), *ns));
        });
        let sum = |of: fn(&Series) -> f64| spots.values().map(of).sum::<f64>().max(1.0);
        let (was, grown) = (sum(Series::was), sum(Series::delta));
        let most = spots.iter().max_by(|a, b| a.1.delta().total_cmp(&b.1.delta()));
        let Some(((offset, text), most)) = most.filter(|(_, s)| s.delta() > 0.0) else { return Default::default() };
        let itself = most.delta() / grown - most.was() / was >= ITSELF;
        (format!("{code}+{offset:#x}: {text}"), itself)
    }

    fn notes(&self) -> Vec<String> {
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
        for series in [&mut self.own, &mut self.spin, &mut self.pause, &mut self.atomic] {
            series.before.iter_mut().chain(&mut series.after).for_each(|value| *value *= factor);
        }
        self
    }
}

impl Attribution {
    fn what_to_do(&self) -> String {
        let law = match self.verdict {
            "contention" => "sigma",
            "coherence" => "kappa",
            other => other,
        };
        let first = self.causes.iter().find(|c| c.law == law);
        let who = first.map_or(String::new(), |c| match c.source.as_str() {
            "" => format!("`{}`", c.name),
            source => format!("`{}` ({source})", c.name),
        });
        match self.verdict {
            "contention" => format!(
                "Make what {who} does while others wait shorter, move it out of the lock, or split the data so that \
                 threads seldom need the same lock."
            ),
            "coherence" => format!(
                "Let each thread or CPU have its own of what {who} writes, and add up when it is read; the crate \
                 holdup-sync has such counters, cells and reference counts."
            ),
            "capacity" => format!(
                "No lock and no shared line: {who} takes longer because the CPUs share something. Look whether they are \
                 threads of one core (lscpu -e), and how much memory it walks through."
            ),
            _ => "The program itself scales: a unit of work costs about as much with many threads as with few."
                .to_owned(),
        }
    }

    fn reason(&self) -> String {
        let grown = self.cost_s_per_unit[1] / self.cost_s_per_unit[0].max(f64::MIN_POSITIVE);
        let cost = format!(
            "a unit of work costs {grown:.2}× as much CPU time and waiting with {} threads as with {}",
            self.to_n, self.from_n
        );
        let parts = [("contention (σ)", self.sigma), ("coherence (κ)", self.kappa), ("capacity", self.capacity)];
        let shares: Vec<String> = parts
            .into_iter()
            .filter(|(_, share)| *share >= SMALLEST)
            .map(|(name, share)| format!("{:.0} % of it is {name}", 100.0 * share))
            .collect();
        if shares.is_empty() { cost } else { format!("{cost}; {}", shares.join(", ")) }
    }
}
