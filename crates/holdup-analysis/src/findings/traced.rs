//! Programs that are stopped again and again by who traces them: strace, a debugger.

use holdup_trace::Table;

use super::context::Context;
use super::tally::Tally;
use crate::classify::WaitKind;
use crate::report::Finding;

/// What to do about it.
pub(super) const LESS: &str = "Trace less of it (strace -e trace=…, --seccomp-bpf), or by means that do not stop it each time (perf trace, bpftrace, holdup).";

/// Whether it waits more often for children than there are any to end: for what it traces.
fn traces(context: &Context, tally: &Tally) -> bool {
    let is_join = |stack| context.classifier.facts(stack).kind == Some(WaitKind::Join);
    tally.waits > context.trace.threads.len() as u64 && tally.share_at(is_join) > 0.5
}

/// Who is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Those that wait are traced.
    Traced,
    /// They trace, or one of two does.
    Either,
}

/// Whether most of the waiting is for a tracer, or the tracer's. O(stacks of the finding).
fn side(context: &Context, tally: &Tally) -> Option<Side> {
    let is_traced = |stack| context.classifier.facts(stack).traced;
    if tally.share_at(is_traced) > 0.5 {
        return Some(Side::Traced);
    }
    (tally.share_released(is_traced) > 0.5 || traces(context, tally)).then_some(Side::Either)
}

/// Whether it is. Without the tracer, its work would go, too.
pub(super) fn is_it(context: &Context, tally: &Tally) -> bool {
    side(context, tally).is_some()
}

/// Says so of a finding.
pub(super) fn add(context: &Context, tally: &Tally, finding: &mut Finding) {
    let Some(side) = side(context, tally) else { return };
    let who = match (side, finding.waiters.names.as_slice()) {
        (Side::Either, _) => "one traces the other".to_owned(),
        (Side::Traced, [one]) => format!("{one} is traced"),
        (Side::Traced, _) => "others are traced".to_owned(),
    };
    finding.title.add(&format!(", as {who} (ptrace)"));
    finding.advice = LESS.to_owned();
}
