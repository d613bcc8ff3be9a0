//! What a trace cannot tell: said before anything else, so that nobody takes silence for an all-clear.

use holdup_trace::{Amount, ThreadIdx, Trace};

use rustc_hash::FxHashMap;

use super::context::Context;
use super::{idle, place};
use crate::blame::Terminal;
use crate::label::duration;
use crate::report::{Caveat, CpuSeconds, Finding, ON_THE_PAGE};

/// Less CPU time than this, in seconds, explains nothing.
const LITTLE: f64 = 0.02;
/// Nor does less than this share of all CPU time.
const LITTLE_SHARE: f64 = 0.01;

/// What records everything, with holdup and without it.
const RECORD: [&str; 2] = ["holdup record -- CMD", holdup_base::PERF];
/// What perf needs to copy stacks for those that were compiled without frame pointers.
pub(super) const WITH_STACKS: &str = "--call-graph dwarf,8192";
/// The same where the trace is of Windows.
const RECORD_ON_WINDOWS: [&str; 2] = holdup_base::ETW;

/// The gravest first.
pub(super) fn of(context: &Context, cpu: &CpuSeconds, findings: &[Finding], mostly_idle: bool) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let trace = context.trace;
    if !has_switches(context) {
        return vec![needs_recording(trace, without_switches(trace))];
    }
    if !has_wakes(context) && context.timeline.waits() > 0 {
        caveats.push(needs_recording(trace, "There are no wake-ups in this trace: who ended a wait is not known."));
    }
    let blind = blind_share(context);
    if is_by_perf(trace) && blind > MOSTLY_BLIND {
        let what = format!(
            "The stacks of {:.0} % of the waiting end in the C library or the kernel: what may be work that waits is taken for idleness.",
            100.0 * blind
        );
        caveats.push(Caveat { what, record: vec![RECORD[0].to_owned(), RECORD[1].replacen("-g", WITH_STACKS, 1)] });
    }
    let worked = cpu.busy + cpu.spin;
    let stood = cpu.held_up + cpu.runnable_idle;
    if is_explained(context, findings, mostly_idle) {
        return caveats;
    }
    if worked + stood < LITTLE.max(LITTLE_SHARE * cpu.total) {
        let whole = duration(cpu.total);
        let who = if context.focus.is_everything() { "all programs together" } else { "the program" };
        let worked = duration(worked);
        let but = unseen(context).map_or(".".to_owned(), |unseen| format!("; but its {unseen}"));
        let what = format!("Next to nothing happened: {who} worked for {worked} of the CPUs' {whole}{but}");
        caveats.push(Caveat { what, record: Vec::new() });
    } else if !findings.iter().any(|f| f.is_cause() && f.blame_cpu_s >= ON_THE_PAGE * cpu.total)
        && idle::is_seldom_active(context, cpu)
        && let Some(unseen) = unseen(context)
    {
        let what = format!("Next to nothing that the kernel sees held it up; but its {unseen}");
        caveats.push(Caveat { what, record: Vec::new() });
    }
    caveats
}

/// Whether one finding says what the program in focus did, if not on a CPU: it waited for what others did with them, or slept as it was told.
fn is_explained(context: &Context, findings: &[Finding], mostly_idle: bool) -> bool {
    let lasted = |f: &Finding| f.lasted_s > 0.5 * context.duration().seconds();
    let explains = |f: &Finding| match f.is_cause() {
        true => lasted(f),
        false => mostly_idle && (f.about.sleeps || idle::sleeps_for_its_user(context, f)),
    };
    !context.focus.is_everything() && findings.first().is_some_and(explains)
}

/// What a scheduler inside of the program in focus hides, if its threads are mostly those that have nothing to do.
fn unseen(context: &Context) -> Option<&'static str> {
    if context.focus.is_everything() {
        return None;
    }
    let (mut all, mut own) = (0, FxHashMap::<&'static str, u64>::default());
    for (_, cell) in context.blame.cells.iter().filter(|(key, _)| key.terminal == Terminal::IdleByDesign) {
        for (stack, ns) in &cell.wait_stacks {
            all += ns;
            if let Some(unseen) = context.classifier.unseen_at(*stack) {
                *own.entry(unseen).or_default() += ns;
            }
        }
    }
    own.into_iter().find(|(_, ns)| 2 * ns > all).map(|(unseen, _)| unseen)
}

/// From this share of the waiting on whose stacks tell nothing of the program, its silence is no all-clear.
const MOSTLY_BLIND: f64 = 0.5;

/// The share of the waiting whose stacks end in the C library or the kernel, of what has stacks.
fn blind_share(context: &Context) -> f64 {
    let waits = context.blame.cells.iter().flat_map(|(_, cell)| &cell.wait_stacks);
    place::blind_share(context, waits.map(|(stack, ns)| (*stack, *ns as f64)))
}

/// Whether waits can be told at all.
pub(super) fn has_switches(context: &Context) -> bool {
    context.trace.switches.rows() > 0
}

/// Whether it can be told who ended a wait.
pub(super) fn has_wakes(context: &Context) -> bool {
    context.trace.wakes.rows() > 0
}

fn needs_recording(trace: &Trace, what: &str) -> Caveat {
    let how = if trace.meta.host.os.starts_with("Windows") { RECORD_ON_WINDOWS } else { RECORD };
    Caveat { what: what.to_owned(), record: how.map(str::to_owned).to_vec() }
}

fn without_switches(trace: &Trace) -> &'static str {
    if trace.samples.rows() > 0 {
        "There are no context switches in this trace: it tells what ran, and nothing of what threads waited for."
    } else {
        "There are neither context switches nor samples in this trace: it tells nothing of what ran or waited."
    }
}

/// Without switches: what was sampled ran, and of the rest nothing is known.
pub(super) fn sampled(context: &Context) -> CpuSeconds {
    let total = Amount(context.blame.cpu.total).seconds();
    let (mut busy, mut other, mut no_work) = (0.0, 0.0, 0.0);
    for ((thread, _), weight) in &context.blame.profile {
        // Some sources sample idle CPUs, too.
        let sum = match *thread {
            ThreadIdx::IDLE => &mut no_work,
            thread if context.focus.contains(thread) => &mut busy,
            _ => &mut other,
        };
        *sum += Amount(*weight).seconds();
    }
    let busy = f64::min(busy, total);
    let other = f64::min(other, total - busy);
    let no_work = f64::min(no_work, total - busy - other);
    CpuSeconds { total, busy, other, no_work, lost: total - busy - other - no_work, ..CpuSeconds::default() }
}

/// Whether perf recorded it, which by itself follows frame pointers alone.
pub(super) fn is_by_perf(trace: &Trace) -> bool {
    trace.meta.format.starts_with("perf")
}
