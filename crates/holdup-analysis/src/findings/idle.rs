//! Who had nothing to do.

use holdup_trace::{Nanos, StringId, ThreadIdx, Timestamp};
use rustc_hash::FxHashSet;

use super::context::Context;
use super::tally::{Group, Tally};
use super::{culprit, order, place};
use crate::focus::{CLOCK, is_recorder};
use crate::intervals::descends;
use crate::label::{duration, threads};
use crate::report::{Confidence, CpuSeconds, Finding, FindingKind};

/// The idleness of a pipeline is that of its source: that of programs that are fed goes to the one that feeds them, where this is idle
/// itself.
pub(super) fn merge(context: &Context, groups: &mut Vec<(Group, Tally)>) {
    for at in (0..groups.len()).rev() {
        let Group::Idle(program, _) = groups[at].0 else { continue };
        let Some(source) = context.learned.fed.first_source(program) else { continue };
        let of_source = |(group, _): &(Group, Tally)| matches!(group, Group::Idle(program, _) if *program == source);
        if let Some(to) = groups.iter().position(of_source) {
            let behind = groups[at].1.clone();
            groups[to].1.absorb_behind(&behind);
            groups.remove(at);
        }
    }
    merge_parents(context, groups);
}

/// Who has nothing to do while a child of his sleeps waits for that one.
fn merge_parents(context: &Context, groups: &mut Vec<(Group, Tally)>) {
    for at in (0..groups.len()).rev() {
        let (Group::Idle(..), parent) = &groups[at] else { continue };
        let parents: FxHashSet<u32> = parent.ends().keys().map(|thread| context.pid(*thread)).collect();
        let is_child = |(group, child): &(Group, Tally)| {
            matches!(group, Group::Idle(..))
                && child.is_asleep()
                && 2.0 * child.rested_each() > parent.rested_each()
                && child.ends().keys().all(|thread| descends(context.trace, *thread, |pid| parents.contains(&pid)))
        };
        if !parent.is_asleep()
            && parents.len() == 1
            && let Some(to) = groups.iter().position(is_child)
        {
            let behind = groups[at].1.clone();
            groups[to].1.absorb_behind(&behind);
            groups.remove(at);
        }
    }
}

/// Who had nothing to do, or set itself a time, and who waited for them.
pub(super) fn title(context: &Context, program: StringId, tally: &Tally, f: &Finding) -> String {
    let own = tally.ends().len();
    let behind = match f.waiters.threads.saturating_sub(own) {
        0 => String::new(),
        1 => ", and another one for it".to_owned(),
        others => format!(", and {others} others for it"),
    };
    let site = tally.main_site(context.classifier);
    let (who, at_input) = (format!("{} of {}", threads(own), f.culprit.process), place::is_at_input(context, site));
    if tally.is_asleep() {
        let in_turn = slept_in_turn(context, tally);
        // What several slept at once is no time that went by.
        let slept = || duration(context.limits.once(tally.asleep.amount()));
        let (its, lasted) = match own {
            1 => ("its", format!(" for {}", slept())),
            _ if in_turn => ("their", format!(", one after another, for {} in all", slept())),
            _ => ("their", String::new()),
        };
        // Where its tasks wait for whatever they wait for, that is no input.
        let what = match at_input {
            _ if context.classifier.unseen_at(site).is_some() => "waited for",
            true => "waited for input until",
            false => "slept by",
        };
        let by =
            starter(context, tally).map(|by| format!(", started by {},", context.trace.text(by))).unwrap_or_default();
        return format!("{who}{by} {what} {its} own timer{lasted}{behind}");
    }
    let asks = || tally.ends().keys().all(|thread| context.is_client(*thread));
    let what = match context.learned.fed.sender(program) {
        Some(sender) => format!("work from {}{}", context.trace.text(sender), worked(context, sender)),
        None if at_input && asks() => "input that did not come".to_owned(),
        None => "work that nobody sent".to_owned(),
    };
    format!("{who} waited for {what}{behind}")
}

/// Those of which no two slept at once slept no longer than the CPUs stood idle for them, but for this factor.
const TOGETHER: f64 = 1.02;

/// Whether no two of them slept at once: those that had all CPUs for it, and those of which each began when the one before had ended. O(n log n).
fn slept_in_turn(context: &Context, tally: &Tally) -> bool {
    let had_all = tally.asleep.seconds() * context.timeline.cpus as f64 <= TOGETHER * tally.blame().seconds();
    let mut lives: Vec<(Timestamp, Timestamp)> =
        tally.ends().keys().filter_map(|t| context.trace.thread(*t)).map(|row| (row.start, row.end)).collect();
    lives.sort_unstable();
    had_all || lives.windows(2).all(|pair| pair[0].1 <= pair[1].0)
}

/// The program that started all of them, if it is another one and in focus: a script, whose command it is to sleep.
fn starter(context: &Context, tally: &Tally) -> Option<StringId> {
    let by = |thread: &ThreadIdx| {
        let parent = context.trace.thread(*thread)?.parent;
        let parent = Some(parent).filter(|parent| parent.is_real() && context.focus.contains(*parent))?;
        Some(context.program(parent)).filter(|program| *program != context.program(*thread))
    };
    let mut all = tally.ends().keys().map(by);
    let first = all.next()??;
    all.all(|by| by == Some(first)).then_some(first)
}

/// What to do about it.
pub(super) fn advice(context: &Context, program: StringId, tally: &Tally, f: &Finding) -> String {
    let site = tally.main_site(context.classifier);
    if tally.is_asleep() && (place::is_at_input(context, site) || context.classifier.unseen_at(site).is_some()) {
        return format!(
            "See what sets that timer in {}: a sleep, a limit of its rate, a pause before it tries again, or a time-out for input that did not come.",
            f.culprit.process
        );
    }
    if tally.is_asleep() {
        let advice = "If each piece of its work waits for that, do without, or do several at once; if it waits for something to happen, wait for that \
             event, or look sooner and more often. There is nothing to mend, if it is meant to sleep, as to keep to a limit of its rate.";
        return advice.to_owned();
    }
    match context.learned.fed.sender(program) {
        Some(sender) if sender_ran(context, sender).is_some() => {
            let name = context.trace.text(sender);
            format!(
                "See what {name} does meanwhile (look at the whole machine: record with -a, or --focus '*'): make that shorter."
            )
        }
        Some(sender) => format!(
            "See why {} sends no more. If that is all there was, there is nothing to mend.",
            context.trace.text(sender)
        ),
        None => {
            "There is nothing to mend, if there was no more work. If there was, say so: --work FUNCTION.".to_owned()
        }
    }
}

/// From this share of the time on, what one who sends work did meanwhile is what it sends no more for.
const WORKS: f64 = 0.25;

/// The threads of a program outside of the focus. O(threads).
fn outside(context: &Context, program: StringId) -> impl Iterator<Item = ThreadIdx> {
    context.threads().filter(move |t| context.program(*t) == program && !context.focus.contains(*t) && t.is_real())
}

/// How long who sends work from outside of the focus worked at it; None where it mostly did nothing. O(threads).
fn sender_ran(context: &Context, sender: StringId) -> Option<Nanos> {
    let ran: Nanos = outside(context, sender).map(|thread| context.ran(thread)).sum();
    (ran.amount().0 >= WORKS * context.duration().0).then_some(ran)
}

/// What who sends work did meanwhile, behind its name. O(threads + samples).
fn worked(context: &Context, sender: StringId) -> String {
    let Some(ran) = sender_ran(context, sender) else { return String::new() };
    let within = culprit::specific(context, &context.samples_of(outside(context, sender)))
        .map(|location| format!(", mostly in {}", context.trace.text(location.function)));
    format!(", which worked for {} meanwhile{}", duration(ran.seconds()), within.unwrap_or_default())
}

/// Whether the focus worked, or was held up, for less than half of the time. Who works all the time with one thread has work, however
/// many CPUs that leaves idle.
pub(super) fn is_seldom_active(context: &Context, cpu: &CpuSeconds) -> bool {
    active(cpu) < 0.5 * context.duration().seconds()
}

fn active(cpu: &CpuSeconds) -> f64 {
    cpu.busy + cpu.spin + cpu.held_up + cpu.runnable_idle
}

/// So many times as much time without work as any cause cost: to mend them all would save next to nothing.
const NEXT_TO_NOTHING: f64 = 10.0;

/// The same in the time that goes by: what lasts that much longer than any cause, and for this share of all, is what its user waits for.
const LASTS: f64 = 2.0;
const LEAST: f64 = 0.25;

/// Which finding says that the program in focus mostly had nothing to do, if no cause cost much
/// beside that. A server that waits for requests does what it is for; where it is not known whether it is one, nothing is said.
fn mostly(context: &Context, cpu: &CpuSeconds, findings: &[Finding]) -> Option<usize> {
    // Of a whole machine, what its user has started meanwhile, if not to measure the time.
    let meta = &context.trace.meta;
    let is_clock = meta.command.first().is_some_and(|c| c.rsplit('/').next() == Some(CLOCK));
    let is_asked_for = |f: &Finding| {
        let started = || !is_clock && f.about.culprits.first().is_some_and(|thread| is_of_user(context, *thread));
        f.kind == FindingKind::IdleByDesign && (!context.focus.is_everything() || started())
    };
    // Who waits beside it for work that did not come, such as a server, says nothing of it.
    let is_it = |f: &Finding| is_asked_for(f) && is_most_of_it(context, cpu, findings, f);
    findings.iter().position(is_it)
}

/// Whether this idleness is what its user waits for.
fn is_most_of_it(context: &Context, cpu: &CpuSeconds, findings: &[Finding], idle: &Finding) -> bool {
    let serves = idle.about.culprits.first().and_then(|thread| context.timeline.is_server(*thread));
    let most = |of: fn(&Finding) -> f64| findings.iter().filter(|f| f.is_cause()).map(of).fold(0.0, f64::max);
    // How many CPUs a sleep leaves idle, and who else leaves them so, says nothing. What several wait for at once lasts less, but for sleeps: no
    // more CPUs than there are were idle for them at a time.
    let (threads, cpus) = (idle.waiters.threads, context.timeline.cpus);
    let at_once = if idle.lasted_s > 0.0 { threads.min(cpus) } else { threads };
    let lasted = idle.lasted_s.max(idle.blame_cpu_s / at_once.max(1) as f64);
    // While others of the program work, nobody waits for it.
    let alone = lasted.min(ran_nothing(context));
    let matters = alone > LEAST * context.duration().seconds() && alone > LASTS * most(|f| f.lasted_s);
    let costs_most = is_seldom_active(context, cpu) && cpu.no_work > NEXT_TO_NOTHING * most(|f| f.blame_cpu_s);
    (serves == Some(false) || idle.about.sleeps || is_for_its_user(context, idle))
        && (costs_most || matters)
        && !has_busier_siblings(context, idle)
}

/// Whether it is whole processes that do nothing but sleep for a time that they chose. O(threads).
pub(super) fn are_processes_that_sleep(context: &Context, group: &Group, tally: &Tally) -> bool {
    if !matches!(group, Group::Idle(..)) || !tally.is_asleep() {
        return false;
    }
    let site = tally.main_site(context.classifier);
    let looks = place::is_at_input(context, site) || context.classifier.unseen_at(site).is_some();
    let pids: FxHashSet<u32> = tally.ends().keys().map(|thread| context.pid(*thread)).collect();
    let mut of_them = context.threads().filter(|thread| pids.contains(&context.pid(*thread)));
    !looks && of_them.all(|thread| tally.ends().contains_key(&thread))
}

/// Whether it is the main thread of what the user has started that sleeps: its end is what he waits for, though it may serve others meanwhile.
fn is_for_its_user(context: &Context, idle: &Finding) -> bool {
    let threads = &context.trace.threads;
    let is_main = |thread: &ThreadIdx| threads.tid.get(thread.index()) == threads.pid.get(thread.index());
    sleeps_for_its_user(context, idle) && idle.about.culprits.iter().all(is_main)
}

/// Whether it is what the user has started that sleeps.
pub(super) fn sleeps_for_its_user(context: &Context, idle: &Finding) -> bool {
    let culprits = &idle.about.culprits;
    idle.lasted_s > 0.0 && !culprits.is_empty() && culprits.iter().all(|thread| is_of_user(context, *thread))
}

/// Whether the recorder has started its process, or one that it comes from.
fn is_of_user(context: &Context, thread: ThreadIdx) -> bool {
    descends(context.trace, thread, |pid| is_recorder(context.trace, pid))
}

/// How long each of those slept that chose to; nothing for those that waited for something else.
pub(super) fn slept_each(tally: &Tally) -> Nanos {
    if tally.is_asleep() { Nanos(tally.asleep.0 / tally.ends().len().max(1) as u64) } else { Nanos::ZERO }
}

/// Who works for less than this part of what another one sleeps does not work meanwhile.
const WORKS_MEANWHILE: f64 = 0.01;

/// Whether another thread of the process works, and more than the one that is idle: a load generator's main thread sleeps for as long as the
/// others are to work.
fn has_busier_siblings(context: &Context, idle: &Finding) -> bool {
    let ran = |thread: ThreadIdx| context.ran(thread).seconds();
    let culprits = &idle.about.culprits;
    let Some(pid) = culprits.first().map(|thread| context.pid(*thread)) else { return false };
    let most = culprits.iter().map(|thread| ran(*thread)).fold(WORKS_MEANWHILE * idle.lasted_s, f64::max);
    let siblings = (0..).map(ThreadIdx).zip(&context.trace.threads.pid).filter(|(_, of)| **of == pid);
    siblings.map(|(thread, _)| thread).any(|thread| ran(thread) > most && !culprits.contains(&thread))
}

/// Puts idleness before all others where the program in focus mostly had nothing to do, and tells whether it did. Else what is found beside
/// so much time without work may not be what anybody waited for.
pub(super) fn put_in_order(context: &Context, cpu: &CpuSeconds, findings: &mut [Finding]) -> bool {
    if let Some(at) = mostly(context, cpu, findings) {
        order::bring(findings, at, 0);
        return true;
    }
    let first = findings.iter_mut().find(|f| f.is_cause());
    if let Some(first) = first.filter(|first| cpu.leaves_next_to_nothing(first)) {
        first.confidence = first.confidence.max(Confidence::Medium);
        let doubt = "most of the time nobody is known to wait for anybody: who had no work may have been held up, too (--all lists them)";
        first.doubts.push(doubt.to_owned());
    }
    false
}

/// Whether nothing of it ran for more than half of the time, with which many programs of a machine together are seldom active, too.
pub(super) fn ran_seldom(context: &Context) -> bool {
    ran_nothing(context) > 0.5 * context.duration().seconds()
}

/// How long no thread of the focus ran, in seconds; 0 where only a part of the time is explained, of which that is not known.
fn ran_nothing(context: &Context) -> f64 {
    known_idle(context).map_or(0.0, Nanos::seconds)
}

/// The same, if it is known.
pub(super) fn known_idle(context: &Context) -> Option<Nanos> {
    let whole = context.blame.window == (0, context.timeline.end);
    let none = context.timeline.parallelism.first().copied().unwrap_or(0);
    whole.then_some(Nanos(none))
}
