//! Processes that another one starts one after another: a script, a configuration, `make` or `xargs` without `-j`. What each does is
//! little, and says nothing; together they are all there is.

use std::collections::BTreeMap;

use holdup_trace::tables::LocationRow;
use holdup_trace::{Amount, Nanos, StringId, Table, ThreadIdx};
use rustc_hash::FxHashMap;

mod beside;
mod makes;

use beside::{Sleepers, with_disk};
use makes::of_several;

use super::context::Context;
use super::main_stack::main_stack;
use super::tally::{Group, Tally, Why};
use super::{culprit, place, turns};
use crate::label::{self, duration};
use crate::report::{About, Confidence, Culprit, Finding, FindingKind, Waiters};
use crate::servers::Processes;

/// The share of the time from which on a row of processes is a cause of its own.
const LEAST: f64 = 0.3;
/// A process with more of the row's time than this is worth a finding of its own, in the same rows.
const LARGEST: [f64; 2] = [0.5, 0.25];
/// Rows of fewer tell nothing, if they are of one program, and if they are of several.
const FEWEST: [usize; 2] = [3, 6];
/// So many at once, on average, are not one after another.
const AT_ONCE: f64 = 1.25;
/// What several start is told instead of what one does where it takes so many times as long.
const MORE: f64 = 1.25;
/// One ends while the next begins for no more than this part of its life.
const BESIDE: f64 = 0.1;
/// One program with so much of their time is what they are.
const SAME: f64 = 0.8;
/// Who works for less of the row's time than this waits for something else, each by itself.
const AT_WORK: f64 = 0.5;
/// Programs that are named in the title, and in the evidence.
const TELLING: usize = 3;
const NAMED: usize = 8;

/// A process that another one started, and how long it lived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Started {
    from: u64,
    to: u64,
    pub(super) process: ThreadIdx,
}

impl Started {
    /// How long it lived, in nanoseconds.
    pub(super) fn ns(&self) -> u64 {
        self.to - self.from
    }

    /// Whether it and another one lived at the same time for more than a part of the shorter life.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        let both = self.to.min(other.to).saturating_sub(self.from.max(other.from));
        self.process != other.process && both as f64 > BESIDE * self.ns().min(other.ns()) as f64
    }
}

/// The processes that one started, in the order in which they began.
pub(super) struct Row {
    starter: ThreadIdx,
    pub(super) started: Vec<Started>,
    /// How long at least one of them lived, how long all did, and the one that lived longest; in nanoseconds.
    pub(super) covered: u64,
    lived: u64,
    longest: u64,
    /// How long they slept of their own accord.
    slept: u64,
    /// When the last of them ended.
    to: u64,
}

impl Row {
    pub(super) fn of(starter: ThreadIdx, mut started: Vec<Started>) -> Self {
        started.sort_unstable();
        let mut row = Row { starter, started: Vec::new(), covered: 0, lived: 0, longest: 0, slept: 0, to: 0 };
        for life in &started {
            row.covered += life.to.saturating_sub(life.from.max(row.to));
            row.lived += life.ns();
            row.longest = row.longest.max(life.ns());
            row.to = row.to.max(life.to);
        }
        Row { started, ..row }
    }

    fn from(&self) -> u64 {
        self.started.first().map_or(0, |first| first.from)
    }

    /// Whether they mostly slept.
    fn is_asleep(&self) -> bool {
        2 * self.slept > self.covered
    }

    /// Whether much of the time that is explained went into it, and seldom more than one was there.
    pub(super) fn is_one_after_another(&self, context: &Context) -> bool {
        let (from, to) = context.blame.window;
        let covered = self.covered as f64;
        covered >= LEAST * (to - from) as f64 && (self.lived as f64) < AT_ONCE * covered
    }

    /// Whether it is that, and no single one of them.
    fn is_it(&self, context: &Context) -> bool {
        let program = |started: &Started| context.program(started.process);
        let is_mixed = self.started.windows(2).any(|pair| program(&pair[0]) != program(&pair[1]));
        let (fewest, largest) = (FEWEST[usize::from(is_mixed)], LARGEST[usize::from(is_mixed)]);
        self.is_one_after_another(context)
            && self.started.len() >= fewest
            && (self.longest as f64) < largest * self.covered as f64
    }

    /// The row that takes most of the time that is explained; of one in another, the inner one. Where what one process starts is not one after
    /// another, what it starts of one program may be. Or it is what several of one program start, as `make` does that calls itself for each
    /// folder. What a server starts is for its clients. O(threads · (log threads + programs)).
    fn longest(context: &Context, processes: &Processes) -> Option<Self> {
        let started = started(context, processes);
        let longest = |rows: &mut dyn Iterator<Item = Row>| {
            rows.filter(|row| row.is_it(context)).max_by_key(|row| (row.covered, row.starter))
        };
        let by = |program: &dyn Fn(ThreadIdx) -> StringId| {
            let mut rows: BTreeMap<_, Vec<Started>> = BTreeMap::new();
            for (starter, life) in &started {
                rows.entry((*starter, program(life.process))).or_default().push(*life);
            }
            longest(&mut rows.into_iter().map(|((starter, _), started)| Row::of(starter, started)))
        };
        let of_one = by(&|_| StringId::default()).or_else(|| by(&|process| context.program(process)));
        let of_several = longest(&mut of_several(context, processes, &started).into_iter());
        let least = of_one.as_ref().map_or(0.0, |row| MORE * row.covered as f64);
        of_several.filter(|row| row.covered as f64 > least).or(of_one)
    }
}

/// The processes in focus that began in the time that is explained, each with the one in focus that started it and is no server.
pub(super) fn started(context: &Context, processes: &Processes) -> Vec<(ThreadIdx, Started)> {
    let (from, to) = context.blame.window;
    let starts = |t: &ThreadIdx| context.focus.contains(*t) && !context.is_server(*t);
    let mut found = Vec::new();
    for (i, thread) in (0..).zip(context.trace.threads.rows()) {
        let (process, start) = (ThreadIdx(i), thread.start.nanos());
        let began_here = thread.tid == thread.pid && start > from && start < to && context.focus.contains(process);
        if let Some(starter) = processes.main(thread.parent).filter(|parent| began_here && starts(parent)) {
            found.push((starter, Started { from: start, to: thread.end.nanos().clamp(start, to), process }));
        }
    }
    found
}

/// Makes a finding of the processes that one starts one after another, if most of the time went into them, and takes out of `groups` what is
/// charged to each of them. Then how much of that CPU time was charged to nobody.
pub(super) fn take(context: &Context, groups: &mut Vec<(Group, Tally)>, charged: Amount) -> Option<(Finding, Amount)> {
    let processes = Processes::of(context.trace);
    let row = Row::longest(context, &processes)?;
    let below = Below::of(context, &processes, &row);
    // A shell does a part of the work of those that it forks.
    let is_theirs = |(group, tally): &(Group, Tally)| is_theirs(group) && tally.is_mostly_of(|thread| below.is(thread));
    let slept = slept(context, groups.iter().filter(|g| is_theirs(g)));
    let waits = |thread: &ThreadIdx| below.is(*thread) || *thread == row.starter;
    let sleepers = Sleepers::of(context, groups.iter().filter(|g| !is_theirs(g)), waits);
    if ((below.ran() + slept.0 + sleepers.lasted.0) as f64) < AT_WORK * row.covered as f64 {
        return None;
    }
    // While some sleep, others of them may work, for which they look.
    let slept = if 2 * below.ran() < row.covered { slept.0 } else { 0 };
    let row = Row { slept, ..row };
    // Of those that sleep it tells more which scripts do.
    let started = row.started.iter().filter(|_| row.is_asleep()).map(|started| started.process);
    let culprits: Vec<ThreadIdx> = started.chain([row.starter]).collect();
    let mut about = About { culprits, waiters: vec![row.starter], ..About::default() };
    let (mut taken, mut at_disk) = (Amount::ZERO, Tally::default());
    for (group, tally) in groups.extract_if(.., |g| is_theirs(g)) {
        if matches!(group, Group::Disk(..)) {
            at_disk.absorb(tally.clone());
        }
        taken += if group.holds_up() { tally.rank } else { Amount::ZERO };
        about.subjects.extend(tally.subjects().copied());
    }
    about.subjects.sort_unstable();
    if sleepers.matter(&row) {
        about.asks.clone_from(&sleepers.threads);
    }
    // What they wait for is charged there, too.
    let charged_there = taken.0 + sleepers.rank.0;
    let lost = turns::could_run(context, row.covered).0.min(context.blame.cpu.no_work + charged_there).max(taken.0);
    let finding = Finding {
        blame_cpu_s: context.limits.of_cpus(Amount(lost)),
        share_of_held_up: if charged > Amount::ZERO { (taken / charged).min(1.0) } else { 0.0 },
        about,
        ..finding(context, &row, &below)
    };
    let finding = with_disk(context, sleepers.told_in(context, finding, &row), &row, &at_disk);
    Some((finding, Amount((lost - charged_there).max(0.0))))
}

/// How long processes slept of their own accord. On a machine of which everything is looked at there is always one that sleeps between two looks
/// at something, and nobody waits for that.
fn slept<'g>(context: &Context, theirs: impl Iterator<Item = &'g (Group, Tally)>) -> Nanos {
    let asleep = theirs.filter(|(group, _)| matches!(group, Group::Idle(..))).map(|(_, tally)| tally.asleep.0).sum();
    if context.focus.is_everything() { Nanos::ZERO } else { Nanos(asleep) }
}

/// Whether what is charged to a process says how long it took, and not what it missed.
fn is_theirs(group: &Group) -> bool {
    match group {
        Group::Ready(_, why) => matches!(why, Why::Waking | Why::Turn),
        Group::Lock(_) => false,
        _ => true,
    }
}

/// The processes of a row, and all that come from them.
struct Below {
    /// Of each thread: from which of the row's processes it comes.
    of: Vec<Option<ThreadIdx>>,
    /// By program: the number of processes, and their CPU time in nanoseconds.
    programs: FxHashMap<StringId, (usize, u64)>,
    /// By program of the row's processes: how long they lived while nothing of theirs ran, in nanoseconds.
    waited: FxHashMap<StringId, u64>,
}

impl Below {
    /// O(threads).
    fn of(context: &Context, processes: &Processes, row: &Row) -> Self {
        let of = processes.below(&row.started.iter().map(|started| started.process).collect());
        let mut found = Below { of, programs: FxHashMap::default(), waited: FxHashMap::default() };
        let mut ran: FxHashMap<ThreadIdx, u64> = FxHashMap::default();
        for (thread, started) in (0..).map(ThreadIdx).zip(&found.of) {
            let Some(started) = *started else { continue };
            let (count, sum) = found.programs.entry(context.program(thread)).or_default();
            let own = context.ran(thread).0;
            *count += usize::from(processes.main(thread).is_none_or(|main| main == thread));
            *sum += own;
            *ran.entry(started).or_default() += own;
        }
        for life in &row.started {
            let ran = ran.get(&life.process).copied().unwrap_or(0);
            *found.waited.entry(context.program(life.process)).or_default() += life.ns().saturating_sub(ran);
        }
        found
    }

    fn is(&self, thread: ThreadIdx) -> bool {
        self.of.get(thread.index()).is_some_and(Option::is_some)
    }

    fn threads(&self) -> impl Iterator<Item = ThreadIdx> + '_ {
        (0..self.of.len()).map(|i| ThreadIdx(i as u32)).filter(|thread| self.is(*thread))
    }

    fn count(&self) -> usize {
        self.programs.values().map(|(count, _)| count).sum()
    }

    fn ran(&self) -> u64 {
        self.programs.values().map(|(_, ran)| ran).sum()
    }

    /// Programs with their share of the time, the largest first: what they ran, and what those of the row waited.
    fn shares(&self) -> Vec<(StringId, f64)> {
        let mut times = self.waited.clone();
        self.programs.iter().for_each(|(program, (_, ran))| *times.entry(*program).or_default() += ran);
        let all = times.values().sum::<u64>().max(1) as f64;
        let mut shares: Vec<_> = times.into_iter().map(|(program, time)| (program, time as f64 / all)).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        shares
    }
}

/// `cc1 48 %, ld 15 %`.
fn named(context: &Context, shares: &[(StringId, f64)]) -> String {
    let telling = shares.iter().filter(|(_, share)| *share >= 0.01);
    let words = telling.map(|(program, share)| format!("{} {:.0} %", context.trace.text(*program), 100.0 * share));
    words.collect::<Vec<_>>().join(", ")
}

/// Where the one that starts them waited longest for one.
fn place_of_waits(context: &Context, starter: ThreadIdx) -> Option<LocationRow> {
    let own = context.learned.children.iter().filter(|((thread, _), _)| *thread == starter);
    place::waiting(context, main_stack(context.classifier, own.map(|((_, stack), ns)| (*stack, *ns as f64))))
}

fn finding(context: &Context, row: &Row, below: &Below) -> Finding {
    let shares = below.shares();
    // Where they are of one program, its processes are what was started, be it by a shell each.
    let same = shares.first().filter(|(_, share)| *share > SAME).map(|(program, _)| *program);
    let count = same.and_then(|program| below.programs.get(&program)).map_or(row.started.len(), |(count, _)| *count);
    let lasted = context.limits.once(Nanos(row.covered).amount());
    let each = lasted / count.max(1) as f64;
    let starter = label::process_name(context.trace, row.starter);
    let (of, mostly) = match same {
        Some(program) => (format!("{} ", context.trace.text(program)), String::new()),
        None => (String::new(), format!(" ({})", named(context, &shares[..shares.len().min(TELLING)]))),
    };
    let (number, in_all, each_took) = (label::count(count as u64), duration(lasted), duration(each));
    let waits = place_of_waits(context, row.starter);
    let (kind, what, advice) = match row.is_asleep() {
        true => (FindingKind::SleepPolling, " that slept", ADVICE_TO_SLEEPERS),
        false => (FindingKind::Serial, "", ADVICE),
    };
    Finding {
        kind,
        title: format!(
            "{starter} started {number} {of}processes{what}, one after another: {in_all} in all, {each_took} each{mostly}"
        )
        .into(),
        evidence: evidence(context, row, below, &shares),
        advice: advice.to_owned(),
        culprit: culprit(context, row, below, same),
        waiters: Waiters {
            threads: 1,
            waits: row.started.len() as u64,
            total_s: lasted,
            mean_s: each,
            max_s: Nanos(row.longest).seconds(),
            names: vec![context.thread_name(row.starter).to_owned()],
            function: waits.map_or_else(String::new, |at| context.trace.text(at.function).to_owned()),
            source: waits.map_or_else(String::new, |at| context.source(&at)),
        },
        lasted_s: lasted,
        windows: vec![[row.from(), row.to].map(|at| Nanos(at).seconds())],
        confidence: if row.is_asleep() { Confidence::Medium } else { Confidence::High },
        doubts: if row.is_asleep() { vec!["it may be meant to sleep".to_owned()] } else { Vec::new() },
        ..Finding::default()
    }
}

const ADVICE: &str = "Let those run at once that do not need each other (make -j down to the last make, xargs -P, &), or start \
                      fewer: let one do the work of many, or use what the shell or the library has built in.";

const ADVICE_TO_SLEEPERS: &str = "Let those run at once that do not need each other. If it waits for something to happen, wait for that itself (wait, \
                                  inotifywait, a lock, a pipe), or look sooner and \
                                  more often; if each piece of its work is followed by a pause, do without. If it is meant to sleep, there is \
                                  nothing to mend.";

/// Who starts them; where they are of one program, with what that runs.
fn culprit(context: &Context, row: &Row, below: &Below, same: Option<StringId>) -> Culprit {
    let found = Culprit { processes: below.count(), ..culprit::of_thread(context, row.starter) };
    let ran = same.and_then(|_| culprit::specific(context, &context.samples_of(below.threads())));
    let Some(ran) = ran else { return found };
    Culprit {
        function: context.trace.text(ran.function).to_owned(),
        module: context.trace.text(ran.module).to_owned(),
        source: context.source(&ran),
        ..found
    }
}

fn evidence(context: &Context, row: &Row, below: &Below, shares: &[(StringId, f64)]) -> Vec<String> {
    let own = row.started.len();
    let more = match below.count() - own {
        0 => String::new(),
        more => format!(", which started {} more", label::count(more as u64)),
    };
    let (longest, ran) = (duration(Nanos(row.longest).seconds()), duration(Nanos(below.ran()).seconds()));
    let named = named(context, &shares[..shares.len().min(NAMED)]);
    vec![
        format!("{} processes{more}; the longest took {longest}", label::count(own as u64)),
        format!("they used {ran} of CPU time; their time by program: {named}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_lives_at_the_same_time_is_beside() {
        let life = |from, to, process| Started { from, to, process: ThreadIdx(process) };
        let long = life(0, 100, 1);
        assert!(long.is_beside(&life(10, 30, 2)) && life(10, 30, 2).is_beside(&long));
        assert!(!long.is_beside(&life(98, 198, 2)), "one ends while the other begins");
        assert!(!long.is_beside(&long), "itself");
    }
}
