//! A trace with all that its questions look at.

use holdup_analysis::classify::Classifier;
use holdup_analysis::focus::Focus;
use holdup_analysis::intervals::Timeline;
use holdup_analysis::lanes::Look;
use holdup_analysis::spans::SpanLanes;
use holdup_analysis::spins::SpinSites;
use holdup_analysis::{Disassembler, label};
use holdup_trace::{Table, ThreadIdx, Timestamp, Trace};

use crate::Result;

/// Events in a part, at least. A narrow window costs some parts, and a wide one two: those across its borders.
const PART: usize = 1 << 16;
/// The same for each thread: a border costs 16 bytes a thread.
const PART_PER_THREAD: usize = 16;

/// A trace with all that its questions look at. It is never given back: a process shows few traces, and ends with its page.
pub(crate) struct Study {
    pub(crate) name: String,
    pub(crate) trace: &'static Trace,
    pub(crate) classifier: &'static Classifier<'static>,
    pub(crate) focus: Focus,
    pub(crate) spins: SpinSites<'static>,
    pub(crate) disassembler: &'static dyn Disassembler,
    pub(crate) timeline: Timeline<'static>,
    pub(crate) spans: SpanLanes,
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
        let part = PART.max(PART_PER_THREAD * trace.threads.tid.len());
        let timeline = Timeline::with_parts(trace, &focus, classifier, part)?;
        let spans = SpanLanes::new(trace)?;
        let spins = SpinSites::new(trace, classifier, disassembler);
        Ok(Study { name: name.to_owned(), trace, classifier, focus, spins, disassembler, timeline, spans })
    }

    /// What tells apart what threads do.
    pub(crate) fn look(&self) -> Look<'_> {
        Look { classifier: self.classifier, spins: &self.spins, period: self.trace.meta.sample_period_ns }
    }

    /// The thread with these numbers that lived at `t`, else any that had them. O(threads).
    pub(crate) fn thread(&self, pid: u32, tid: u32, t: Timestamp) -> Option<ThreadIdx> {
        let same = |row: &holdup_trace::tables::Thread| row.tid == tid && row.pid == pid;
        let all = || self.trace.threads.rows().enumerate().skip(1).filter(|(_, row)| same(row));
        let living = all().find(|(_, row)| row.start <= t && t <= row.end);
        living.or_else(|| all().next()).map(|(i, _)| ThreadIdx(i as u32))
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
