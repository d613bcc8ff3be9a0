//! What takes more CPU time, and what its instructions say of the reason.

use std::collections::BTreeMap;

use super::case::Case;
use super::{Law, LossCause, LossSite};
use crate::diff::facts::{Place, Spot};
use crate::diff::functions::FunctionItem;
use crate::diff::series::{Disturbance, Noise, Series};

/// From this share of the growth on it is the atomic instructions, or the pause.
const MOST: f64 = 0.5;
/// From this share of the growth on it is the kernel's waiting for other CPUs.
const PART: f64 = 0.25;
/// An instruction whose share of the growth is above its share of the time before by this much grew by itself.
const ITSELF: f64 = 0.25;
/// What takes longer than arithmetic by more than this factor has other reasons than arithmetic.
const BEYOND: f64 = 1.25;
/// Up to this, arithmetic explains it.
const NEARLY: f64 = 1.1;

impl Case<'_> {
    /// What takes more CPU time.
    pub(super) fn functions(&self) -> Vec<LossCause> {
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
                found.push(self.worked(place, item, code));
            }
            if self.grew(&item.spin, noise) {
                found.push(self.spun(place, item));
            }
        }
        found
    }

    /// `code` is the compiled function that it is part of: what instructions do is told of these.
    fn worked(&self, place: &Place, item: &FunctionItem, code: &FunctionItem) -> LossCause {
        let grown = item.own.delta();
        let factor = item.own.now() / item.own.was().max(self.period_ns);
        let (instruction, itself) = self.instruction(place, item);
        let more = if item.own.was() < self.period_ns {
            "it took next to nothing before".to_owned()
        } else {
            format!("the same work takes {factor:.1}× as much CPU time here")
        };
        let (atomic, memory) = (code.atomic.delta() / grown, code.memory.delta() / grown);
        let (kernel, interrupt) = (code.kernel.delta() / grown, code.interrupt.delta() / grown);
        let locks = 1.0 - item.work.delta() / grown;
        let percent = |share: f64| 100.0 * share.min(1.0);
        let lock_code = locks > MOST || (kernel > MOST && locks > interrupt.max(PART));
        let (law, because) = if lock_code {
            let why = "to take and to let go of a lock costs more when others wait for it";
            (Law::Sigma, format!("{why}: {:.0} % of the growth is the lock's own code", percent(locks)))
        } else if interrupt > PART {
            let why = "the kernel interrupts the other CPUs and waits for their answers";
            (Law::Kappa, format!("{more}; {:.0} % of the growth is where {why}", percent(interrupt)))
        } else if kernel > MOST {
            // Arithmetic does not take longer, so it is no core or clock that is shared, but what the kernel writes.
            let shares = self.machine.arithmetic.is_some_and(|a| factor > BEYOND * a.max(1.0));
            let law = if shares { Law::Kappa } else { Law::Capacity };
            let why = if shares { ", whose own data all threads change there" } else { "" };
            (law, format!("{more}; {:.0} % of the growth is in the kernel{why}", percent(kernel)))
        } else if atomic > MOST {
            let why = "each CPU has to fetch a cache line that another one has just written";
            (
                Law::Kappa,
                format!("{more}; {:.0} % of the growth is on or behind atomic instructions: {why}", percent(atomic)),
            )
        } else if itself {
            let why = "memory that other CPUs write";
            (Law::Kappa, format!("{more}, and the growth is at one instruction, which did not take that before: {why}"))
        } else {
            let (law, why) = self.alike(factor, memory);
            (law, format!("{more}, all of it alike: {why}"))
        };
        LossCause {
            lock_code,
            in_kernel: kernel > MOST,
            ..self.cause(law, LossSite::Function, place, &item.own, instruction, because)
        }
    }

    /// Why all of a function takes longer by this factor, of which growth so much is where it touches memory.
    fn alike(&self, factor: f64, memory: f64) -> (Law, String) {
        let Some(arithmetic) = self.machine.arithmetic else {
            return (
                Law::Capacity,
                "the CPUs share a core, a cache, memory or a clock, or there is more to do".to_owned(),
            );
        };
        let known = format!("arithmetic takes {arithmetic:.2}× as much meanwhile");
        if factor <= BEYOND * arithmetic.max(1.0) {
            let more = if factor > NEARLY * arithmetic.max(1.0) { ", and something makes up the rest" } else { "" };
            return (
                Law::Capacity,
                format!("{known}: the CPUs share a core or a clock, or the host takes them away{more}"),
            );
        }
        let touching =
            format!("{known}, and {:.0} % of the growth is where memory is touched", 100.0 * memory.min(1.0));
        match self.machine.fits_cache {
            Some(true) if memory > MOST => (
                Law::Kappa,
                format!("{touching}, all of which has room in the cache: others write the same lines (false sharing)"),
            ),
            _ if memory > MOST => (
                Law::Capacity,
                format!(
                    "{touching}: caches or memory are too small or too slow for all, or others write the same lines"
                ),
            ),
            _ => (Law::Capacity, format!("{known}: a cache or memory is shared, or there is more to do")),
        }
    }

    fn spun(&self, place: &Place, item: &FunctionItem) -> LossCause {
        let (instruction, _) = self.instruction(place, item);
        let of = |part: &Series| part.delta() / item.spin.delta();
        let (law, because) = if of(&item.pause) < MOST && of(&item.atomic) > MOST {
            (Law::Kappa, "it tries again and again to change a cache line that other CPUs change meanwhile")
        } else {
            (Law::Sigma, "threads spin here until another one is done: waiting that uses CPU time")
        };
        self.cause(law, LossSite::Function, place, &item.spin, instruction, because.to_owned())
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
        // What is seen of instructions says nothing of growth in the kernel, of which none are.
        if grown < MOST * item.own.delta().max(item.spin.delta()) {
            return Default::default();
        }
        let itself = most.delta() / grown - most.was() / was >= ITSELF;
        (format!("{code}+{offset:#x}: {text}"), itself)
    }
}

impl FunctionItem {
    fn times(mut self, factor: f64) -> FunctionItem {
        let FunctionItem { own, spin, pause, atomic, memory, kernel, interrupt, work, within: _ } = &mut self;
        for series in [own, spin, pause, atomic, memory, kernel, interrupt, work] {
            series.scale(factor, factor);
        }
        self
    }
}
