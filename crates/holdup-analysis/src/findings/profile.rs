//! What the program did with the CPU time that it had.

use holdup_trace::tables::LocationRow;
use holdup_trace::{Amount, StackId, StringId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::below::Below;
use super::caveats;
use super::context::Context;
use super::one_by_one::OneByOne;
use super::place::{self, is_on};
use super::storm::Storm;
use super::{cache_line, collecting, culprit, idle, inside, instruction, work};
use crate::label;
use crate::replay::Taken;
use crate::report::{Confidence, Finding, FindingKind};
use crate::runtime;

mod waited;

pub(super) use waited::Waited;

/// Below this share of the CPU time, being held up does not matter beside being busy.
const MINOR: f64 = 0.1;

/// From this share of the CPU time on, what a thread, a lock or a cache line kept others waiting is worth more than to know what ran: with more CPUs
/// it will be more. Not so what comes from outside of the program (a disk, a time, a neighbour), nor the price of having several threads and
/// CPUs (waking up, and that a scheduler does not find each idle CPU at once): that does not matter beside being busy below [`MINOR`].
const NOTABLE: f64 = 0.05;

/// What may be by design, or may be something else, does not matter below this.
const DOUBTFUL: f64 = 0.25;

/// Below this part of the CPU time of processes that come and go, spinning is part of what starting them costs: for the kernel's lists of them.
const STORMY: f64 = 0.5;

/// Of such, to miss a CPU, or to wait for each other, for less than this part of what they work.
const STARVED: f64 = 0.25;

/// Whether a cause of this size adds up with others beside what ran. The waking up of threads is the price of each hand-over: several ways to pay it
/// are not added up, and of processes that come and go it is part of what starting them costs.
pub(super) fn adds_up(context: &Context, kind: FindingKind, rank: Amount, storm: bool) -> bool {
    match kind {
        FindingKind::WakeLatency => !storm && rank.0 > DOUBTFUL * context.blame.cpu.running,
        FindingKind::RunnableWhileIdle => !storm,
        // The kernel's threads clean up behind those that ended.
        FindingKind::CpuStarved => !storm || rank.0 > STARVED * context.blame.cpu.running,
        _ => true,
    }
}

/// The program in focus with the most samples.
pub(super) struct Busiest {
    program: StringId,
    /// What it ran, in nanoseconds by stack.
    samples: FxHashMap<StackId, f64>,
    /// Where it is many short-lived processes.
    storm: Option<Storm>,
}

impl Busiest {
    /// O(samples).
    pub(super) fn of(context: &Context) -> Option<Busiest> {
        let program = busiest_program(context)?;
        let samples = samples_of(context, program);
        let own = context.limits.of_cpus(Amount(samples.values().sum()));
        Some(Busiest { program, samples, storm: Storm::of(context, program, own) })
    }

    pub(super) fn is_stormy(&self) -> bool {
        self.storm.is_some()
    }
}

/// Whether a finding is worth more than to know what ran, such as cache lines that travel.
pub(super) fn matters(context: &Context, finding: &Finding) -> bool {
    use FindingKind::{CpuStarved, Disk, Network, OwnerNotRunning, RunnableWhileIdle, SleepPolling, WakeLatency};
    let is_waking = matches!(finding.kind, WakeLatency | RunnableWhileIdle);
    let is_price = finding.kind == OwnerNotRunning;
    let is_outside = matches!(finding.kind, CpuStarved | Disk | Network | SleepPolling);
    let is_alone = finding.kind == FindingKind::Serial && finding.waiters.waits == 0;
    // What happens once, such as when it begins.
    let is_short = finding.lasted_s > 0.0 && finding.lasted_s < MINOR * context.duration().seconds();
    let least = match finding.confidence {
        Confidence::Low => DOUBTFUL,
        _ if is_waking => DOUBTFUL,
        _ if is_price || is_outside || is_alone || is_short => MINOR,
        _ => NOTABLE,
    };
    let running = context.limits.of_cpus(Amount(running(context)));
    finding.kind != FindingKind::IdleByDesign && finding.blame_cpu_s >= least * running
}

/// Puts what ran into its place, and what is less behind it.
pub(super) fn insert(
    context: &Context,
    (first, mut busy): (bool, Finding),
    findings: &mut Vec<(Finding, Option<Taken>)>,
) {
    waited::say_who(context, &mut busy, findings);
    let last = findings.iter().rposition(|(f, _)| !first && matters(context, f));
    let rest = findings.split_off(last.map_or(0, |last| last + 1));
    let (minor, before): (Vec<_>, Vec<_>) = findings.drain(..).partition(|(f, _)| f.is_cause() && !matters(context, f));
    findings.extend(before.into_iter().chain([(busy, None)]).chain(minor).chain(rest));
}

/// To mend a cause with a lower bound than this saves little,
const LITTLE: f64 = 1.1;
/// where what ran takes this share of the CPU time that there is.
const MOST: f64 = 0.5;

/// What ran comes before causes of which each would save little. O(findings).
pub(super) fn put_first(findings: &mut [Finding], cpu: f64) {
    let Some(at) = findings.iter().position(|f| f.kind == FindingKind::CpuBound) else { return };
    let saves_little = |f: &Finding| f.gain_at_most.is_some_and(|gain| gain < LITTLE);
    if findings[at].blame_cpu_s >= MOST * Amount(cpu).seconds() && findings[..at].iter().all(saves_little) {
        findings[..=at].rotate_right(1);
    }
}

/// What ran: without switches samples alone say who did.
fn running(context: &Context) -> f64 {
    if caveats::has_switches(context) { context.blame.cpu.running } else { sampled(context) }
}

fn sampled(context: &Context) -> f64 {
    context.blame.profile.iter().filter(|((t, _), _)| context.focus.contains(*t)).map(|(_, w)| w).sum()
}

/// The finding of a program that is simply busy, and whether it comes before all others: what is waited for between processes that come and
/// go is part of what starting them costs. Else it stands behind all that [matter](matters). None where spinning, or waits that are told,
/// take a part of the time that work takes, unless work takes most of the CPU time that there is and each of these causes little.
pub(super) fn cpu_bound(context: &Context, busiest: Busiest, waited: &Waited) -> Option<(bool, Finding)> {
    let (total, running) = (sampled(context), running(context));
    let spun = context.blame.cpu.spin + cache_line::known(context);
    let Busiest { program, samples, storm } = busiest;
    let (told, most) = if storm.is_some() { (STARVED, STORMY) } else { (MINOR, MINOR) };
    let much_waited = waited.shown.0 > told * running || waited.shown.0 + spun > most * running;
    let mostly_works = waited.none_matters && running >= MOST * context.blame.cpu.total;
    if running <= 0.0 || much_waited && !mostly_works {
        return None;
    }
    let location = culprit::specific(context, &samples).or_else(|| widest(context, &samples));
    let location = location.map(|l| own_part(context, &samples, &l).unwrap_or(l));
    let ran = |stack: StackId| location.is_none_or(|l| is_on(context, stack, &l));
    let nameless = inside::stands_for(context, &samples);
    if location.is_none() && nameless.is_empty() {
        return None;
    }
    let thread = busiest_in(context, program, ran)?;
    let mut found = culprit::of_thread(context, thread);
    found.function = nameless.to_owned();
    if let Some(location) = location.filter(|l| !culprit::runs_anything(context, l)) {
        found.function = context.trace.text(location.function).to_owned();
        found.module = context.trace.text(location.module).to_owned();
        found.source = context.source(&location);
        found.called_by = culprit::called_by(context, &samples, &location).unwrap_or_default();
        found.instruction = instruction::hottest(context.trace, context.disassembler, &samples, location.function);
    }
    let below = Below::of(context, samples.iter().filter(|(s, _)| ran(**s)));
    let inside = below.all;
    let seconds = context.limits.of_cpus(Amount(running));
    let share = inside / total.max(1.0);
    let name = if found.process.is_empty() { "the program" } else { &found.process };
    let count = total / context.period().max(1.0);
    let mut evidence = if caveats::has_switches(context) {
        let (peak, cpus) = (context.timeline.peak_parallelism(), context.timeline.cpus);
        let lost = label::duration(waited.charged.seconds());
        let waits = if much_waited { "of what waited no cause matters much" } else { "next to nobody waited" };
        vec![
            format!("{count:.0} samples; {waits} ({lost} of CPU time)"),
            format!("at most {peak} threads worked at once on {cpus} CPUs"),
        ]
    } else {
        vec![format!("{count:.0} samples; who waited is not known")]
    };
    evidence.extend(below.evidence(context));
    let collection = collecting::of(context);
    evidence.extend(collection.iter().map(collecting::Collecting::line));
    let one_by_one = if storm.is_none() { OneByOne::of(context, program) } else { None };
    let told = storm.as_ref().map(|storm| storm.advice.to_owned());
    let of_kernel = || below.known(&found.function).map(|of_kernel| format!("{of_kernel} ")).unwrap_or_default();
    let in_turn = |one_by_one: &OneByOne| of_kernel() + &one_by_one.advice(&found.function);
    let told = told.or_else(|| one_by_one.as_ref().map(in_turn));
    let told = told.or_else(|| work::advice(context, &samples));
    let told = told.or_else(|| inside::busy(context, &samples, &found.function));
    let advice = match told.or_else(|| below.advice(&found.function)) {
        Some(advice) => advice,
        None if is_full(context) && is_full_of_others(context) => FULL_OF_OTHERS.to_owned(),
        None if is_full(context) => FULL.to_owned(),
        None => FASTER.to_owned(),
    };
    let mostly = collection.as_ref().filter(|c| c.is_most()).map(|c| c.share);
    let advice = match collection {
        // What the program itself runs matters less.
        Some(collection) if mostly.is_some() => collection.advice,
        Some(collection) => format!("{advice} {}", collection.advice),
        None => advice,
    };
    let advice = if much_waited { waited::beside(&advice) } else { advice };
    let mask = kept_from_cpus(context, thread, name);
    let sentences = [mask.as_str(), runtime::naming(&found.function), &advice].into_iter().filter(|s| !s.is_empty());
    let advice = sentences.collect::<Vec<_>>().join(" ");
    let (mut confidence, mut doubts) = certainty(context, count, share);
    if much_waited {
        confidence = confidence.max(Confidence::Medium);
        doubts.push(format!(
            "threads waited for {} of CPU time in all, too, for several causes",
            label::duration(waited.charged.seconds())
        ));
    }
    // A function without a name, or with next to nothing of the work, is nothing to name in a headline.
    let mostly_in = match found.function.as_str() {
        function if share >= FLAT && !function.is_empty() => format!(", {:.0} % of it in {function}", 100.0 * share),
        _ => String::new(),
    };
    let busy = Finding {
        kind: FindingKind::CpuBound,
        title: match (&storm, mostly, &one_by_one) {
            (Some(storm), _, _) => storm.words(name) + &mostly_in,
            (None, Some(share), _) => format!(
                "{} of CPU time went into work, {:.0} % of it into garbage collection",
                label::duration(seconds),
                100.0 * share
            ),
            (None, None, Some(one_by_one)) => {
                format!("{}: {} of CPU time{mostly_in}", one_by_one.words(name), label::duration(seconds))
            }
            (None, None, None) if share < FLAT => {
                let own = samples.values().sum::<f64>() / total.max(1.0);
                format!(
                    "{} of CPU time went into work, {:.0} % of it in {name}, of which no function has much",
                    label::duration(seconds),
                    100.0 * own.min(1.0)
                )
            }
            (None, None, None) => format!(
                "{} of CPU time went into work, {:.0} % of it in {} of {name}",
                label::duration(seconds),
                100.0 * share,
                found.function
            ),
        }
        .into(),
        evidence,
        advice,
        culprit: found,
        blame_cpu_s: seconds * share,
        confidence,
        doubts,
        ..Finding::default()
    };
    Some((storm.is_some(), busy))
}

/// Says so where a mask leaves CPUs unused: a program may have begun no more threads than it has CPUs.
fn kept_from_cpus(context: &Context, thread: ThreadIdx, name: &str) -> String {
    let mask = context.timeline.affinity.restricted(thread).filter(|_| !is_full(context));
    mask.map_or(String::new(), |cpus| {
        format!("{name} may run on CPU {cpus} alone (taskset, cpuset): widen that, if it could use more.")
    })
}

/// A function with less of the work than this is none to speak of.
const FLAT: f64 = 0.05;
/// A function with less of the work than this is not where most of it is done.
const SMALL: f64 = 0.25;

/// How far it can be believed that `samples` tell what matters, and that a function with such a `share` of them does.
fn certainty(context: &Context, samples: f64, share: f64) -> (Confidence, Vec<String>) {
    if samples < 30.0 {
        return (Confidence::Low, vec![format!("{samples:.0} samples are few")]);
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

/// The share of the CPUs that others use from which on they are worth a word.
const MANY_OTHERS: f64 = 0.25;
/// The share of the CPUs in use from which on none is left.
const FULLY: f64 = 0.9;

const NO_WAIT: &str = "There is no wait to mend: ";
const FULL: &str =
    "There is no wait to mend: make this function faster, or call it less often, as all CPUs are in use.";
const FULL_OF_OTHERS: &str =
    "There is no wait to mend: make this function faster, or call it less often; other programs use the other CPUs.";
const FASTER: &str = "There is no wait to mend: make this function faster, or spread its work over more threads.";

fn busiest_program(context: &Context) -> Option<StringId> {
    let mut programs: FxHashMap<StringId, f64> = FxHashMap::default();
    for ((thread, _), weight) in &context.blame.profile {
        if context.focus.contains(*thread) {
            *programs.entry(context.program(*thread)).or_default() += weight;
        }
    }
    programs.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(program, _)| program)
}

/// What the program ran, as far as it is in focus.
fn samples_of(context: &Context, program: StringId) -> FxHashMap<StackId, f64> {
    let mut samples: FxHashMap<StackId, f64> = FxHashMap::default();
    for ((thread, stack), weight) in &context.blame.profile {
        if context.focus.contains(*thread) && context.program(*thread) == program {
            *samples.entry(*stack).or_default() += weight;
        }
    }
    samples
}

/// The program's thread in focus that ran most of the stacks that `ran` picks.
fn busiest_in(context: &Context, program: StringId, ran: impl Fn(StackId) -> bool) -> Option<ThreadIdx> {
    let mut threads: FxHashMap<ThreadIdx, f64> = FxHashMap::default();
    for ((thread, stack), weight) in &context.blame.profile {
        let own = context.focus.contains(*thread) && context.program(*thread) == program;
        if own && ran(*stack) {
            *threads.entry(*thread).or_default() += weight;
        }
    }
    threads.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(thread, _)| thread)
}

/// From this share of the work on, a function of the program's own tells more than one of a package around it, which calls all of them.
const OWN: f64 = 0.2;

/// If a function is of a package that was installed for the program: the one of its own that works most below where the program begins.
fn own_part(context: &Context, samples: &FxHashMap<StackId, f64>, location: &LocationRow) -> Option<LocationRow> {
    if !runtime::is_installed(context.trace.text(location.module)) {
        return None;
    }
    let mut functions: FxHashMap<StringId, (f64, LocationRow)> = FxHashMap::default();
    for (&stack, weight) in samples {
        let mut frames = place::own_frames(context, stack).map(|(_, l)| l);
        if let (Some(own), Some(_)) = (frames.next(), frames.next()) {
            functions.entry(own.function).or_insert((0.0, own)).0 += weight;
        }
    }
    let all: f64 = samples.values().sum();
    let most = functions.into_values().max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.function.cmp(&a.1.function)));
    most.filter(|(weight, _)| *weight >= OWN * all).map(|(_, own)| own)
}

/// Where no function covers most of the samples: the one with the most in its own frame or inlined there.
fn widest(context: &Context, samples: &FxHashMap<StackId, f64>) -> Option<LocationRow> {
    let mut functions: FxHashMap<_, (f64, Option<_>)> = FxHashMap::default();
    for (&stack, weight) in samples {
        if let Some(l) = place::place(context, stack) {
            let entry = functions.entry(l.function).or_insert((0.0, None));
            entry.0 += weight;
            entry.1 = Some(l);
        }
    }
    functions.into_iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0).then(b.0.cmp(&a.0))).and_then(|(_, (_, l))| l)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_comes_before_what_would_save_little() {
        let of = |kind, blame_cpu_s, gain_at_most| Finding { kind, blame_cpu_s, gain_at_most, ..Finding::default() };
        let first = |gain, ran| {
            let mut all = [of(FindingKind::LockHeld, 0.2, gain), of(FindingKind::CpuBound, ran, None)];
            put_first(&mut all, 2e9);
            all[0].kind
        };
        assert_eq!(first(Some(1.09), 1.8), FindingKind::CpuBound);
        assert_eq!(first(Some(1.3), 1.8), FindingKind::LockHeld, "that is worth it");
        assert_eq!(first(Some(1.09), 0.6), FindingKind::LockHeld, "it has not run for most of the time");
        assert_eq!(first(None, 1.8), FindingKind::LockHeld, "nobody knows");
    }
}
