//! What the processes of a row waited for beside each other: a disk, and others that slept.

use holdup_trace::{Amount, Nanos, StringId, ThreadIdx};

use super::super::context::Context;
use super::super::place;
use super::super::tally::{Group, Tally};
use super::{AT_WORK, Row};
use crate::label::duration;
use crate::report::Finding;

/// Others that sleep while the row's processes wait for them: those that are asked at the same time may sleep at the same time.
#[derive(Default)]
pub(super) struct Sleepers {
    /// For how long processes of the row waited for them, and for the one for which they did so longest: who that is, and where it slept.
    pub(super) lasted: Nanos,
    longest: Nanos,
    program: StringId,
    function: StringId,
    /// Who they are.
    pub(super) threads: Vec<ThreadIdx>,
    /// What is charged to them.
    pub(super) rank: Amount,
}

impl Sleepers {
    /// Those for which none but `waits` picks wait. O(n log n) in their spans.
    pub(super) fn of<'g>(
        context: &Context,
        others: impl Iterator<Item = &'g (Group, Tally)>,
        waits: impl Fn(&ThreadIdx) -> bool,
    ) -> Self {
        let mut found = Sleepers::default();
        for (group, tally) in others {
            let Group::Timer(program, function) = *group else { continue };
            if tally.threads.iter().all(&waits) {
                let lasted = context.spans(tally, |_| true).1;
                found.lasted += lasted;
                found.rank += tally.rank;
                found.threads.extend(tally.ends().keys());
                if lasted > found.longest {
                    found = Sleepers { longest: lasted, program, function, ..found };
                }
            }
        }
        found
    }

    /// Whether it is much of the row's time.
    pub(super) fn matter(&self, row: &Row) -> bool {
        self.longest.0 as f64 >= AT_WORK * row.covered as f64
    }

    /// Says so, if it is.
    pub(super) fn told_in(&self, context: &Context, finding: Finding, row: &Row) -> Finding {
        if !self.matter(row) {
            return finding;
        }
        let (who, at) = (context.trace.text(self.program), context.trace.text(self.function));
        let slept = if at.is_empty() { String::new() } else { format!(" in {at}") };
        let lasted = duration(context.limits.once(self.longest.amount()));
        Finding {
            title: format!("{}; for {lasted} they waited for {who}, which slept{slept}", finding.title).into(),
            advice: format!("{} Or see why {who} sleeps{slept}.", finding.advice),
            ..finding
        }
    }
}

/// From this share of the row's time on it is worth saying that they waited for a disk.
const AT_DISK: f64 = 0.25;

/// Says for how long and where they waited for a disk, if they did so for much of the time.
pub(super) fn with_disk(context: &Context, finding: Finding, row: &Row, at_disk: &Tally) -> Finding {
    if (at_disk.waited.0 as f64) < AT_DISK * row.covered as f64 {
        return finding;
    }
    let Some(at) = place::place(context, at_disk.main_site(context.classifier)) else { return finding };
    let (function, lasted) = (context.trace.text(at.function), duration(context.limits.once(at_disk.waited.amount())));
    Finding {
        title: format!("{}; they waited for the disk for {lasted}", finding.title).into(),
        advice: format!("Ask the disk less often in {function}: in batches, or ahead of time. {}", finding.advice),
        ..finding
    }
}
