//! Which of two findings comes first, where events are missing and little is between them.

use super::context::Context;
use super::order::rank;
use crate::label;
use crate::report::{Confidence, Finding};

/// The share of switches that had to be inferred from which on what is charged may be wrong by as much as is between two findings.
const MISSING: f64 = 0.002;
/// What has this part of the first one's charge may as well be the first.
const CLOSE: f64 = 0.8;

/// Says of the first cause that another one may matter more, if so much is missing. O(findings).
pub(super) fn doubt(context: &Context, findings: &mut [Finding]) {
    let (health, switches) = (&context.timeline.health, context.trace.switches.rows());
    let is_missing = health.inferred as f64 > MISSING * switches as f64 || health.lost_events > 0;
    let mut causes = findings.iter_mut().filter(|f| f.is_cause());
    let Some(first) = causes.next().filter(|_| is_missing) else { return };
    let least = CLOSE * rank(first);
    if causes.any(|f| rank(f) >= least) {
        first.confidence = Confidence::Low;
        let missing = label::count(health.inferred.max(health.lost_events));
        first.doubts.push(format!("{missing} switches are missing, and what comes next may matter as much"));
    }
}
