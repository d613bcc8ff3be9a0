//! How far a finding can be believed.

use holdup_trace::{Amount, StackId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::caveats::{WITH_STACKS, is_by_perf};
use super::context::Context;
use super::tally::{Group, Tally};
use super::{at_once, culprit, lock, place, sched, sleep, stuck};
use crate::classify::WaitKind;
use crate::intervals::Place;
use crate::label::duration;
use crate::report::Confidence;

/// The share of its CPUs from which on a virtual machine that has lost them tells of its host instead.
const MUCH_STOLEN: f64 = 0.1;

/// The share of the time of waits from which on those without a stack may tell of another place than those with one.
const MUCH_UNSEEN: f64 = 0.25;

/// From this share of stacks on that tell nothing of the program, what it did is a guess.
const MOSTLY_BLIND: f64 = 0.5;

/// Fewer waits than this that a sleeper ended may have been his by chance.
const FEW: u64 = 10;

/// So many times as much idleness for want of work as because of all findings together leaves in doubt what matters.
const MOSTLY_IDLE: f64 = 5.0;

/// Whether whoever waits for servers is of other processes.
fn is_for_clients_alone(context: &Context, tally: &Tally) -> bool {
    let servers: FxHashSet<u32> = tally.by_thread.keys().map(|thread| context.pid(*thread)).collect();
    tally.by_thread.keys().all(|thread| context.is_server(*thread))
        && !tally.threads.iter().any(|thread| servers.contains(&context.pid(*thread)))
}

/// What makes a sleep doubtful; whether that is grave. Where something `grave` is told already, a pace is not worth a line.
fn of_sleep(context: &Context, tally: &Tally, grave: bool, doubts: &mut Vec<String>) -> bool {
    let (place, site) = (|stack| context.timeline.place(stack), tally.main_site(context.classifier));
    let is_waited_for = || sleep::outsiders(context, tally).is_some();
    let is_guess = place(tally.common_stack(context.classifier)) == Place::Unsure && !is_waited_for();
    let may_keep_a_pace = || match place(site) {
        Place::Unsure => true,
        // Nobody is seen to have asked it before it slept.
        Place::Home => is_for_clients_alone(context, tally) || context.timeline.is_fed(site),
        Place::Middle => context.timeline.is_presumed(site),
    };
    if is_guess {
        doubts.push("nothing tells whether it sleeps by design, to keep a pace, or to wait for something".to_owned());
    } else if !grave && may_keep_a_pace() {
        doubts.push("it may sleep by design, to keep a pace".to_owned());
    }
    if at_once::is_at_home(context, tally) {
        doubts.push("what set the timer is not in the recording".to_owned());
    }
    // Where the program is not named, it may be a loop for which nothing came.
    let is_poll = || context.classifier.facts(site).kind == Some(WaitKind::Input);
    if is_poll() && place::application(context, site).is_none() && lock::tried(context, tally).is_none() {
        doubts.push("it may have waited for input that did not come, until a time-out".to_owned());
    }
    if sleep::tries_lock(context, tally) {
        doubts.push("it sleeps for a lock: who has that meanwhile is not told by it".to_owned());
    }
    if (1..FEW).contains(&tally.waits) && !sleep::is_for_itself(tally) {
        doubts.push(format!("it is about {} waits: some other thread may have kept them", tally.waits));
    }
    is_guess
}

/// How far, and the reasons for less than high.
pub(super) fn of(context: &Context, group: &Group, tally: &Tally) -> (Confidence, Vec<String>) {
    let mut doubts = Vec::new();
    let mut grave = false;
    let cpu = &context.blame.cpu;
    let health = &context.timeline.health;
    let blame = tally.blame();
    if cpu.lost > 0.01 * cpu.total || health.lost_events > 0 {
        grave |= cpu.lost > 0.1 * cpu.total || cpu.lost > 0.5 * blame.0;
        let share = 100.0 * cpu.lost / cpu.total.max(1.0);
        doubts.push(format!("{} events were lost: {share:.1} % of the CPU time is not known", health.lost_events));
    }
    let stolen = context.trace.stolen_share();
    if stolen > MUCH_STOLEN {
        doubts.push(format!("the host took {:.0} % of the CPUs: what ran took longer than it should", 100.0 * stolen));
    }
    let waits = context.timeline.waits().max(1) as f64;
    if health.unknown_wakers as f64 > 0.1 * waits {
        doubts.push(format!("{} of {waits} waits have no known waker", health.unknown_wakers));
    }
    let switches = context.trace.switches.rows().max(1) as f64;
    if health.inferred as f64 > 0.03 * switches {
        let all = switches + health.inferred as f64;
        doubts.push(format!("{} of {all} switches were missing and inferred", health.inferred));
    }
    if (context.blame.cycles as f64) > 0.01 * waits {
        doubts.push(format!("{} circles of waiting threads", context.blame.cycles));
    }
    // Stacks decide where it was, not who: without many of them the place is a guess.
    let stacks = context.trace.meta.user_stacks.0.max(1);
    if health.lost_stacks > stacks / 10 {
        doubts.push(format!("{} stacks were lost: the functions may be others", health.lost_stacks));
    }
    let blind = blind_share(context, group, tally);
    if blind > MOSTLY_BLIND {
        grave = true;
        let how = if is_by_perf(context.trace) { format!(": perf record {WITH_STACKS} tells") } else { String::new() };
        doubts.push(format!(
            "{:.0} % of its stacks end in the C library or the kernel: what the program did there is not known{how}",
            100.0 * blind
        ));
    }
    if let Some(language) = nameless_language(context, group, tally) {
        doubts.push(format!(
            "it runs {language}, whose functions are not in this trace: what is named here is the interpreter, or what it called"
        ));
    }
    if is_in_nameless_code(context, group, tally) || culprit::is_nameless(context, group, tally) {
        doubts.push(
            "what it ran was compiled at run time and has no names in this trace: --all says what would give it some"
                .to_owned(),
        );
    }
    let ran_unknown = || !tally.samples.is_empty() && culprit::function_of(context, group, tally).is_none();
    if doubts.is_empty() && matches!(group, Group::Serial(_)) && ran_unknown() {
        doubts.push("which function ran is not known".to_owned());
    }
    let unseen = context.trace.meta.recorder.unseen_share();
    if unseen > MUCH_UNSEEN {
        doubts.push(format!(
            "{:.0} % of the time of waits has no stack, to keep recording cheap: the functions may be others",
            100.0 * unseen
        ));
    }
    if health.lost_mappings > 0 {
        doubts.push(format!("{} mappings of code were lost: functions may lack names", health.lost_mappings));
    }
    if matches!(group, Group::Timer(..)) {
        grave |= of_sleep(context, tally, grave, &mut doubts);
    }
    if matches!(group, Group::Idle(..)) {
        let site = tally.main_site(context.classifier);
        let told = context.classifier.unseen_at(site).and_then(|unseen| unseen.split(". ").next());
        doubts.extend(told.map(|unseen| format!("its {}", unseen.trim_end_matches('.'))));
    }
    if matches!(group, Group::Outside(..))
        && tally.by_thread.keys().all(|thread| context.is_client(*thread))
        && context.timeline.place(tally.main_site(context.classifier)) != Place::Middle
    {
        grave = true;
        doubts.push("nothing tells whether it had asked for what arrived, or only listened".to_owned());
    }
    // More CPUs than it ever used at once are idle whatever it does, as far as others leave them.
    let (from, to) = context.blame.window;
    let more = context.timeline.cpus.saturating_sub(context.timeline.peak_parallelism());
    let spare = (more as f64 * (to - from) as f64 - cpu.other).max(0.0);
    let without_work = cpu.no_work - spare;
    let charged = cpu.held_up.max(tally.rank.0);
    if without_work > MOSTLY_IDLE * charged && group.holds_up() && !context.focus.is_everything() {
        let idle = duration(Amount(without_work).seconds());
        doubts.push(format!(
            "for {idle} of CPU time nobody of the program had anything to do: its input may matter more"
        ));
    }
    let (samples, stuck) = (tally.samples.len(), stuck::is(group, tally));
    if stuck && let Some(doubt) = stuck::doubt(context, tally) {
        doubts.push(doubt.to_owned());
    }
    if matches!(group, Group::Lock(_) | Group::Serial(_)) && !stuck && samples == 0 && tally.handoff < 0.5 * tally.rank
    {
        doubts.push("no CPU sample shows what the culprit did meanwhile".to_owned());
    }
    if let Group::Ready(_, why) = group
        && let Some(doubt) = sched::doubt(context, *why)
    {
        grave = true;
        doubts.push(doubt.to_owned());
    }
    let confidence = match doubts.len() {
        _ if grave => Confidence::Low,
        0 => Confidence::High,
        1 | 2 => Confidence::Medium,
        _ => Confidence::Low,
    };
    (confidence, doubts)
}

/// Whether most of it is charged to the kernel's own threads.
fn is_kernels(context: &Context, tally: &Tally) -> bool {
    let of = |wanted: bool| tally.ends().iter().filter(move |(t, _)| context.focus.is_kernel(**t) == wanted);
    of(true).map(|(_, ns)| ns).sum::<f64>() > of(false).map(|(_, ns)| ns).sum::<f64>()
}

/// What tells where the culprit was, by stack. Nothing where it is not what it did that matters.
fn places<'t>(context: &Context, group: &Group, tally: &'t Tally) -> Option<&'t FxHashMap<StackId, f64>> {
    match group {
        Group::Ready(..) => None,
        _ if is_kernels(context, tally) => None,
        Group::Lock(_) | Group::Serial(_) => Some(&tally.samples),
        _ => Some(&tally.sites),
    }
}

/// The share of these that ends in the C library or the kernel.
fn blind_share(context: &Context, group: &Group, tally: &Tally) -> f64 {
    let places = places(context, group, tally);
    places.map_or(0.0, |places| place::blind_share(context, places.iter().map(|(s, w)| (*s, *w))))
}

/// Whether most of the code that it is known to have run was compiled at run time, and has no names.
pub(super) fn is_in_nameless_code(context: &Context, group: &Group, tally: &Tally) -> bool {
    let Some(places) = places(context, group, tally) else { return false };
    let (mut nameless, mut known) = (0.0, 0.0);
    for (stack, weight) in places.iter().filter(|(stack, _)| **stack != StackId::NONE) {
        known += weight;
        nameless += if place::is_in_nameless_code(context, *stack) { *weight } else { 0.0 };
    }
    nameless > MOSTLY_BLIND * known
}

/// The language that most of these are in, if none of its functions is known.
pub(super) fn nameless_language(context: &Context, group: &Group, tally: &Tally) -> Option<&'static str> {
    let mut all = 0.0;
    let mut by_language: FxHashMap<&str, f64> = FxHashMap::default();
    for (stack, weight) in places(context, group, tally)? {
        all += weight;
        if let Some(language) = place::nameless_language(context, *stack) {
            *by_language.entry(language).or_default() += weight;
        }
    }
    by_language.into_iter().find(|(_, weight)| *weight > MOSTLY_BLIND * all).map(|(language, _)| language)
}
