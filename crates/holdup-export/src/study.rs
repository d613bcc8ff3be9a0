//! A trace that was followed once, with all that exports look at.

use holdup_analysis::blame::{Study, Window};
use holdup_analysis::classify::Classifier;
use holdup_analysis::focus::Focus;
use holdup_analysis::intervals::Timeline;
use holdup_analysis::lanes::Look;
use holdup_analysis::spins::SpinSites;
use holdup_trace::Error;

use crate::{Result, Source};

/// Follows the trace for the first time, and hands it to `then`. O(events).
pub(crate) fn studied<R>(source: &Source, then: impl FnOnce(&Study) -> Result<R>) -> Result<R> {
    let Source { trace, name, options, disassembler } = *source;
    let focus = Focus::find(trace, options.focus.as_deref()).map_err(|what| Error::Input(format!("{name}: {what}")))?;
    let classifier = Classifier::new(trace).with_sites(&options.idle, &options.work);
    let timeline = Timeline::new(trace, &focus, &classifier)?;
    let spins = SpinSites::new(trace, &classifier, disassembler);
    let window = Window { from: 0, to: trace.meta.duration_ns };
    then(&Study { trace, timeline: &timeline, focus: &focus, classifier: &classifier, spins: &spins, window })
}

/// What tells apart what threads do.
pub(crate) fn look<'a>(study: &Study<'a>) -> Look<'a> {
    Look { classifier: study.classifier, spins: study.spins, period: study.trace.meta.sample_period_ns }
}
