//! The sentences of a report.

use holdup_base::numbers::figure;

use super::{CutKind, Report};
use crate::harness::Cut;

const ASKED: &str = "interrupted";

/// A thread that runs for more than this share of the time can't do more.
const BUSY: f64 = 0.9;

/// A generator that waits for a CPU for more than this share of the time measures its own waits.
const WAITING: f64 = 0.05;

pub(super) fn cut(cut: &Cut) -> String {
    match cut {
        Cut::Asked => ASKED.to_owned(),
        Cut::Error(error) => error.to_string(),
        Cut::OnlyErrors(last) => format!("nothing but errors came for too long; the last: {last}"),
        Cut::Running => "it had not ended when this was written".to_owned(),
    }
}

/// The kind of an earlier version's report, which has only the sentence: what matters is whether it failed.
pub(super) fn kind_of(sentence: &str) -> CutKind {
    if sentence == ASKED { CutKind::Asked } else { CutKind::Error }
}

/// What stands against trusting the figures, the gravest first.
pub(super) fn warnings(report: &Report) -> Vec<String> {
    let was_asked = report.cut_kind == Some(CutKind::Asked);
    let mut warnings = Vec::new();
    warnings.extend(report.cut.as_ref().map(|why| {
        let what = if was_asked { "you ended the run early" } else { "the run was cut" };
        format!("{what} after {:.1} s; what was measured until then is here: {why}", report.elapsed_s)
    }));
    warnings.extend(saturated(report));
    warnings.extend(bottleneck(report));
    warnings.extend(waits(report));
    warnings.extend(late(report));
    warnings.extend(backlog(report));
    if report.unfinished > 0 {
        warnings.push(format!(
            "{} calls had not ended when the run was over; their times are not in the figures",
            report.unfinished
        ));
    }
    if report.throughput.mean > 0.0 && report.throughput.ci95[0] == report.throughput.ci95[1] {
        warnings.push("the run is too short to say how sure its throughput is".to_owned());
    }
    warnings
}

fn saturated(report: &Report) -> Option<String> {
    let rate = report.offered().filter(|_| report.saturated)?;
    let missed = if report.unserved == 0 {
        String::new()
    } else {
        format!(", and {} of {} calls due were never begun", report.unserved, report.due.unwrap_or(0))
    };
    Some(format!("saturated: offered {}/s, served {}/s{missed}", figure(rate), figure(report.throughput.mean)))
}

/// A few calls are always late; more than can be under way are a queue.
fn backlog(report: &Report) -> Option<String> {
    let slots = report.threads as u64 * report.concurrency as u64;
    (report.warmup_unserved > slots).then(|| {
        format!(
            "{} calls due in the warm-up were not begun when it was over; they were dropped, and the measurement began \
             without them",
            report.warmup_unserved
        )
    })
}

/// Whether the generator itself could not do more. A script that only computes is what it measures.
fn bottleneck(report: &Report) -> Option<String> {
    if report.address.is_none() || report.generator.busiest < BUSY {
        return None;
    }
    Some(format!(
        "the generator is the bottleneck: its busiest thread ran for {:.0} % of the time, so the server could do more; \
         use more than {} --threads",
        100.0 * report.generator.busiest,
        report.threads
    ))
}

fn waits(report: &Report) -> Option<String> {
    let share = report.generator.ready_s / (report.elapsed_s * report.threads as f64).max(1e-9);
    (report.cycles > 0 && share > WAITING).then(|| {
        format!(
            "the generator waited for a CPU for {:.0} % of the time: the machine is too busy to measure with",
            100.0 * share
        )
    })
}

/// Calls that began late though nothing but the generator held them up.
fn late(report: &Report) -> Option<String> {
    let [mean, max] = report.generator.late_ms?;
    (mean > 0.1 * report.service_ms.p50 && mean > 0.2).then(|| {
        format!(
            "the generator began calls {mean:.2} ms late on average (at most {max:.1} ms): response times include that"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::ScriptError;

    #[test]
    fn an_error_that_says_interrupted_is_an_error() {
        let error = Cut::Error(ScriptError::new(None, ASKED));
        assert_eq!((cut(&error).as_str(), CutKind::of(&error)), (ASKED, CutKind::Error));
        assert_eq!(CutKind::of(&Cut::Asked), CutKind::Asked);
        // All that an earlier version wrote is the sentence.
        assert_eq!([kind_of(ASKED), kind_of("no server")], [CutKind::Asked, CutKind::Error]);
    }
}
