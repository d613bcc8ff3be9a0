//! From charges to culprits: groups the cells, names the culprit of each group, ranks, and says what it saw.
//!
//! To add a kind of finding: give it a [`group::Group`], say in `group::of` which cells belong to it, and what it
//! is called and advised in `words`.

mod caveats;
mod confidence;
mod culprit;
mod disk;
mod group;
mod held;
mod instruction;
mod limits;
mod lock;
mod names;
mod preempt;
mod profile;
mod words;

use std::cell::OnceCell;

use holdup_trace::{Result, StackId, ThreadIdx, Trace};
use rustc_hash::FxHashMap;

use crate::blame::{Blame, Window, sweep};
use crate::classify::Classifier;
use crate::code::Disassembler;
use crate::focus::Focus;
use crate::intervals::{self, Intervals};
use crate::label;
use crate::report::{CpuSeconds, Explanation, Finding, Health, Options, TraceFacts};
pub(crate) use culprit::covering;
use group::{Group, Tally};
pub(crate) use held::held_up;
pub(crate) use instruction::hottest;

/// Findings shown when the caller does not say how many.
const DEFAULT_TOP: usize = 8;
/// A finding below this share of all that could be charged is noise.
const SMALLEST_SHARE: f64 = 0.01;

/// Everything that the makers of findings look at.
pub(crate) struct Context<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) focus: &'a Focus,
    pub(crate) intervals: &'a Intervals,
    pub(crate) classifier: &'a Classifier<'a>,
    pub(crate) blame: &'a Blame,
    pub(crate) disassembler: &'a dyn Disassembler,
    pub(crate) locks: FxHashMap<holdup_trace::LockId, lock::LockStory>,
    pub(crate) habits: lock::Habits,
    pub(crate) limits: limits::Limits,
    /// Who calls whom, in all samples; made when it is first asked for.
    pub(crate) callers: OnceCell<culprit::Callers>,
}

/// Explains a trace. `path` is only repeated in the answer.
///
/// Fails if the trace is damaged, if the focus names no process, or if the window is empty.
pub fn explain(trace: &Trace, path: &str, options: &Options, disassembler: &dyn Disassembler) -> Result<Explanation> {
    with_context(trace, path, options, disassembler, |context| context.explanation(path, options))
}

/// Studies a trace and hands the result to `then`.
pub(crate) fn with_context<R>(
    trace: &Trace,
    path: &str,
    options: &Options,
    disassembler: &dyn Disassembler,
    then: impl FnOnce(&Context) -> R,
) -> Result<R> {
    let refuse = |what| holdup_trace::Error::Input(format!("{path}: {what}"));
    let focus = Focus::find(trace, options.focus.as_deref()).map_err(refuse)?;
    let window = window(trace, path, options)?;
    let classifier = Classifier::new(trace).with_sites(&options.idle, &options.work);
    let intervals = intervals::build(trace, &focus, &classifier)?;
    let blame = sweep(trace, &intervals, &focus, &classifier, window)?;
    check_conservation(&blame, path)?;
    let locks = lock::stories(&intervals, &focus, window);
    let habits = lock::habits(&intervals, &focus);
    let limits = limits::Limits::new(window, intervals.cpus);
    let context = Context {
        trace,
        focus: &focus,
        intervals: &intervals,
        classifier: &classifier,
        blame: &blame,
        disassembler,
        locks,
        habits,
        limits,
        callers: OnceCell::new(),
    };
    Ok(then(&context))
}

/// Every CPU nanosecond is in exactly one part of the sum. This tests the bookkeeping, not the blame.
fn check_conservation(blame: &Blame, path: &str) -> Result<()> {
    let cpu = &blame.cpu;
    let sum = cpu.running + cpu.other + cpu.held_up + cpu.runnable_idle + cpu.no_work + cpu.lost;
    if (sum - cpu.total).abs() <= 1e-3 * cpu.total {
        return Ok(());
    }
    let what = format!(
        "{path}: {sum} of {} CPU ns are accounted for: this is a mistake in holdup, please report it",
        cpu.total
    );
    Err(holdup_trace::Error::Input(what))
}

fn window(trace: &Trace, path: &str, options: &Options) -> Result<Window> {
    let end = trace.meta.duration_ns;
    let Some((from, to)) = options.window else { return Ok(Window { from: 0, to: end }) };
    let ns = |s: f64| (s.max(0.0) * 1e9) as u64;
    let window = Window { from: ns(from).min(end), to: ns(to).min(end) };
    if window.from >= window.to {
        let length = end as f64 / 1e9;
        let what = format!("{path}: nothing lies between {from} s and {to} s; the trace is {length:.3} s long");
        return Err(holdup_trace::Error::Input(what));
    }
    Ok(window)
}

impl Context<'_> {
    fn explanation(&self, path: &str, options: &Options) -> Explanation {
        let mut findings = self.findings();
        findings.truncate(if options.top == 0 { DEFAULT_TOP } else { options.top });
        for (i, finding) in findings.iter_mut().enumerate() {
            finding.id = format!("f{}", i + 1);
        }
        let cpu_seconds = self.cpu_seconds();
        Explanation {
            schema: "holdup.explain/1",
            trace: TraceFacts {
                path: path.to_owned(),
                format: self.trace.meta.format.clone(),
                start_s: self.blame.window.0 as f64 / 1e9,
                duration_s: (self.blame.window.1 - self.blame.window.0) as f64 / 1e9,
                cpus: self.intervals.cpus,
                focus: self.focus.name().to_owned(),
            },
            caveats: caveats::of(self, &cpu_seconds),
            cpu_seconds,
            hot: profile::hot(self),
            findings,
            health: self.health(),
        }
    }

    /// All charges by group, those of one serial function together.
    fn charged(&self) -> Vec<(Group, Tally)> {
        let mut groups: FxHashMap<Group, Tally> = FxHashMap::default();
        for (key, cell) in &self.blame.cells {
            if let Some(group) = group::of(self, key) {
                groups.entry(group).or_default().add(key, cell);
            }
        }
        group::merge_serial(self, groups)
    }

    /// All groups as the findings show them, however small.
    pub(crate) fn groups(&self) -> Vec<(Group, Tally)> {
        let mut groups = self.charged();
        group::merge_disk(&mut groups);
        groups.iter_mut().for_each(|(_, t)| t.starved = preempt::is_starved(self, t));
        groups
    }

    fn findings(&self) -> Vec<Finding> {
        let mut groups = self.charged();
        let charged: f64 = groups.iter().filter(|(g, _)| g.holds_up()).map(|(_, t)| t.rank_ns).sum();
        let duration = (self.blame.window.1 - self.blame.window.0) as f64;
        let most = charged.max(self.blame.cpu.running * 0.1).max(duration * 0.1);
        let matters =
            |g: &Group, t: &Tally| t.blame_ns() >= SMALLEST_SHARE * most && (t.blame_ns() > 1e3 || !g.holds_up());
        groups.retain(|(g, t)| matters(g, t));
        group::merge_disk(&mut groups);
        groups.iter_mut().for_each(|(_, t)| t.starved = preempt::is_starved(self, t));
        let mut findings: Vec<Finding> =
            groups.iter().map(|(group, tally)| self.finding(group, tally, charged)).collect();
        findings.iter_mut().zip(disk::facts(self, &groups)).for_each(|(finding, facts)| disk::add(finding, facts));
        findings.extend(profile::cpu_bound(self, charged));
        findings.sort_by(|a, b| b.blame_cpu_s.total_cmp(&a.blame_cpu_s).then_with(|| a.title.cmp(&b.title)));
        findings
    }

    fn finding(&self, group: &Group, tally: &Tally, charged: f64) -> Finding {
        let culprit = culprit::of(self, group, tally);
        let kind = group::kind(self, group, tally);
        let waiters = lock::waiters(self, group, tally);
        let (windows, within_ns) = tally.windows(self.blame.window);
        let share = if group.holds_up() && charged > 0.0 { tally.rank_ns / charged } else { 0.0 };
        let mut finding = Finding {
            kind,
            lock: group.lock().and_then(|l| label::lock(self.trace, l)),
            release_stack: self.stack_text(lock::release_stack(self, group, tally)),
            wait_stack: self.stack_text(tally.common_stack()),
            waiters,
            blame_cpu_s: self.limits.of_cpus(tally.blame_ns()),
            share_of_held_up: share,
            gain_at_most: self.gain(group, within_ns, tally),
            lasted_s: self.limits.once(within_ns as f64),
            windows,
            culprit,
            ..Finding::default()
        };
        words::describe(self, group, tally, &mut finding);
        (finding.confidence, finding.doubts) = confidence::of(self, group, tally);
        finding
    }

    /// An upper bound: all time within which this was the end of some chain is gone, but the work that remains
    /// still has to be done by the CPUs there are.
    fn gain(&self, group: &Group, within_ns: u64, tally: &Tally) -> Option<f64> {
        if !group.holds_up() {
            return None;
        }
        let (from, to) = self.blame.window;
        let duration = (to - from) as f64;
        let sampled: f64 = tally.own_samples(self);
        let work = (self.blame.cpu.running - sampled).max(0.0) / self.intervals.cpus.max(1) as f64;
        let left = (duration - within_ns as f64).max(work).max(duration * 0.01);
        Some((duration / left).max(1.0))
    }

    fn cpu_seconds(&self) -> CpuSeconds {
        let cpu = &self.blame.cpu;
        if !caveats::has_switches(self) {
            return caveats::sampled(self);
        }
        let s = |ns: f64| ns / 1e9;
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
        let h = &self.intervals.health;
        let total = self.blame.cpu.total.max(1.0);
        Health {
            lost_events: h.lost_events,
            lost_stacks: h.lost_stacks,
            impossible: self.limits.impossible(),
            unknown_wakers: h.unknown_wakers,
            cycles: self.blame.cycles,
            unmatched: h.unmatched,
            share_unknown: (self.blame.cpu.lost / total).min(1.0),
            inferred: h.inferred,
        }
    }

    /// The frames of a stack as lines, the innermost first.
    pub(crate) fn stack_text(&self, stack: StackId) -> Vec<String> {
        label::stack_lines(self.trace, stack)
    }

    /// `file.c:12`, the file without its folders; empty if unknown.
    pub(crate) fn source(&self, l: &holdup_trace::tables::LocationRow) -> String {
        label::source(self.trace, l)
    }

    pub(crate) fn thread_name(&self, thread: ThreadIdx) -> &str {
        label::thread_name(self.trace, thread)
    }

    pub(crate) fn pid(&self, thread: ThreadIdx) -> u32 {
        self.trace.threads.pid.get(thread.index()).copied().unwrap_or(0)
    }
}
