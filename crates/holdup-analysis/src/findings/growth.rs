//! What grows: said of culprits whose rounds take longer and longer.

use holdup_trace::{Nanos, ThreadIdx};

use super::context::Context;
use super::rounds::Grown;
use crate::classify::WaitKind;
use crate::label::{self, duration};
use crate::report::{Finding, FindingKind};

/// Rounds that make up less of the time in which they lie tell nothing of what held anybody up.
const SHARE: f64 = 0.1;

/// Says of what the culprits do where each of it takes longer than the last.
pub(super) fn add(context: &Context, findings: &mut [Finding]) {
    use FindingKind::{CpuStarved, IdleByDesign, OwnerNotRunning};
    let threads = &context.trace.threads;
    for finding in findings {
        // Of these it is not work that takes longer.
        if matches!(finding.kind, CpuStarved | IdleByDesign | OwnerNotRunning) {
            continue;
        }
        let (pid, tid) = (finding.culprit.pid, finding.culprit.tid);
        let is_it = |t: ThreadIdx| threads.tid.get(t.index()) == Some(&tid) && threads.pid.get(t.index()) == Some(&pid);
        let Some((kind, growth)) = context.learned.rounds.growing(is_it, SHARE * 1e9 * finding.lasted_s) else {
            continue;
        };
        let [from, to] = [growth.from, growth.to].map(|ns| duration(context.limits.once(Nanos(ns as u64).amount())));
        let who = if finding.culprit.thread.is_empty() { "it" } else { &finding.culprit.thread };
        let rounds = label::count(u64::from(growth.count));
        let upto = if growth.what == Grown::Longest { "up to " } else { "" };
        finding.evidence.push(format!(
            "it grows: {who} worked for {upto}{from} between two waits {} at first and for {upto}{to} in the end, in {rounds} rounds",
            between(kind)
        ));
    }
}

/// What there is between two rounds.
fn between(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Lock => "for a lock",
        WaitKind::Futex | WaitKind::Condition => "for another thread",
        WaitKind::Disk => "for the disk",
        WaitKind::Timer => "for a time to pass",
        WaitKind::Input => "for input",
        WaitKind::Read => "for bytes to read",
        WaitKind::Write => "for room to write",
        WaitKind::Join => "for a child or thread to end",
        WaitKind::Signal => "for a signal",
        WaitKind::PageFault => "for a page",
        WaitKind::Stopped => "to be let go on",
        WaitKind::KernelIdle => "for work",
        WaitKind::Unknown => "of one kind",
    }
}
