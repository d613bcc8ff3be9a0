//! Programs that are stopped again and again by who traces them: strace, a debugger.

use super::context::Context;
use super::tally::Tally;
use crate::report::Finding;

/// What to do about it.
pub(super) const LESS: &str = "Trace less of it (strace -e trace=…, --seccomp-bpf), or by means that do not stop it each time (perf trace, bpftrace, holdup).";

/// Says so of a finding, if most of the waiting is for the tracer. O(stacks of the finding).
pub(super) fn add(context: &Context, tally: &Tally, finding: &mut Finding) {
    let (mut traced, mut all) = (0, 0);
    for (stack, ns) in &tally.wait_stacks {
        all += ns;
        traced += if context.classifier.facts(*stack).traced { *ns } else { 0 };
    }
    if 2 * traced <= all {
        return;
    }
    let whom = match finding.waiters.names.as_slice() {
        [one] => format!("{one} is"),
        _ => "others are".to_owned(),
    };
    finding.title.add(&format!(", as {whom} traced (ptrace)"));
    finding.advice = LESS.to_owned();
}
