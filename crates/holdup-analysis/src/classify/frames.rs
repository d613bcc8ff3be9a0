//! Which frames of a stack are whose.

use holdup_trace::tables::LocationRow;
use holdup_trace::{FrameId, StackId};

use super::{Classifier, is_kernel_module, is_runtime_module};
use crate::{runtime, schedulers};

impl Classifier<'_> {
    /// The locations of a stack that are neither the kernel's nor a runtime's and have no name, the innermost first.
    pub(crate) fn nameless_frames(&self, stack: StackId) -> Vec<(FrameId, LocationRow)> {
        let nameless = |l: &LocationRow| {
            let module = self.trace.text(l.module);
            let foreign = module.is_empty() || is_kernel_module(module) || is_runtime_module(module);
            !foreign && self.trace.text(l.function).contains("+0x") && !runtime::is_own(module, "")
        };
        self.frames_that(stack, nameless)
    }

    /// The function of a language's runtime in which the program's side of a stack ends, if it has a name.
    pub(crate) fn runtime_leaf(&self, stack: StackId) -> Option<(FrameId, LocationRow)> {
        let user = |l: &LocationRow| !is_kernel_module(self.trace.text(l.module));
        let is_own = |l: &LocationRow| {
            let (module, function) = (self.trace.text(l.module), self.trace.text(l.function));
            runtime::is_own(module, function) && !function.is_empty() && !function.contains("+0x")
        };
        self.frames_that(stack, user).into_iter().next().filter(|(_, l)| is_own(l))
    }

    /// Whether the stack is on a task of a runtime that told no names.
    pub(crate) fn is_of_nameless_task(&self, stack: StackId) -> bool {
        schedulers::at(self.trace, stack).is_some_and(|s| !s.nameless.is_empty())
    }

    /// The application's locations of a stack, the innermost first.
    pub fn application_frames(&self, stack: StackId) -> Vec<(FrameId, LocationRow)> {
        self.frames_that(stack, |l| self.is_application(l))
    }

    /// The locations of a stack that are written in an interpreted language, be it the program's or a library's.
    pub(crate) fn language_frames(&self, stack: StackId) -> Vec<(FrameId, LocationRow)> {
        let is_source = |l: &LocationRow| l.line > 0 || !self.trace.text(l.file).is_empty();
        let text = |id| self.trace.text(id);
        self.frames_that(stack, |l| is_source(l) && runtime::is_interpreted(text(l.module), text(l.function)))
    }

    fn frames_that(&self, stack: StackId, wanted: impl Fn(&LocationRow) -> bool) -> Vec<(FrameId, LocationRow)> {
        self.own_locations(stack).filter(|(_, l)| wanted(l)).collect()
    }

    /// The locations of a stack up to where its process' own life began, the innermost first.
    pub(super) fn own_locations(&self, stack: StackId) -> impl Iterator<Item = (FrameId, LocationRow)> {
        let text = |id| self.trace.text(id);
        let all = self.trace.stacks.frames(stack).flat_map(|f| self.trace.names.locations(f).map(move |l| (f, l)));
        all.take_while(move |(_, l)| !runtime::begins(text(l.module), text(l.function)))
    }
}
