//! Who runs and yet only waits: spinning, told from the code at the sampled instruction.
//!
//! A loop that pauses, that looks at one place until it changes, or that tries an exchange again is seen in the code
//! itself ([`crate::code::CodeLoop::is_spin`]). Where there is none (code compiled at run time, stripped libraries whose
//! file is gone) the runtimes' own functions are known by name, as are the kernel's and `sched_yield`.

mod kernel;
mod names;

use std::sync::OnceLock;

use holdup_trace::tables::LocationRow;
use holdup_trace::{FrameId, StackId, StringId, Trace};

use crate::classify::{Classifier, StackFacts, is_kernel_module, is_runtime_module};
use crate::code::Disassembler;
use crate::leaves::{Leaf, Leaves};

pub(crate) use kernel::lock_at as kernel_lock_at;

/// Tells the stacks whose thread only waits for another CPU. Each is looked at once.
pub struct SpinSites<'a> {
    trace: &'a Trace,
    classifier: &'a Classifier<'a>,
    leaves: Leaves<'a>,
    known: Vec<OnceLock<bool>>,
}

impl<'a> SpinSites<'a> {
    /// For the stacks of `trace`. Nothing is decoded before somebody asks.
    pub fn new(trace: &'a Trace, classifier: &'a Classifier<'a>, disassembler: &'a dyn Disassembler) -> Self {
        let known = (0..=trace.stacks.len()).map(|_| OnceLock::new()).collect();
        SpinSites { trace, classifier, leaves: Leaves::new(trace, disassembler), known }
    }

    /// Whether a thread with this stack spins.
    pub fn has(&self, stack: StackId) -> bool {
        // A damaged id is in no table.
        stack != StackId::NONE
            && self.known.get(stack.index()).is_some_and(|known| *known.get_or_init(|| self.examine(stack)))
    }

    /// The instruction at which a thread with this stack is.
    pub(crate) fn leaf(&self, stack: StackId) -> Leaf {
        self.leaves.of(stack)
    }

    /// Whether a thread with this stack is at an atomic instruction of its own, or has just done one.
    pub(crate) fn is_atomic(&self, stack: StackId) -> bool {
        stack != StackId::NONE && !self.classifier.facts(stack).in_kernel && self.leaves.is_behind_atomic(stack)
    }

    /// The same, or at other memory in a function that has such an instruction: it may be the line that it changes.
    pub(crate) fn is_beside_atomic(&self, stack: StackId) -> bool {
        stack != StackId::NONE && !self.classifier.facts(stack).in_kernel && self.leaves.is_beside_atomic(stack)
    }

    fn examine(&self, stack: StackId) -> bool {
        let facts = self.classifier.facts(stack);
        if facts.in_kernel {
            return is_kernel_spin(&facts);
        }
        let mut frames = self.trace.stacks.frames(stack);
        let Some(frame) = frames.next() else { return false };
        let leaf = self.leaves.of_frame(frame);
        let below = |caller: FrameId| self.leaves.of_frame(caller).in_spin;
        leaf.in_spin
            || self.is_named(frame)
            || (leaf.is_helper && frames.next().is_some_and(below))
            || self.driver(stack).is_some_and(|driver| {
                // What has come is copied; from a device nothing comes before the end.
                self.awaits_device(driver) || !self.is_any(frame, |l| is_runtime_module(self.trace.text(l.module)))
            })
    }

    /// The function on a stack that looks again and again whether anything has come, by calling others.
    pub(crate) fn driver(&self, stack: StackId) -> Option<StringId> {
        let mut functions =
            self.trace.stacks.frames(stack).flat_map(|f| self.trace.names.locations(f)).map(|l| l.function);
        functions.find(|name| names::drives(self.trace.text(*name)))
    }

    /// Whether `function`, as [`SpinSites::driver`] names it, waits for a device: for no thread.
    pub(crate) fn awaits_device(&self, function: StringId) -> bool {
        names::awaits_device(self.trace.text(function))
    }

    /// Whether this is true of a function inlined at `frame`, or of its own.
    fn is_any(&self, frame: FrameId, test: impl Fn(&LocationRow) -> bool) -> bool {
        self.trace.names.locations(frame).any(|l| test(&l))
    }

    /// Whether a function inlined at `frame`, or its own, is known to do nothing but wait.
    fn is_named(&self, frame: FrameId) -> bool {
        let text = |id| self.trace.text(id);
        self.is_any(frame, |l| !is_kernel_module(text(l.module)) && names::spins(text(l.function), text(l.module)))
    }
}

/// Whether the kernel burns the thread's time: for a lock of its own, or because the thread gives way again and again.
pub(crate) fn is_kernel_spin(facts: &StackFacts) -> bool {
    facts.kernel_spin || facts.yields
}
