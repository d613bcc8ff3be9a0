//! What the scheduler inside of a program has to do with a finding.

use holdup_trace::{StackId, StringId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::context::Context;
use super::tally::{Group, Tally};
use super::{at_once, collecting, lock, place};
use crate::known::Place;
use crate::report::{Finding, FindingKind, Waiters};
use crate::runtime;
use crate::schedulers::{self, Scheduler, Wakes};

/// From this share of the wake-ups on, what they were for is told.
const TELLING: f64 = 0.5;
/// So many wake-ups tell something.
const SOME: u64 = 10;

/// The scheduler whose tasks most of these stacks are on.
pub(super) fn of_stacks(context: &Context, stacks: &FxHashMap<StackId, f64>) -> Option<&'static Scheduler> {
    // Of samples without a stack nobody knows.
    let all: f64 = stacks.iter().filter(|(stack, _)| **stack != StackId::NONE).map(|(_, weight)| weight).sum();
    let mut sums: Vec<(&'static Scheduler, f64)> = Vec::new();
    for (stack, weight) in stacks {
        let Some(found) = context.classifier.scheduler_at(*stack) else { continue };
        match sums.iter_mut().find(|(known, _)| std::ptr::eq(*known, found)) {
            Some((_, sum)) => *sum += weight,
            None => sums.push((found, *weight)),
        }
    }
    sums.into_iter().find(|(_, sum)| 2.0 * sum > all).map(|(found, _)| found)
}

/// The scheduler behind a finding: of what ran, or of where it slept.
fn of(context: &Context, group: &Group, tally: &Tally) -> Option<&'static Scheduler> {
    match group {
        Group::Serial(_) if !tally.starved => of_stacks(context, &tally.samples),
        // It waits for a timer where its tasks wait for theirs.
        Group::Timer(..) if at_once::is_at_home(context, tally) => None,
        Group::Timer(..) | Group::Disk(..) => of_stacks(context, &tally.sites).filter(|s| !s.blocks.is_empty()),
        _ => None,
    }
}

/// What most of a process' idle threads were woken for, and which share of them.
fn woken_for(context: &Context, pid: u32) -> Option<(&'static Wakes, f64)> {
    let of_process = || context.learned.woken.iter().filter(|((of, _), _)| *of == pid);
    let all: u64 = of_process().map(|(_, count)| count).sum();
    let mut sums: Vec<(&'static Wakes, u64)> = Vec::new();
    for ((_, stack), count) in of_process() {
        let functions = place::functions(context, *stack).map(|function| context.trace.text(function));
        let Some(wakes) = schedulers::woken_for(functions) else { continue };
        match sums.iter_mut().find(|(known, _)| std::ptr::eq(*known, wakes)) {
            Some((_, sum)) => *sum += count,
            None => sums.push((wakes, *count)),
        }
    }
    let (wakes, most) = sums.into_iter().max_by_key(|(wakes, count)| (*count, wakes.by))?;
    let share = most as f64 / all.max(1) as f64;
    (all >= SOME && share > TELLING).then_some((wakes, share))
}

/// Whether it works while threads have no task, and mostly gives them one by letting go a lock.
pub(super) fn keeps_lock(context: &Context, group: &Group, tally: &Tally, pid: u32) -> bool {
    of(context, group, tally).is_some()
        && is_parked(context, tally)
        && woken_for(context, pid).is_some_and(|(wakes, _)| wakes.is_lock)
}

/// Whether those that waited are threads without a task.
pub(super) fn is_parked(context: &Context, tally: &Tally) -> bool {
    tally.share_at(|stack| context.classifier.facts(stack).parked) >= 0.9
}

/// Whether it says nothing which thread works: tasks go from one to the other.
pub(super) fn migrates(context: &Context, group: &Group, tally: &Tally) -> bool {
    of(context, group, tally).is_some_and(|s| s.migrates)
}

/// The same of those that wait at its main place.
pub(super) fn migrates_at(context: &Context, tally: &Tally) -> bool {
    context.classifier.scheduler_at(tally.main_site(context.classifier)).is_some_and(|s| s.migrates)
}

/// Threads without a task are no waiters.
fn tell_idle(scheduler: &Scheduler, f: &mut Finding) {
    let threads = f.waiters.threads;
    let idle = match threads {
        0 if scheduler.migrates => format!("no other thread had a {} to run", scheduler.task),
        0 => format!("no other {} ran meanwhile", scheduler.task),
        1 => format!("1 idle thread had no {} to run", scheduler.task),
        n => format!("{n} idle threads had no {} to run", scheduler.task),
    };
    f.title.say_of_others(&idle);
    f.evidence.retain(|line| !line.contains(" waited ") && !line.starts_with("no thread waited for it"));
    f.evidence.insert(0, format!("{idle}; {}s that wait for one another are not seen by the kernel", scheduler.task));
    (f.waiters, f.wait_stack) = (Waiters::default(), Vec::new());
}

/// From this share of the waiting on, it matters that a thread that tasks need is one of those that wait.
const MATTERS: f64 = 0.05;

/// Who waits for another program with a thread that its tasks need keeps them all waiting. O(stacks of the waits).
fn tell_blocked(context: &Context, group: &Group, tally: &Tally, f: &mut Finding) {
    // Those that are waited for may wait for each other.
    let mut others = tally.threads.iter().filter(|thread| !tally.ends().contains_key(thread));
    let is_within = others.any(|thread| context.pid(*thread) == f.culprit.pid);
    if is_within || matches!(group, Group::Ready(..)) {
        return;
    }
    // Code that is compiled anew has other stacks for the same.
    let mut blocked: FxHashMap<StringId, (u64, &'static str)> = FxHashMap::default();
    for (stack, ns) in &tally.wait_stacks {
        let blocks = context.classifier.scheduler_at(*stack).map_or("", |scheduler| scheduler.blocks);
        let function = place::own(context, *stack).map(|l| l.function);
        if let Some(function) = function.filter(|_| !blocks.is_empty() && !context.classifier.facts(*stack).parked) {
            blocked.entry(function).or_insert((0, blocks)).0 += ns;
        }
    }
    let all = tally.waited_at(|_| true);
    let most = blocked.into_iter().max_by_key(|(function, (ns, _))| (*ns, *function));
    if let Some((function, (_, blocks))) = most.filter(|(_, (ns, _))| *ns as f64 >= MATTERS * all as f64) {
        f.advice = format!("{} {}", blocks.replace("{}", context.trace.text(function)), f.advice);
    }
}

/// Says in the words of the scheduler what the finding says in those of threads.
pub(super) fn add(context: &Context, group: &Group, tally: &Tally, f: &mut Finding) {
    tell_blocked(context, group, tally, f);
    // Who waits at a barrier waits in the library that has it.
    let is_told = f.kind == FindingKind::Gc
        || lock::known(context, tally).is_some_and(|known| group.is_lock() || known.place != Place::Library);
    let Some(scheduler) = of(context, group, tally).filter(|_| !is_told) else { return };
    let function = if f.culprit.function.is_empty() { "this code" } else { f.culprit.function.as_str() };
    if !matches!(group, Group::Serial(_)) {
        f.advice = scheduler.blocks.replace("{}", function);
        return;
    }
    let many = f.culprit.threads > 1 && !scheduler.nameless.is_empty();
    if many {
        // Workers beside the event loop are threads like others.
        return;
    }
    let idle = f.waiters.waits == 0 || is_parked(context, tally);
    if idle {
        tell_idle(scheduler, f);
    }
    let woken = woken_for(context, f.culprit.pid);
    if let Some((wakes, share)) = &woken {
        let line = format!("{:.0} % of the times that an idle thread was woken, it was by {}", 100.0 * share, wakes.by);
        f.evidence.push(line);
    }
    let works = woken.map(|(wakes, _)| wakes.advice).filter(|_| idle);
    let works = works.or_else(|| aside(context, scheduler, &tally.samples)).unwrap_or(scheduler.works);
    f.advice = sentence(scheduler, works, f.culprit.function.as_str());
    let program = f.about.culprits.first().map(|thread| context.program(*thread));
    if let Some(collecting) = program.and_then(|program| collecting::of_program(context, program)) {
        f.evidence.push(collecting.line());
        f.advice += &format!(" {}", collecting.advice);
        if collecting.is_most() {
            let share = 100.0 * collecting.share;
            f.title.begin_with(&format!("{share:.0} % of the CPU time was garbage collection: "));
        }
    }
}

/// What to do about a program that is busy in a scheduler's tasks; none where there is nothing more to say.
pub(super) fn busy(context: &Context, samples: &FxHashMap<StackId, f64>, function: &str) -> Option<String> {
    let scheduler = of_stacks(context, samples).filter(|s| !s.busy.is_empty())?;
    let leaves_cpus = context.timeline.peak_parallelism() < context.timeline.cpus;
    let is_one_loop = || !scheduler.migrates && is_of_one_thread(context, samples);
    let busy = || aside(context, scheduler, samples).unwrap_or(scheduler.busy);
    (leaves_cpus || is_one_loop()).then(|| sentence(scheduler, busy(), function))
}

/// The advice for tasks that mostly run in threads that are made for them.
fn aside(context: &Context, scheduler: &Scheduler, samples: &FxHashMap<StackId, f64>) -> Option<&'static str> {
    let (function, advice) = scheduler.aside?;
    let is_there = |stack: StackId| place::has(context, stack, |name| schedulers::any(&[function], name));
    let there: f64 = samples.iter().filter(|(stack, _)| is_there(**stack)).map(|(_, weight)| weight).sum();
    (2.0 * there > samples.values().sum::<f64>()).then_some(advice)
}

/// From this share on one thread has done nearly all of it.
const NEARLY_ALL: f64 = 0.8;

/// Whether one thread in focus has run nearly all of these stacks. O(samples).
fn is_of_one_thread(context: &Context, samples: &FxHashMap<StackId, f64>) -> bool {
    let mut threads: FxHashMap<ThreadIdx, f64> = FxHashMap::default();
    for (thread, _, weight) in context.profile().filter(|(_, stack, _)| samples.contains_key(stack)) {
        *threads.entry(thread).or_default() += weight;
    }
    threads.values().fold(0.0, |most, weight| f64::max(most, *weight)) > NEARLY_ALL * threads.values().sum::<f64>()
}

fn sentence(scheduler: &Scheduler, advice: &str, function: &str) -> String {
    match function {
        "" => advice.replace("{}", "this code"),
        nameless if nameless == scheduler.nameless => format!("{} {}", scheduler.naming, advice.replace("{}", "it")),
        named => advice.replace("{}", named),
    }
}

/// What stands for the name of a function that is not on these stacks: its task has none, or its language tells none.
pub(super) fn stands_for(context: &Context, samples: &FxHashMap<StackId, f64>) -> &'static str {
    let of_task = nameless(context, samples);
    if !of_task.is_empty() {
        return of_task;
    }
    let all: f64 = samples.values().sum();
    let mut by_language: FxHashMap<&str, f64> = FxHashMap::default();
    for (stack, weight) in samples {
        if let Some(language) = place::nameless_language(context, *stack) {
            *by_language.entry(language).or_default() += weight;
        }
    }
    let most = by_language.into_iter().find(|(_, weight)| 2.0 * weight > all);
    most.map_or("", |(language, _)| runtime::nameless(language))
}

/// What stands for the name of a task's function that has none.
pub(super) fn nameless(context: &Context, samples: &FxHashMap<StackId, f64>) -> &'static str {
    of_stacks(context, samples).map_or("", |scheduler| scheduler.nameless)
}
