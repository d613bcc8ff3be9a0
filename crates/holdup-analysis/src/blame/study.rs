//! What a sweep looks at.

use holdup_trace::Trace;

use super::Window;
use crate::classify::Classifier;
use crate::focus::Focus;
use crate::intervals::Timeline;
use crate::spins::SpinSites;

/// What a sweep looks at.
#[derive(Clone, Copy)]
pub struct Study<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Its parts.
    pub timeline: &'a Timeline<'a>,
    /// Whose waits count.
    pub focus: &'a Focus,
    /// What stacks tell.
    pub classifier: &'a Classifier<'a>,
    /// Which of them spin.
    pub spins: &'a SpinSites<'a>,
    /// Which part of its time.
    pub window: Window,
}

impl Study<'_> {
    /// Nanoseconds for each sample.
    pub(super) fn period(&self) -> f64 {
        self.trace.meta.sample_period_ns as f64
    }

    /// Whether a part of the timeline reaches into the window.
    pub(crate) fn touches(&self, part: usize) -> bool {
        let (from, to) = self.timeline.span(part);
        let last = part + 1 == self.timeline.len();
        // Parts can be without length: no time passes in them, but waits begin.
        from <= self.window.to && (to > self.window.from || from >= self.window.from || last)
    }

    /// Spans of blame closer than this are one, in nanoseconds.
    pub(super) fn gap(&self) -> u64 {
        (self.window.to - self.window.from) / 500
    }
}
