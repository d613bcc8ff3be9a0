//! From charges to culprits: groups the cells, names the culprit of each group, ranks, and says what it saw.
//!
//! To add a kind of finding: give it a [`tally::Group`], say in `group::of` which cells are its, and what it is called in `describe`.

mod asked;
mod at_once;
mod awaited;
mod below;
mod cache_line;
mod callers;
mod caveats;
mod close;
mod collecting;
mod collection;
mod confidence;
mod context;
mod crew;
mod culprit;
mod describe;
mod disk;
mod doing;
mod fault;
mod fed;
mod flush;
mod gain;
mod group;
mod growth;
mod held;
mod herd;
mod holder;
mod hot;
mod idle;
mod inside;
mod instruction;
mod learned;
mod limits;
mod lock;
mod lock_names;
mod look;
mod main_stack;
mod meanwhile;
mod merge;
mod nameless;
mod names;
mod one_by_one;
mod order;
mod outsiders;
mod place;
mod preempt;
mod profile;
mod room;
mod rounds;
mod sched;
mod sequence;
mod several;
mod siblings;
mod sleep;
mod spans;
mod spin;
mod stalls;
mod steps;
mod stories;
mod storm;
mod stuck;
mod tally;
mod traced;
mod turns;
mod uneven;
mod words;
mod work;
mod works_on;

use std::cell::OnceCell;

use holdup_trace::{Amount, Nanos, Result, Trace};

use crate::blame::{self, Study};
use crate::classify::Classifier;
use crate::code::Disassembler;
use crate::focus::Focus;
use crate::idiom::IdiomFacts;
use crate::intervals::Timeline;
use crate::replay::Taken;
use crate::report::{CpuSeconds, Explanation, Finding, FindingKind, Health, ON_THE_PAGE, Options, Smaller, TraceFacts};
use crate::spins::SpinSites;
use awaited::Awaited;
pub(crate) use callers::{Callers, count as count_callers};
pub(crate) use context::Context;
use crew::Crew;
pub(crate) use culprit::{covering, specific_in};
pub(crate) use held::held_up;
pub use held::{Family, Held, Under};
pub(crate) use instruction::hottest;
use learned::Learned;
pub(crate) use learned::Wanted;
pub(crate) use names::{grouped, stem};
use profile::Busiest;
use tally::{Group, Tally};

/// Findings shown when the caller does not say how many.
const DEFAULT_TOP: usize = 8;
/// A finding below this share of all that could be charged is noise, and one of a microsecond.
const SMALLEST_SHARE: f64 = 0.01;
const SMALLEST: Amount = Amount(1e3);

/// Explains a trace. `path` is only repeated in the answer.
///
/// Fails if the trace is damaged, if the focus names no process, or if the window is empty.
pub fn explain(trace: &Trace, path: &str, options: &Options, disassembler: &dyn Disassembler) -> Result<Explanation> {
    with_context(trace, path, options, disassembler, Wanted::Findings, |context| context.explanation(path, options))?
}

/// Studies a trace and hands the result to `then`.
pub(crate) fn with_context<R>(
    trace: &Trace,
    path: &str,
    options: &Options,
    disassembler: &dyn Disassembler,
    wanted: Wanted,
    then: impl FnOnce(&Context) -> R,
) -> Result<R> {
    let refuse = |what| holdup_trace::Error::Input(format!("{path}: {what}"));
    let focus = Focus::find(trace, options.focus.as_deref()).map_err(refuse)?;
    let window = limits::window(trace, path, options)?;
    let classifier = Classifier::new(trace).with_sites(&options.idle, &options.work);
    let timeline = Timeline::new(trace, &focus, &classifier)?;
    let spins = SpinSites::new(trace, &classifier, disassembler);
    let study = Study { trace, timeline: &timeline, focus: &focus, classifier: &classifier, spins: &spins, window };
    in_study(&study, path, disassembler, wanted, then)
}

/// Explains what is being studied: a trace that has been followed already. `path` is only repeated in the answer; of the options
/// only the number of findings counts. Also tells the CPU nanoseconds charged to each thread that others waited for.
///
/// # Errors
/// If the trace is damaged.
pub fn explain_study(
    study: &Study,
    path: &str,
    options: &Options,
    disassembler: &dyn Disassembler,
) -> Result<(Explanation, Vec<f64>)> {
    in_study(study, path, disassembler, Wanted::Findings, |context| {
        let mut by_thread = vec![0.0; study.trace.threads.tid.len()];
        for (key, cell) in context.blame.cells.iter().filter(|(key, _)| key.terminal.is_of_culprit()) {
            if let Some(sum) = by_thread.get_mut(key.thread.index()) {
                *sum += cell.rank_ns;
            }
        }
        context.explanation(path, options).map(|found| (found, by_thread))
    })?
}

fn in_study<R>(
    study: &Study,
    path: &str,
    disassembler: &dyn Disassembler,
    wanted: Wanted,
    then: impl FnOnce(&Context) -> R,
) -> Result<R> {
    let Study { trace, timeline, focus, classifier, spins, window } = *study;
    let mut learned = Learned::default();
    let blame = blame::blame(study, |chunk: &_| Learned::of(chunk, study, wanted), |earlier| learned.absorb(earlier))?;
    check_conservation(&blame.cpu, path)?;
    let limits = limits::Limits::new(window, timeline.cpus);
    let context = Context {
        trace,
        focus,
        timeline,
        classifier,
        spins,
        blame: &blame,
        disassembler,
        learned,
        limits,
        callers: OnceCell::new(),
        wasted: OnceCell::new(),
    };
    let found = then(&context);
    timeline.forget();
    Ok(found)
}

/// Every CPU nanosecond is in exactly one part of the sum. This tests the bookkeeping, not the blame.
fn check_conservation(cpu: &blame::CpuSeconds, path: &str) -> Result<()> {
    let sum = cpu.running + cpu.other + cpu.held_up + cpu.runnable_idle + cpu.no_work + cpu.lost;
    if (sum - cpu.total).abs() <= 1e-3 * cpu.total {
        return Ok(());
    }
    let what = format!("{path}: {sum} of {} CPU ns are accounted for", cpu.total);
    Err(holdup_trace::Error::Bug(what))
}

/// All that was found.
struct Found {
    /// The first to begin with, each with what it could save.
    findings: Vec<(Finding, Option<Taken>)>,
    /// What is too small for one.
    smaller: Smaller,
    /// CPU time of findings that no thread's wait was charged with: that of threads which wait for each other.
    uncharged: Amount,
}

impl Context<'_> {
    fn explanation(&self, path: &str, options: &Options) -> Result<Explanation> {
        let Found { mut findings, mut smaller, uncharged } = self.findings();
        let top = if options.top == 0 { DEFAULT_TOP } else { options.top };
        let mut leave_out = |f: &Finding| {
            if f.is_cause() {
                smaller.add(f.blame_cpu_s);
            }
        };
        // What comes first is decided among as many whatever is asked for, so that the first is always the same one.
        let looked_at = top.max(DEFAULT_TOP).min(findings.len());
        findings.drain(looked_at..).for_each(|(f, _)| leave_out(&f));
        gain::fill(self, &mut findings)?;
        let mut findings: Vec<Finding> = findings.into_iter().map(|(finding, _)| finding).collect();
        order::put_first_what_saves_more(&mut findings);
        order::put_first_what_ran(&mut findings, self.blame.cpu.total);
        growth::add(self, &mut findings);
        close::doubt(self, &mut findings);
        let cpu_seconds = self.cpu_seconds().held_up_after_all(uncharged.seconds());
        let stalls = if caveats::has_wakes(self) { stalls::of(self) } else { Vec::new() };
        stalls::tell(&mut findings, &stalls, self.duration().seconds());
        let mostly_idle = idle::put_in_order(self, &cpu_seconds, &mut findings);
        findings.drain(top.min(findings.len())..).for_each(|f| leave_out(&f));
        findings.iter_mut().zip(1..).for_each(|(finding, number)| finding.id = format!("f{number}"));
        let hot = hot::hot(self);
        let trace = TraceFacts {
            path: path.to_owned(),
            format: self.trace.meta.format.clone(),
            start_s: Nanos(self.blame.window.0).seconds(),
            duration_s: self.duration().seconds(),
            cpus: self.timeline.cpus,
            focus: self.focus.name().to_owned(),
        };
        Ok(Explanation {
            schema: "holdup.explain/1",
            mostly_idle,
            trace,
            caveats: caveats::of(self, &cpu_seconds, &findings, mostly_idle),
            cpu_seconds,
            nameless: nameless::of(self, &findings, &hot),
            hot,
            findings,
            smaller,
            stalls,
            health: self.health(),
        })
    }

    fn findings(&self) -> Found {
        let mut groups = group::charged(self);
        if !caveats::has_switches(self) {
            // Between two samples of a thread nobody knows what it did.
            groups.retain(|(group, _)| !group.holds_up());
        }
        let charged: Amount = groups.iter().filter(|(g, _)| g.holds_up()).map(|(_, t)| t.rank).sum();
        let most = charged.max(Amount(self.blame.cpu.running) * 0.1).max(self.duration() * 0.1);
        let matters = |g: &Group, t: &Tally| {
            let much = t.blame() >= SMALLEST_SHARE * most && (t.blame() > SMALLEST || !g.holds_up());
            much && !group::is_chance(self, g, t)
        };
        let mut smaller = Smaller::default();
        groups.retain(|(group, tally)| {
            let keep = matters(group, tally);
            if !keep && group.holds_up() && tally.blame() > Amount::ZERO {
                smaller.add(self.limits.of_cpus(tally.blame()));
            }
            keep
        });
        let least = Amount(self.blame.cpu.total) * ON_THE_PAGE;
        let busiest = Busiest::of(self);
        let storm = busiest.as_ref().is_some_and(Busiest::is_stormy);
        let adds_up = |g: &Group, t: &Tally| profile::adds_up(self, g, t, storm);
        let counts = |g: &Group, t: &Tally| g.holds_up() && t.rank >= least && adds_up(g, t);
        let shown: Amount = groups.iter().filter(|(g, t)| counts(g, t)).map(|(_, t)| t.rank).sum();
        group::settle(self, &mut groups);
        let (mut of_several, uncharged) = turns::take(self, &mut groups, charged);
        let (row, more) = sequence::take(self, &mut groups, charged).unzip();
        of_several.extend(row);
        idle::merge(self, &mut groups);
        let awaited = awaited::awaited(self, &groups);
        let finding = |(group, tally): &(Group, Tally)| self.finding(group, tally, awaited.get(group), charged);
        let mut findings: Vec<Finding> = groups.iter().map(finding).collect();
        let taken: Vec<Option<Taken>> =
            groups.iter().zip(&findings).map(|((group, tally), f)| gain::taken(self, group, tally, f)).collect();
        disk::add_to_all(self, &groups, &mut findings);
        let of_samples = spin::found(self).into_iter().chain(cache_line::found(self));
        // Fewer turns, or processes, cost less on both sides, and a trace does not tell how much: a bound is nowhere to be had.
        let unbound = of_samples.chain(of_several).map(|f| (f, None));
        let mut findings: Vec<_> = findings.into_iter().zip(taken).chain(unbound).collect();
        order::sort(&mut findings);
        let none_matters = !findings.iter().any(|(f, _)| profile::matters(self, f));
        let spun_s = findings.iter().filter(|(f, _)| f.kind == FindingKind::Spin).map(|(f, _)| f.blame_cpu_s).sum();
        let waited = profile::Waited { charged, shown, spun_s, none_matters };
        if let Some(profile) = busiest.and_then(|busiest| profile::cpu_bound(self, busiest, &waited)) {
            profile::insert(self, profile, &mut findings);
        }
        if collecting::of(self).is_some_and(|c| c.is_most()) {
            order::put_first_what_collects(&mut findings);
        }
        for (finding, _) in &mut findings {
            let idiom = finding.culprit.instruction.as_ref().and_then(|i| i.idiom.as_ref());
            finding.evidence.extend(idiom.map(IdiomFacts::sentence));
        }
        Found { findings, smaller, uncharged: uncharged + more.unwrap_or_default() }
    }

    fn finding(&self, group: &Group, tally: &Tally, awaited: Option<&Awaited>, charged: Amount) -> Finding {
        let kind = group::kind(self, group, tally);
        let culprit =
            if kind == FindingKind::Gc { collection::culprit(self, tally) } else { culprit::of(self, group, tally) };
        let (windows, within) = self.spans(tally, |_| true);
        let waiters = match group {
            Group::Ready(program, why) => sched::waiters(self, *program, *why, tally),
            _ => lock::waiters(self, group, tally, within),
        };
        let share = if group.holds_up() && charged > Amount::ZERO { tally.rank / charged } else { 0.0 };
        let crew = Crew::of(self, tally);
        let mut finding = Finding {
            kind,
            lock: lock::facts(self, group, tally),
            release_stack: self.stack_text(tally.main_release(&crew.threads)),
            wait_stack: self.stack_text(lock::main_wait(self, group, tally)),
            waiters,
            blame_cpu_s: self.limits.of_cpus(tally.blame()),
            share_of_held_up: share,
            lasted_s: match group {
                Group::Ready(..) => self.limits.once(within.min(tally.waited).amount()),
                Group::Idle(..) => self.limits.once(idle::slept_each(tally).amount()),
                _ => self.limits.once(within.amount()),
            },
            windows: windows.into_iter().map(|(a, b)| [Nanos(a), Nanos(b)].map(Nanos::seconds)).collect(),
            culprit,
            about: tally.about(),
            ..Finding::default()
        };
        finding.about.looks = look::is_one(self, group, tally);
        finding.about.sleeps = idle::are_processes_that_sleep(self, group, tally);
        describe::describe(self, (group, tally), &crew, awaited, &mut finding);
        (finding.confidence, finding.doubts) = confidence::of(self, group, tally);
        look::doubt(&mut finding);
        finding
    }

    /// How much time is explained.
    fn duration(&self) -> Amount {
        Nanos(self.blame.window.1 - self.blame.window.0).amount()
    }

    fn cpu_seconds(&self) -> CpuSeconds {
        let cpu = &self.blame.cpu;
        if !caveats::has_switches(self) {
            return caveats::sampled(self);
        }
        let s = |ns: f64| Amount(ns).seconds();
        CpuSeconds {
            total: s(cpu.total),
            busy: s(cpu.running - cpu.spin),
            spin: s(cpu.spin),
            other: s(cpu.other),
            held_up: s(cpu.held_up),
            runnable_idle: s(cpu.runnable_idle),
            no_work: s(cpu.no_work),
            lost: s(cpu.lost),
        }
    }

    fn health(&self) -> Health {
        let h = &self.timeline.health;
        Health {
            lost_events: h.lost_events,
            lost_stacks: h.lost_stacks,
            lost_mappings: h.lost_mappings,
            impossible: self.limits.impossible(),
            unknown_wakers: h.unknown_wakers,
            cycles: self.blame.cycles,
            unmatched: h.unmatched,
            share_unknown: (self.blame.cpu.lost / self.blame.cpu.total.max(1.0)).min(1.0),
            inferred: h.inferred,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_is_wrong_is_our_mistake() {
        let right = blame::CpuSeconds { total: 4e9, running: 1e9, no_work: 3e9, ..Default::default() };
        assert!(check_conservation(&right, "t").is_ok());
        let wrong = check_conservation(&blame::CpuSeconds { no_work: 2e9, ..right }, "t").unwrap_err();
        assert!(matches!(wrong, holdup_trace::Error::Bug(_)), "{wrong}");
        let said =
            "this is a mistake in holdup, please report it: t: 3000000000 of 4000000000 CPU ns are accounted for";
        assert_eq!(wrong.to_string(), said);
    }
}
