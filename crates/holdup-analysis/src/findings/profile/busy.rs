//! What is said of a program that is simply busy.

use holdup_trace::{Amount, StackId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::super::below::Below;
use super::super::caveats;
use super::super::collecting::Collecting;
use super::super::context::Context;
use super::super::one_by_one::OneByOne;
use super::super::storm::Storm;
use super::super::{cache_line, idle, inside, work};
use super::pool::Pool;
use super::waited;
use crate::idiom::IdiomKind;
use crate::label;
use crate::report::{Confidence, Culprit, Finding, FindingKind};
use crate::runtime;

/// A function with less of the work than this is none to speak of.
const FLAT: f64 = 0.05;
/// A function with less of the work than this is not where most of it is done.
const SMALL: f64 = 0.25;
/// Fewer samples than this say little.
const FEW: f64 = 30.0;
/// The share of the CPUs that others use from which on they are worth a word.
const MANY_OTHERS: f64 = 0.25;
/// A thread with so much of the work did nearly all, and one that ran for so much of the time did so all the time.
const MOST: f64 = 0.9;
/// The share of the CPUs in use from which on none is left.
const FULLY: f64 = 0.9;

const FULL: &str =
    "There is no wait to mend: make this function faster, or call it less often, as all CPUs are in use.";
const FULL_OF_OTHERS: &str =
    "There is no wait to mend: make this function faster, or call it less often; other programs use the other CPUs.";

/// A program that is busy, and all that is known of its work. Times in nanoseconds.
pub(super) struct Busy<'c> {
    pub(super) context: &'c Context<'c>,
    /// What it ran, by stack.
    pub(super) samples: &'c FxHashMap<StackId, f64>,
    /// All that is sampled of the focus, and all that it ran.
    pub(super) total: f64,
    pub(super) running: f64,
    /// What the function that works most runs, and where.
    pub(super) below: Below,
    pub(super) found: Culprit,
    pub(super) storm: Option<Storm>,
    pub(super) one_by_one: Option<OneByOne>,
    pub(super) collection: Option<Collecting>,
    /// Whether threads waited for much beside it.
    pub(super) much_waited: bool,
}

impl Busy<'_> {
    /// All of it, of the `thread` that works most there.
    pub(super) fn finding(self, thread: ThreadIdx, charged: Amount) -> Finding {
        let (confidence, doubts) = self.certainty(charged);
        Finding {
            kind: FindingKind::CpuBound,
            title: self.title().into(),
            evidence: self.evidence(charged),
            advice: self.advice(thread),
            blame_cpu_s: self.seconds() * self.share(),
            culprit: self.found,
            confidence,
            doubts,
            ..Finding::default()
        }
    }

    /// The function's part of the work.
    fn share(&self) -> f64 {
        self.below.all / self.total.max(1.0)
    }

    fn seconds(&self) -> f64 {
        self.context.limits.of_cpus(Amount(self.running))
    }

    /// How many samples there are.
    fn count(&self) -> f64 {
        self.total / self.context.period().max(1.0)
    }

    fn name(&self) -> &str {
        if self.found.process.is_empty() { "the program" } else { &self.found.process }
    }

    /// The part of the work that goes into garbage collection, where it is most.
    fn mostly_collects(&self) -> Option<f64> {
        self.collection.as_ref().filter(|c| c.is_most()).map(|c| c.share)
    }

    fn title(&self) -> String {
        let (name, share, function) = (self.name(), self.share(), &self.found.function);
        let time = label::duration(self.seconds());
        // A function without a name, or with next to nothing of the work, is nothing to name in a headline.
        let mostly_in = || match function.as_str() {
            function if share >= FLAT && !function.is_empty() => {
                format!(", {:.0} % of it in {function}", 100.0 * share)
            }
            _ => String::new(),
        };
        if let Some(storm) = &self.storm {
            return storm.words(name) + &mostly_in();
        }
        if let Some(share) = self.mostly_collects() {
            return format!("{time} of CPU time went into work, {:.0} % of it into garbage collection", 100.0 * share);
        }
        if let Some(one_by_one) = &self.one_by_one {
            return format!("{}: {time} of CPU time{}", one_by_one.words(name), mostly_in());
        }
        if share < FLAT {
            let own = (self.samples.values().sum::<f64>() / self.total.max(1.0)).min(1.0);
            return format!(
                "{time} of CPU time went into work, {:.0} % of it in {name}, of which no function has much",
                100.0 * own
            );
        }
        format!("{time} of CPU time went into work, {:.0} % of it in {function} of {name}", 100.0 * share)
    }

    fn evidence(&self, charged: Amount) -> Vec<String> {
        let (context, count) = (self.context, self.count());
        let mut evidence = if caveats::has_switches(context) {
            let (peak, cpus) = (context.timeline.peak_parallelism(), context.timeline.cpus);
            let lost = label::duration(charged.seconds());
            let waits = if self.much_waited { "of what waited no cause matters much" } else { "next to nobody waited" };
            vec![
                format!("{count:.0} samples; {waits} ({lost} of CPU time)"),
                format!("at most {peak} threads worked at once on {cpus} CPUs"),
            ]
        } else {
            vec![format!("{count:.0} samples; who waited is not known")]
        };
        evidence.extend(self.below.evidence(context));
        evidence.extend(self.collection.iter().map(Collecting::line));
        evidence
    }

    fn advice(&self, thread: ThreadIdx) -> String {
        let of_work = self.advice_on_work(thread);
        let advice = match &self.collection {
            // What the program itself runs matters less.
            Some(collection) if collection.is_most() => collection.advice.clone(),
            Some(collection) => format!("{of_work} {}", collection.advice),
            None => of_work,
        };
        let advice = if self.much_waited { waited::beside(&advice) } else { advice };
        let (mask, naming) = (self.kept_from_cpus(thread), runtime::naming(&self.found.function));
        let sentences = [mask.as_str(), naming, &advice].into_iter().filter(|s| !s.is_empty());
        sentences.collect::<Vec<_>>().join(" ")
    }

    /// What is known of how it works, the special before the general.
    fn advice_on_work(&self, thread: ThreadIdx) -> String {
        let (context, below, function) = (self.context, &self.below, &self.found.function);
        let of_kernel = || below.known(function).map(|of_kernel| format!("{of_kernel} ")).unwrap_or_default();
        let in_turn = |one_by_one: &OneByOne| of_kernel() + &one_by_one.advice(function);
        let told = self.storm.as_ref().map(|storm| storm.advice.to_owned());
        let told = told.or_else(|| self.one_by_one.as_ref().map(in_turn));
        let told = told.or_else(|| work::advice(context, self.samples));
        let told = told.or_else(|| inside::busy(context, self.samples, function));
        let told = told.or_else(|| cache_line::mostly(context, self.samples)).or_else(|| self.updated());
        match told.or_else(|| below.advice(context, function)) {
            Some(advice) => advice,
            None if is_full(context) && is_full_of_others(context) => FULL_OF_OTHERS.to_owned(),
            None if is_full(context) => FULL.to_owned(),
            None => match Pool::beside(context, thread, self.samples) {
                Some(pool) => {
                    pool.advice(context, self.name(), if function.is_empty() { "this code" } else { function })
                }
                None => {
                    let over = runtime::spread_over(&self.found.module, function);
                    let why = self.alone(thread).unwrap_or_else(|| "There is no wait to mend".to_owned());
                    format!("{why}: make this function faster, or spread its work over more {over}.")
                }
            },
        }
    }

    /// What is said of a loop that changes one place in memory in each turn, while another thread may do so beside it.
    fn updated(&self) -> Option<String> {
        let facts = self.found.instruction.as_ref()?.idiom.as_ref()?;
        let is_it =
            facts.kind == IdiomKind::Update && facts.share > SMALL && self.context.timeline.peak_parallelism() > 1;
        is_it.then(|| format!("{}.", facts.sentence()))
    }

    /// That one of several threads did nearly all of it, and had a CPU all the time.
    fn alone(&self, thread: ThreadIdx) -> Option<String> {
        let context = self.context;
        let (from, to) = context.blame.window;
        let ran = context.ran(thread).0 as f64;
        let others = context.threads().filter(|t| context.focus.contains(*t) && *t != thread).count();
        let is_it = others > 0 && ran > MOST * self.running && (to, from) == (context.timeline.end, 0);
        let share = ran / (to - from).max(1) as f64;
        (is_it && share > MOST).then(|| {
            let name = context.thread_name(thread);
            format!(
                "One thread of {} ({name}) did nearly all of it, and ran for {:.0} % of the time",
                self.name(),
                100.0 * share
            )
        })
    }

    /// Says so where a mask leaves CPUs unused: a program may have begun no more threads than it has CPUs.
    fn kept_from_cpus(&self, thread: ThreadIdx) -> String {
        let mask = self.context.timeline.affinity.restricted(thread).filter(|_| !is_full(self.context));
        let name = self.name();
        mask.map_or(String::new(), |cpus| {
            format!("{name} may run on CPU {cpus} alone (taskset, cpuset): widen that, if it could use more.")
        })
    }

    /// How far it can be believed that the samples tell what matters, and that the function does.
    fn certainty(&self, charged: Amount) -> (Confidence, Vec<String>) {
        let (mut confidence, mut doubts) = self.of_samples();
        if self.much_waited {
            confidence = confidence.max(Confidence::Medium);
            let waited = label::duration(charged.seconds());
            doubts.push(format!("threads waited for {waited} of CPU time in all, too, for several causes"));
        }
        (confidence, doubts)
    }

    fn of_samples(&self) -> (Confidence, Vec<String>) {
        let (context, count, share) = (self.context, self.count(), self.share());
        if count < FEW {
            return (Confidence::Low, vec![format!("{count:.0} samples are few")]);
        }
        if share < SMALL {
            let doubt = format!("{:.0} % of the work is elsewhere, or has no names", 100.0 * (1.0 - share));
            return (Confidence::Medium, vec![doubt]);
        }
        let seldom = || idle::is_seldom_active(context, &context.cpu_seconds()) || idle::ran_seldom(context);
        if caveats::has_switches(context) && seldom() {
            let doubt = "for more than half of the time nobody had anything to do: the input may matter more";
            return (Confidence::Medium, vec![doubt.to_owned()]);
        }
        (Confidence::High, Vec::new())
    }
}

/// Whether no CPU is left to spread the work over.
fn is_full(context: &Context) -> bool {
    let cpu = context.cpu_seconds();
    caveats::has_switches(context) && cpu.busy + cpu.spin + cpu.other >= FULLY * cpu.total
}

/// Whether it is other programs that use most of what this one does not.
fn is_full_of_others(context: &Context) -> bool {
    let cpu = context.cpu_seconds();
    cpu.other >= MANY_OTHERS * cpu.total
}
