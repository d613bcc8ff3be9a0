//! A trace with all that its questions look at.

use holdup_analysis::classify::Classifier;
use holdup_analysis::focus::Focus;
use holdup_analysis::intervals::Timeline;
use holdup_analysis::lanes::Look;
use holdup_analysis::spins::SpinSites;
use holdup_analysis::{Disassembler, label};
use holdup_trace::{ThreadIdx, Trace};

use crate::Result;

/// A trace with all that its questions look at. It is never given back: a process shows few traces, and ends with its page.
pub(crate) struct Study {
    pub(crate) name: String,
    pub(crate) trace: &'static Trace,
    pub(crate) classifier: &'static Classifier<'static>,
    pub(crate) focus: Focus,
    pub(crate) spins: SpinSites<'static>,
    pub(crate) disassembler: &'static dyn Disassembler,
    pub(crate) timeline: Timeline<'static>,
}

impl Study {
    /// Follows the trace for the first time. O(events).
    ///
    /// # Errors
    /// If a table is damaged.
    pub(crate) fn new(trace: Trace, name: &str, disassembler: Box<dyn Disassembler + Send>) -> Result<Self> {
        let trace: &'static Trace = Box::leak(Box::new(trace));
        let classifier: &'static Classifier<'static> = Box::leak(Box::new(Classifier::new(trace)));
        let disassembler: &'static dyn Disassembler = Box::leak(disassembler);
        let focus = Focus::new(trace, None);
        let timeline = Timeline::new(trace, &focus, classifier)?;
        let spins = SpinSites::new(trace, classifier, disassembler);
        Ok(Study { name: name.to_owned(), trace, classifier, focus, spins, disassembler, timeline })
    }

    /// What tells apart what threads do.
    pub(crate) fn look(&self) -> Look<'_> {
        Look { classifier: self.classifier, spins: &self.spins, period: self.trace.meta.sample_period_ns }
    }

    /// `name (tid)`.
    pub(crate) fn label(&self, thread: ThreadIdx) -> String {
        let tid = self.trace.threads.tid.get(thread.index()).copied().unwrap_or(0);
        match label::thread_name(self.trace, thread) {
            "" => format!("thread {tid}"),
            name => format!("{name} ({tid})"),
        }
    }
}
