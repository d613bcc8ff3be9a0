//! Who had nothing to do.

use super::context::Context;
use super::tally::{Group, Tally};
use crate::report::{CpuSeconds, Finding, FindingKind};

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
}

/// Whether the focus worked, or was held up, for less than half of the time. Who works all the time with one thread has work, however
/// many CPUs that leaves idle.
pub(super) fn is_seldom_active(context: &Context, cpu: &CpuSeconds) -> bool {
    let active = cpu.busy + cpu.spin + cpu.held_up + cpu.runnable_idle;
    active < 0.5 * context.duration().seconds()
}

/// So many times as much time without work as any cause cost: to mend them all would save next to nothing.
const NEXT_TO_NOTHING: f64 = 10.0;

/// Whether the program in focus mostly had nothing to do, and no cause cost much
/// beside that. A server that waits for requests does what it is for; where it is not known whether it is one, nothing is said.
pub(super) fn is_mostly(context: &Context, cpu: &CpuSeconds, findings: &[Finding]) -> bool {
    let Some(idle) = findings.iter().find(|f| f.kind == FindingKind::IdleByDesign) else { return false };
    let serves = idle.about.culprits.first().and_then(|thread| context.timeline.is_server(*thread));
    let most = findings.iter().filter(|f| f.is_cause()).map(|f| f.blame_cpu_s).fold(0.0, f64::max);
    serves == Some(false)
        && !context.focus.is_everything()
        && is_seldom_active(context, cpu)
        && cpu.no_work > NEXT_TO_NOTHING * most
}
