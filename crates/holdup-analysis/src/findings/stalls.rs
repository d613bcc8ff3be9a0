//! Stalls: unusually long waits by what they were for, and their sentences.

use holdup_base::numbers::unit;
use holdup_trace::{LockId, Nanos, StackId, StringId, ThreadIdx};
use rustc_hash::{FxHashMap, FxHashSet};

use super::context::Context;
use super::names::grouped;
use super::profile::NO_WAIT;
use super::{culprit, place, rounds, stuck};
use crate::label;
use crate::report::{Culprit, Finding, FindingKind, Stall};
use crate::stalls::{End, How, Record};

/// Stalls listed, and windows of each.
const LISTED: usize = 16;
const WINDOWS: usize = 64;

/// What stalls are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Cause {
    how: How,
    /// The process at the end of the chains.
    process: StringId,
    function: StringId,
    /// Whether one waits for a lock there.
    locked: bool,
}

/// An unusual stretch of time: what it was for, and who waited.
struct Stretch<'a> {
    record: &'a Record,
    main: Main,
    cause: Cause,
    waiters: Vec<ThreadIdx>,
}

/// All stalls, the longest first; those of programs that did nothing come last.
pub(super) fn of(context: &Context) -> Vec<Stall> {
    let unusual = context.learned.stalls.unusual();
    let known = unusual.into_iter().filter_map(|record| {
        let main = main_end(context, record)?;
        let cause = cause(context, &main)?;
        let waiters = if record.is_busy() { Vec::new() } else { vec![record.thread] };
        Some(Stretch { record, main, cause, waiters })
    });
    let mut causes: Vec<(Cause, Vec<Stretch>)> = Vec::new();
    // Who is away from its events stalls those who wait for it; where they would be seen and are not, nobody.
    let felt = |s: &Stretch| !s.waiters.is_empty() || context.learned.stalls.serves_elsewhere(s.record.thread);
    for stretch in join_waiters(known.collect()).into_iter().filter(felt) {
        match causes.iter_mut().find(|(cause, _)| *cause == stretch.cause) {
            Some((_, known)) => known.push(stretch),
            None => causes.push((stretch.cause, vec![stretch])),
        }
    }
    let mut stalls: Vec<Stall> = join_callees(context, causes).iter().map(|(c, all)| stall(context, c, all)).collect();
    let [mut goes_on, mut still] = stuck::stalls(context);
    stalls.append(&mut goes_on);
    stalls.sort_by(|a, b| b.longest_s.total_cmp(&a.longest_s).then_with(|| a.title.cmp(&b.title)));
    stalls.append(&mut still);
    stalls.truncate(LISTED);
    stalls
}

/// From this part of the time on, stalls are worth more than to know all that runs.
const MUCH: f64 = 0.1;

/// Of two that take turns, where a few long waits are most of it, those are told and not an average. Of a program that is simply busy, what it
/// works at while others wait unusually long is what to begin with; `duration_s` is how long all lasted.
pub(super) fn tell(findings: &mut [Finding], stalls: &[Stall], duration_s: f64) {
    let of_busy = |f: &&mut Finding| f.kind == FindingKind::CpuBound;
    for finding in findings.iter_mut().filter(of_busy) {
        let own = |s: &&Stall| s.culprit.process == finding.culprit.process && s.waiters > 0;
        let is_much = |s: &&Stall| s.count as f64 * (s.shortest_s + s.longest_s) / 2.0 > MUCH * duration_s;
        let is_part = |s: &&Stall| !["", finding.culprit.function.as_str()].contains(&s.culprit.function.as_str());
        if let Some(stall) = stalls.iter().filter(own).filter(is_part).find(is_much) {
            let shorter = shorter(&stall.culprit.function);
            finding.advice = match finding.advice.strip_prefix(NO_WAIT) {
                Some(else_) => format!("{shorter} Else {else_}"),
                None => format!("{shorter} {}", finding.advice),
            };
        }
    }
    for finding in findings.iter_mut().filter(|f| f.about.is_uneven) {
        let Some(stall) = stalls.iter().find(|s| s.culprit.process == finding.culprit.process) else { continue };
        finding.advice = match stall.culprit.function.as_str() {
            "" => format!("See what {} does meanwhile: whoever asks then waits for all of it.", stall.culprit.process),
            function => shorter(function),
        };
        let all = std::mem::replace(&mut finding.title, stall.title.clone().into());
        finding.evidence.insert(0, format!("all in all, {all}"));
        finding.culprit = stall.culprit.clone();
    }
}

/// What to do about a function that others wait for unusually long.
fn shorter(function: &str) -> String {
    format!(
        "Make {function} shorter, cut it into parts, or do it where nobody waits for it: whoever asks meanwhile waits for all of it."
    )
}

/// Who waits for a thread while that is away from its events waits because it is away.
fn join_waiters(stretches: Vec<Stretch>) -> Vec<Stretch> {
    let (mut away, waits): (Vec<Stretch>, Vec<Stretch>) = stretches.into_iter().partition(|s| s.record.is_busy());
    away.sort_by_key(|s| (s.record.thread, s.record.from));
    let mut alone = Vec::new();
    for wait in waits {
        let (from, to) = (wait.record.from, wait.record.to);
        // Those of one thread do not overlap: they are sorted by their ends, too.
        let at = away.partition_point(|s| (s.record.thread, s.record.to) <= (wait.main.thread, from));
        let overlap = |s: &Stretch| s.record.to.min(to).saturating_sub(s.record.from.max(from));
        match away.get_mut(at) {
            Some(s) if s.record.thread == wait.main.thread && 2 * overlap(s) > wait.record.length() => {
                s.waiters.extend(wait.waiters);
            }
            _ => alone.push(wait),
        }
    }
    away.append(&mut alone);
    away
}

/// What is for the same thread's work in a function that the greater part of another cause calls, is of that cause: and
/// where no sample told the function, it is that of the others.
fn join_callees<'a>(context: &Context, mut causes: Vec<(Cause, Vec<Stretch<'a>>)>) -> Vec<(Cause, Vec<Stretch<'a>>)> {
    let length = |all: &[Stretch]| all.iter().map(|s| s.record.length()).sum::<u64>();
    causes.sort_by_key(|(cause, all)| (cause.function == StringId::default(), std::cmp::Reverse(length(all)), *cause));
    let mut joined: Vec<(Cause, Vec<Stretch>)> = Vec::new();
    for (cause, stretches) in causes {
        let belongs = |other: &Cause| {
            let like = Cause { function: cause.function, ..*other } == cause;
            like && (cause.function == StringId::default() || is_below(context, &stretches, other.function))
        };
        match joined.iter_mut().find(|(other, _)| belongs(other)) {
            Some((_, known)) => known.extend(stretches),
            None => joined.push((cause, stretches)),
        }
    }
    joined
}

/// Whether most of what was run lies below `function`.
fn is_below(context: &Context, stretches: &[Stretch], function: StringId) -> bool {
    let (mut below, mut all) = (0.0, 0.0);
    for (&stack, weight) in stretches.iter().flat_map(|s| &s.main.stacks) {
        let frames = context.classifier.application_frames(stack);
        below += if frames.iter().any(|(_, l)| l.function == function) { *weight } else { 0.0 };
        all += weight;
    }
    below > 0.5 * all
}

/// The ends of a record that are of one thread or program, and how long they are.
struct Main {
    how: How,
    thread: ThreadIdx,
    locked: bool,
    ready: u64,
    ns: u64,
    stacks: FxHashMap<StackId, f64>,
}

/// From this share of the time of those two on a thread that is ready and has no CPU would rather run.
const STARVED: f64 = 2.0 / 3.0;

/// What a record was for most of the time.
fn main_end(context: &Context, record: &Record) -> Option<Main> {
    let process = |t: ThreadIdx| context.trace.threads.process.get(t.index()).copied().unwrap_or_default();
    // To run and to be ready are two states of the same work.
    let same = |how| if how == How::HasNoCpu { How::Runs } else { how };
    let mut mains: FxHashMap<(How, StringId), Main> = FxHashMap::default();
    let mut ends: Vec<&(End, u64)> = record.ends.iter().collect();
    ends.sort_unstable_by_key(|(end, ns)| (std::cmp::Reverse(*ns), *end));
    for (end, ns) in ends {
        let main = mains.entry((same(end.how), process(end.thread))).or_insert_with(|| Main {
            how: same(end.how),
            thread: end.thread,
            locked: end.lock != LockId::NONE,
            ready: 0,
            ns: 0,
            stacks: FxHashMap::default(),
        });
        main.ns += ns;
        main.ready += if end.how == How::HasNoCpu { *ns } else { 0 };
        if end.stack != StackId::NONE {
            *main.stacks.entry(end.stack).or_default() += *ns as f64;
        }
    }
    let mut main = mains.into_values().max_by_key(|m| (m.ns, std::cmp::Reverse(m.thread)))?;
    if main.ready as f64 > STARVED * main.ns as f64 {
        main.how = How::HasNoCpu;
    }
    Some(main)
}

fn cause(context: &Context, main: &Main) -> Option<Cause> {
    let function = match main.how {
        How::Idle | How::Unknown => return None,
        How::HasNoCpu => StringId::default(),
        How::Runs => culprit::covering(context.classifier, &main.stacks).map_or(StringId::default(), |l| l.function),
        _ => heaviest(main).and_then(|stack| place::place(context, stack)).map_or(StringId::default(), |l| l.function),
    };
    let process = context.trace.threads.process.get(main.thread.index()).copied().unwrap_or_default();
    Some(Cause { how: main.how, process, function, locked: main.locked })
}

fn heaviest(main: &Main) -> Option<StackId> {
    main.stacks.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0))).map(|(stack, _)| *stack)
}

/// A stretch in which some waited for the same.
#[derive(Debug, Default)]
struct Window {
    from: u64,
    to: u64,
    longest: u64,
    waiters: FxHashSet<ThreadIdx>,
}

/// Stretches that overlap are one window, as far as they lie within the part that is explained.
fn windows(stretches: &[Stretch], within: (u64, u64)) -> Vec<Window> {
    let mut sorted: Vec<&Stretch> = stretches.iter().collect();
    sorted.sort_by_key(|s| (s.record.from, s.record.to, s.record.thread));
    let mut windows: Vec<Window> = Vec::new();
    for Stretch { record, waiters, .. } in sorted {
        let (from, to) = (record.from.max(within.0), record.to.min(within.1));
        if windows.last().is_none_or(|last| from >= last.to) {
            windows.push(Window { from, ..Window::default() });
        }
        let last = windows.last_mut().expect("there is one now");
        last.to = last.to.max(to);
        last.longest = last.longest.max(to.saturating_sub(from));
        last.waiters.extend(waiters);
    }
    windows
}

fn stall(context: &Context, cause: &Cause, stretches: &[Stretch]) -> Stall {
    let mut windows = windows(stretches, context.blame.window);
    let grows = rounds::grows(windows.iter().map(|w| w.longest));
    windows.sort_by_key(|w| (std::cmp::Reverse(w.longest), w.from));
    let most = windows.iter().max_by_key(|w| (w.waiters.len(), std::cmp::Reverse(w.from)));
    let mut threads: Vec<ThreadIdx> = most.map_or_else(Vec::new, |w| w.waiters.iter().copied().collect());
    threads.sort_unstable();
    let seconds = |ns: u64| context.limits.once(Nanos(ns).amount());
    let (longest, shortest) = (windows[0].longest, windows[windows.len() - 1].longest);
    let first = stretches.iter().max_by_key(|s| (s.record.length(), std::cmp::Reverse(s.record.from)));
    let mut found = Stall {
        count: windows.len(),
        longest_s: seconds(longest),
        shortest_s: seconds(shortest),
        waiters: threads.len(),
        names: grouped(threads.iter().map(|t| context.thread_name(*t))),
        culprit: first.map_or_else(Culprit::default, |stretch| culprit_of(context, cause, &stretch.main)),
        ..Stall::default()
    };
    windows.truncate(WINDOWS);
    windows.sort_by_key(|w| w.from);
    found.windows = windows.iter().map(|w| [Nanos(w.from), Nanos(w.to)].map(Nanos::seconds)).collect();
    found.title = title(context, cause, &found, grows, &threads);
    found
}

fn culprit_of(context: &Context, cause: &Cause, main: &Main) -> Culprit {
    let mut found = culprit::of_thread(context, main.thread);
    found.function = context.trace.text(cause.function).to_owned();
    let stacks = main.stacks.keys().flat_map(|&stack| context.classifier.application_frames(stack));
    let lines = stacks.map(|(_, l)| l).filter(|l| l.function == cause.function);
    if let Some(location) = lines.min_by_key(|l| l.line) {
        found.module = context.trace.text(location.module).to_owned();
        if main.how != How::Runs {
            found.source = context.source(&location);
        }
    }
    found
}

fn title(context: &Context, cause: &Cause, found: &Stall, grows: bool, threads: &[ThreadIdx]) -> String {
    let stalls = match found.count {
        1 => format!("1 stall of {}", label::duration(found.longest_s)),
        n => {
            let longer = if grows { ", longer and longer" } else { "" };
            format!("{n} stalls of {}{longer}", range(found.shortest_s, found.longest_s))
        }
    };
    let who =
        if found.culprit.process.is_empty() { "somebody".to_owned() } else { format!("`{}`", found.culprit.process) };
    let at = |word: &str| match found.culprit.function.as_str() {
        "" => String::new(),
        function => format!(" {word} `{function}`"),
    };
    if threads.is_empty() {
        let doing = match cause.how {
            How::Runs => format!("was{}", if at("in").is_empty() { " at work".to_owned() } else { at("in") }),
            How::HasNoCpu => "was ready, had no CPU".to_owned(),
            How::Disk => format!("waited for the disk{}", at("in")),
            How::Sleeps => format!("slept{}", at("in")),
            How::Lock => format!("waited for a lock{}", at("in")),
            _ => format!("waited{}", at("in")),
        };
        return format!("{stalls}: {who} {doing} and answered nobody");
    }
    let waiters = waiters(context, threads);
    let lock = if cause.locked { "a lock of " } else { "" };
    let for_what = match cause.how {
        How::Runs => format!("{lock}{who}{}", at("in")),
        How::HasNoCpu => format!("{lock}{who}, which was ready and had no CPU"),
        How::Disk => format!("the disk{}", at("in")),
        How::Sleeps => format!("{lock}{who}, which slept{}", at("in")),
        How::Stopped => format!("{lock}{who}, which was stopped or frozen"),
        How::Lock => format!("a lock{}", at("in")),
        _ => format!("{lock}{who}, which waited for somebody outside{}", at("in")),
    };
    format!("{stalls}: {waiters} waited for {for_what}")
}

/// `20 threads of redis-benchmark`, `redis-benchmark`.
fn waiters(context: &Context, threads: &[ThreadIdx]) -> String {
    let processes = grouped_processes(context, threads);
    match (threads.len(), processes.as_slice()) {
        (1, [one]) => format!("`{one}`"),
        (n, [one]) => format!("{n} threads of `{one}`"),
        (n, [one, ..]) => format!("{n} threads (`{one}` and others)"),
        (n, []) => format!("{n} threads"),
    }
}

/// The names of the threads' processes, the most frequent first.
fn grouped_processes<'a>(context: &'a Context, threads: &[ThreadIdx]) -> Vec<&'a str> {
    let mut counts: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    threads.iter().for_each(|t| *counts.entry(label::process_name(context.trace, *t)).or_default() += 1);
    let mut names: Vec<(&str, usize)> = counts.into_iter().collect();
    names.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    names.into_iter().map(|(name, _)| name).collect()
}

/// `98–105 ms`, `0.9 ms–1.00 s`.
fn range(from: f64, to: f64) -> String {
    let (word, per_s) = unit(to);
    if from > 0.0 && unit(from).0 != word {
        return format!("{}–{}", label::duration(from), label::duration(to));
    }
    let digits = if to * per_s < 10.0 { 1 } else { 0 };
    let [from, to] = [from, to].map(|s| format!("{:.digits$}", s * per_s));
    if from == to { format!("{to} {word}") } else { format!("{from}–{to} {word}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wait_for_unusually_long_is_what_to_begin_with() {
        let told = |function: &str, count, waiters| {
            let of =
                |function: &str| Culprit { process: "server".into(), function: function.into(), ..Culprit::default() };
            let advice = format!("{NO_WAIT}make this function faster.");
            let busy = Finding { kind: FindingKind::CpuBound, culprit: of("loop"), advice, ..Finding::default() };
            let stall =
                Stall { count, shortest_s: 0.01, longest_s: 0.03, waiters, culprit: of(function), ..Stall::default() };
            let mut found = [busy];
            tell(&mut found, &[stall], 10.0);
            found[0].advice.clone()
        };
        let advice = told("eval", 60, 2);
        assert!(
            advice.starts_with("Make eval shorter, ") && advice.ends_with(" Else make this function faster."),
            "{advice}"
        );
        assert!(told("eval", 40, 2).starts_with(NO_WAIT), "they take little of the time");
        assert!(told("eval", 60, 0).starts_with(NO_WAIT), "nobody is known to wait");
        assert!(told("loop", 60, 2).starts_with(NO_WAIT), "all of it is told");
    }
}
