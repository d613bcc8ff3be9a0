//! What is said of waits beside what ran.

use holdup_trace::{Amount, Nanos};

use super::super::context::Context;
use super::super::idle;
use crate::classify::WaitKind;
use crate::label;
use crate::replay::Taken;
use crate::report::{Activity, Finding, FindingKind};

/// How long threads waited for what is told, in CPU time.
#[derive(Debug, Clone, Copy)]
pub(in crate::findings) struct Waited {
    /// All of it.
    pub(in crate::findings) charged: Amount,
    /// What adds up of it.
    pub(in crate::findings) shown: Amount,
    /// The CPU time, in seconds, that spinning cost, be it that it gave way to others meanwhile.
    pub(in crate::findings) spun_s: f64,
    /// Whether no cause of it [matters](super::matters) by itself.
    pub(in crate::findings) none_matters: bool,
}

/// How the advice begins where threads waited for next to nothing.
pub(in crate::findings) const NO_WAIT: &str = "There is no wait to mend: ";

/// Waits of more than this share of the time are worth a word, though no CPU was idle for them.
const LONG: f64 = 0.25;

/// Says what was waited for while all CPUs were at work: a thread may stand still for most of the time, and others need it.
pub(super) fn say_who(context: &Context, busy: &mut Finding, findings: &[(Finding, Option<Taken>)]) {
    let waits = |f: &&Finding| {
        let by_design = matches!(f.kind, FindingKind::CpuStarved | FindingKind::IdleByDesign);
        f.is_cause() && !by_design && f.waiters.total_s > LONG * context.duration().seconds()
    };
    let most = findings.iter().map(|(f, _)| f).filter(waits);
    let most = most.max_by(|a, b| a.waiters.total_s.total_cmp(&b.waiters.total_s));
    let Some(advice) = busy.advice.strip_prefix(NO_WAIT) else { return };
    // Nobody waited for it, and yet the others had nothing left to do.
    let alone = findings.iter().map(|(f, _)| f).filter(|f| super::is_alone(f));
    let longest = alone.max_by(|a, b| a.lasted_s.total_cmp(&b.lasted_s));
    if let Some(alone) = longest.filter(|f| f.lasted_s > LONG * context.duration().seconds()) {
        let (who, lasted) = (&alone.culprit.process, label::duration(alone.lasted_s));
        busy.advice = format!("For {lasted} {who} worked alone: {} Else {advice}", alone.advice);
        return;
    }
    if let Some(sleeper) = sleeper(context, findings) {
        let (title, function) = (sleeper.title.as_str(), &sleeper.culprit.function);
        busy.advice =
            format!("{title}, in {function}: if others wait for what it does, that holds them up. Else {advice}");
        return;
    }
    // Who never gets a lock, as those that run take it again and again, is charged to nobody: no CPU was idle.
    let locks = Nanos(context.blame.thread_ns(|key| key.kind == WaitKind::Lock)).seconds();
    let threads = match most {
        Some(most) => format!("threads waited for {} in all (--all)", label::duration(most.waiters.total_s)),
        None if locks > LONG * context.duration().seconds() => {
            let table = "holdup table … waits --where 'kind == lock'";
            format!("threads waited for locks for {} in all ({table} tells which)", label::duration(locks))
        }
        None => return,
    };
    busy.advice = format!("No CPU stood still for it, but {threads}. To have more done, {advice}");
}

/// The advice where threads did wait.
pub(super) fn beside(advice: &str) -> String {
    let work = advice.strip_prefix(NO_WAIT);
    work.map_or(advice.to_owned(), |work| format!("Nothing that threads wait for takes much of it (--all): {work}"))
}

/// Who sleeps for this share of the time may be asked all the time, so that it never waits for that.
const ALWAYS: f64 = 0.8;

/// What slept nearly all the time, in a function of the program, where there was mostly nothing to do: nobody is known to wait for it, as nobody
/// is where a worker finds the next piece of work each time that it looks.
fn sleeper<'f>(context: &Context, findings: &'f [(Finding, Option<Taken>)]) -> Option<&'f Finding> {
    let sleeps = |f: &&Finding| {
        f.kind == FindingKind::IdleByDesign
            && f.culprit.activity == Activity::Slept
            && !f.culprit.function.is_empty()
            && f.lasted_s > ALWAYS * context.duration().seconds()
    };
    let mostly_idle = idle::is_seldom_active(context, &context.cpu_seconds());
    findings.iter().map(|(f, _)| f).filter(|_| mostly_idle).find(sleeps)
}
