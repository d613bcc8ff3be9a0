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
use super::tally::{Group, Tally};
use super::{cache_line, collecting, culprit, group, inside, instruction, look, order};
use crate::replay::Taken;
use crate::report::{Confidence, Finding, FindingKind};
use crate::runtime;

mod busy;
mod pool;
mod waited;

use busy::Busy;
pub(super) use waited::{NO_WAIT, Waited};

/// Below this share of the CPU time, being held up does not matter beside being busy.
const MINOR: f64 = 0.1;

/// From this share of the CPU time on, what a thread, a lock or a cache line kept others waiting is worth more than to know what ran: with more CPUs
/// it will be more. Not so what comes from outside of the program (a disk, a time, a neighbour), nor the price of having several threads and
/// CPUs (waking up, and that a scheduler does not find each idle CPU at once): that does not matter beside being busy below [`MINOR`].
const NOTABLE: f64 = 0.05;

/// What may be by design, or may be something else, does not matter below this.
const DOUBTFUL: f64 = 0.25;

/// The waking up of threads, which is the price of whatever is handed over, does not matter below this.
const PRICE: f64 = 3.0 / 8.0;

/// Below this part of the CPU time of processes that come and go, spinning is part of what starting them costs: for the kernel's lists of them.
const STORMY: f64 = 0.5;

/// Of such, to miss a CPU, or to wait for each other, for less than this part of what they work.
const STARVED: f64 = 0.25;

/// Whether what is charged to a group adds up with others beside what ran. The waking up of threads is the price of each hand-over: several ways to
/// pay it are not added up, and of processes that come and go it is part of what starting them costs. To miss a CPU is no wait for anybody, and
/// nobody waits for who works alone, or looks whether others that work are done.
pub(super) fn adds_up(context: &Context, group: &Group, tally: &Tally, storm: bool) -> bool {
    let is_much = |share: f64| tally.rank.0 > share * context.blame.cpu.running;
    match group::kind(context, group, tally) {
        FindingKind::WakeLatency => !storm && is_much(PRICE),
        FindingKind::RunnableWhileIdle => !storm,
        // The kernel's threads clean up behind those that ended.
        FindingKind::CpuStarved => is_much(STARVED),
        FindingKind::Serial => storm || tally.waits > 0,
        FindingKind::SleepPolling => !look::is_one(context, group, tally),
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
    let is_for_cpu = matches!(finding.kind, RunnableWhileIdle | CpuStarved);
    let is_price = finding.kind == OwnerNotRunning;
    let is_outside = matches!(finding.kind, Disk | Network | SleepPolling);
    let is_alone = is_alone(finding);
    // What happens once, such as when it begins.
    let is_short = finding.lasted_s > 0.0 && finding.lasted_s < MINOR * context.duration().seconds();
    let least = match finding.confidence {
        _ if finding.kind == WakeLatency => PRICE,
        Confidence::Low => DOUBTFUL,
        _ if is_for_cpu => DOUBTFUL,
        _ if is_price || is_outside || is_alone || is_short => MINOR,
        _ => NOTABLE,
    };
    let running = context.limits.of_cpus(Amount(running(context)));
    let matters = finding.kind != FindingKind::IdleByDesign && !finding.about.looks;
    matters && finding.blame_cpu_s >= least * running
}

/// Whether it works alone, and nobody waits for it.
fn is_alone(finding: &Finding) -> bool {
    finding.kind == FindingKind::Serial && finding.waiters.waits == 0
}

/// What works alone for this part of all that it works and more does nothing else; for less, to know that says less than to know all.
const PART: f64 = 0.5;

/// What a program did with its CPU time.
pub(super) struct Profile {
    /// Whether it comes before all others.
    first: bool,
    finding: Finding,
    /// What it ran, in nanoseconds by stack.
    samples: FxHashMap<StackId, f64>,
}

impl Profile {
    /// Whether others wait for a part of the same work that is small beside all of it: when it begins and ends, or while its threads have
    /// unequal shares. O(stacks × depth) for those that may be.
    fn has_at_its_edge(&self, context: &Context, f: &Finding) -> bool {
        let is_small = f.blame_cpu_s < DOUBTFUL * self.finding.blame_cpu_s;
        let may_be = f.kind == FindingKind::Serial && f.culprit.process == self.finding.culprit.process;
        may_be && is_small && self.share_of(context, &f.culprit.function) >= PART
    }

    /// Which share of it is below a function.
    fn share_of(&self, context: &Context, function: &str) -> f64 {
        let has = |stack| place::has(context, stack, |name| name == function);
        let below: f64 = self.samples.iter().filter(|(stack, _)| has(**stack)).map(|(_, weight)| weight).sum();
        below / self.samples.values().sum::<f64>().max(1.0)
    }
}

/// Puts what ran into its place, and what is less behind it.
pub(super) fn insert(context: &Context, mut profile: Profile, findings: &mut Vec<(Finding, Option<Taken>)>) {
    waited::say_who(context, &mut profile.finding, findings);
    let busy = &profile.finding;
    let of = |f: &Finding| (f.culprit.process.clone(), f.culprit.function.clone());
    let is_it = |f: &Finding| is_alone(f) && of(f) == of(busy);
    let is_most = |f: &Finding| f.blame_cpu_s >= PART * busy.blame_cpu_s;
    if !profile.first && findings.iter().any(|(f, _)| is_it(f) && is_most(f)) {
        return;
    }
    let matters = |f: &Finding| matters(context, f) && !is_it(f) && !profile.has_at_its_edge(context, f);
    let last = findings.iter().rposition(|(f, _)| !profile.first && matters(f));
    let rest = findings.split_off(last.map_or(0, |last| last + 1));
    let (minor, before): (Vec<_>, Vec<_>) = findings.drain(..).partition(|(f, _)| f.is_cause() && !matters(f));
    findings.extend(before.into_iter().chain([(profile.finding, None)]).chain(minor).chain(rest));
}

/// What ran: without switches samples alone say who did.
fn running(context: &Context) -> f64 {
    if caveats::has_switches(context) { context.blame.cpu.running } else { sampled(context) }
}

fn sampled(context: &Context) -> f64 {
    context.profile().map(|(.., weight)| weight).sum()
}

/// The finding of a program that is simply busy, and whether it comes before all others: what is waited for between processes that come and
/// go is part of what starting them costs. Else it stands behind all that [matter](matters). None where spinning, or waits that are told,
/// take a part of the time that work takes, unless work takes most of the CPU time that there is and each of these causes little.
pub(super) fn cpu_bound(context: &Context, busiest: Busiest, waited: &Waited) -> Option<Profile> {
    let (total, running) = (sampled(context), running(context));
    let spun = context.blame.cpu.spin + cache_line::known(context);
    let Busiest { program, samples, storm } = busiest;
    let (told, most) = if storm.is_some() { (STARVED, STORMY) } else { (MINOR, MINOR) };
    let much_spun = waited.spun_s > most * Amount(running).seconds();
    let much_waited = waited.shown.0 > told * running || waited.shown.0 + spun > most * running || much_spun;
    let mostly_works = waited.none_matters && running >= order::MOST * context.blame.cpu.total;
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
    // What stands for code without names says more than that it has none.
    let tells =
        |l: &LocationRow| !culprit::runs_anything(context, l) && (nameless.is_empty() || !culprit::is_made(context, l));
    if let Some(location) = location.filter(tells) {
        culprit::tell_function(context, &mut found, &[&samples], &location);
        found.instruction = instruction::hottest(context.trace, context.disassembler, &samples, location.function);
    }
    let below = Below::of(context, samples.iter().filter(|(s, _)| ran(**s)));
    let one_by_one = if storm.is_none() { OneByOne::of(context, program) } else { None };
    let collection = collecting::of_program(context, program);
    let busy =
        Busy { context, samples: &samples, total, running, below, found, storm, one_by_one, collection, much_waited };
    let (first, finding) = (busy.storm.is_some(), busy.finding(thread, waited.charged));
    Some(Profile { first, finding, samples })
}

fn busiest_program(context: &Context) -> Option<StringId> {
    let mut programs: FxHashMap<StringId, f64> = FxHashMap::default();
    for (thread, _, weight) in context.profile() {
        *programs.entry(context.program(thread)).or_default() += weight;
    }
    programs.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(program, _)| program)
}

/// What the program ran, as far as it is in focus.
fn samples_of(context: &Context, program: StringId) -> FxHashMap<StackId, f64> {
    let mut samples: FxHashMap<StackId, f64> = FxHashMap::default();
    for (_, stack, weight) in context.profile().filter(|(thread, ..)| context.program(*thread) == program) {
        *samples.entry(stack).or_default() += weight;
    }
    samples
}

/// The program's thread in focus that ran most of the stacks that `ran` picks.
fn busiest_in(context: &Context, program: StringId, ran: impl Fn(StackId) -> bool) -> Option<ThreadIdx> {
    let mut threads: FxHashMap<ThreadIdx, f64> = FxHashMap::default();
    let own = context.profile().filter(|(thread, stack, _)| context.program(*thread) == program && ran(*stack));
    for (thread, _, weight) in own {
        *threads.entry(thread).or_default() += weight;
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
