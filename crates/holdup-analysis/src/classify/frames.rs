//! Which frames of a stack are whose.

use holdup_trace::tables::LocationRow;
use holdup_trace::{FrameId, StackId, StringId};

use super::Classifier;
use super::places::{Said, is_own};
use crate::schedulers::Scheduler;

impl Classifier<'_> {
    /// The locations of a stack that are neither the kernel's nor a runtime's and have no name, the innermost first.
    pub(crate) fn nameless_frames(&self, stack: StackId) -> Vec<(FrameId, LocationRow)> {
        self.frames_that(stack, |said| said.is_nameless).collect()
    }

    /// The function of a language's runtime in which the program's side of a stack ends, if it has a name.
    pub(crate) fn runtime_leaf(&self, stack: StackId) -> Option<(FrameId, LocationRow)> {
        let ends_it = |l: &LocationRow| {
            let (module, function) = (self.trace.text(l.module), self.trace.text(l.function));
            is_own(module, function) && !function.is_empty() && !function.contains("+0x")
        };
        self.frames_that(stack, |said| !said.in_kernel).next().filter(|(_, l)| ends_it(l))
    }

    /// Whether the stack is on a task of a runtime that told no names.
    pub(crate) fn is_of_nameless_task(&self, stack: StackId) -> bool {
        self.scheduler_at(stack).is_some_and(|s| !s.nameless.is_empty())
    }

    /// The scheduler on one of whose tasks a stack is: of two the inner one.
    pub(crate) fn scheduler_at(&self, stack: StackId) -> Option<&'static Scheduler> {
        self.places_of(stack).find_map(|said| said.task)
    }

    /// What of its tasks' waiting the kernel does not see, of the scheduler one of whose threads is idle here.
    pub(super) fn unseen_in(&self, stack: StackId) -> Option<&'static str> {
        self.places_of(stack).find_map(|said| said.unseen)
    }

    /// Whether what a loop has called, which never runs within a task, is on the stack: code of the program, or of a task, be it without names.
    /// Otherwise the loop itself waits here for whatever comes. None without such a loop.
    pub(crate) fn is_called_by_loop(&self, stack: StackId) -> Option<bool> {
        let mut is_called = false;
        for said in self.places_of(stack) {
            if said.loops {
                return Some(is_called);
            }
            is_called |= said.is_application || said.task.is_some();
        }
        None
    }

    /// The application's locations of a stack, the innermost first.
    pub fn application_frames(&self, stack: StackId) -> Vec<(FrameId, LocationRow)> {
        self.frames_that(stack, |said| said.is_application).collect()
    }

    /// Whether it is where a program begins.
    pub(crate) fn is_main(&self, location: &LocationRow) -> bool {
        self.trace.text(location.function) == "main"
    }

    /// The innermost of these.
    pub(crate) fn application_leaf(&self, stack: StackId) -> Option<LocationRow> {
        self.frames_that(stack, |said| said.is_application).next().map(|(_, location)| location)
    }

    /// Their functions, each with the one that called it, the outermost first. Of what is interpreted the caller is, too: a stale word on the
    /// interpreter's own stack may look like one. O(depth).
    pub(crate) fn application_calls(&self, stack: StackId) -> Vec<(StringId, Option<StringId>)> {
        let frames: Vec<_> = self.own_locations(stack).map(|(_, number)| number).collect();
        let (mut caller, mut interpreted, mut calls) = (None, None, Vec::new());
        for number in frames.into_iter().rev() {
            let said = self.places.at(self.trace, number);
            if said.is_application {
                let function = self.trace.names.location(number).function;
                calls.push((function, if said.is_interpreted { interpreted } else { caller }));
                caller = Some(function);
                interpreted = caller.filter(|_| said.is_interpreted).or(interpreted);
            }
        }
        calls
    }

    /// The locations of a stack that are written in an interpreted language, be it the program's or a library's; or of a library that runs tasks
    /// of its own.
    pub(crate) fn language_frames(&self, stack: StackId) -> Vec<(FrameId, LocationRow)> {
        let is_source = |l: &LocationRow| l.line > 0 || !self.trace.text(l.file).is_empty();
        self.frames_that(stack, |said| said.is_interpreted || said.is_of_library)
            .filter(|(_, l)| is_source(l))
            .collect()
    }

    /// Whether the location with this number is code of the program.
    pub(crate) fn is_application_at(&self, number: usize) -> bool {
        self.places.at(self.trace, number).is_application
    }

    /// Whether garbage is collected at this stack, by whomever. O(depth) for the first time.
    pub(crate) fn is_collecting(&self, stack: StackId) -> bool {
        let collects = || self.places_of(stack).any(|said| said.collects || said.collector.is_some());
        self.collecting.get(stack.index()).is_some_and(|known| *known.get_or_init(collects))
    }

    /// Whether a runtime collects garbage at this stack.
    pub(crate) fn collects_at(&self, stack: StackId) -> bool {
        self.places_of(stack).any(|said| said.collects)
    }

    /// What to do about the collector in which a stack is that a scheduler inside of the program runs.
    pub(crate) fn collector_at(&self, stack: StackId) -> Option<&'static str> {
        self.places_of(stack).find_map(|said| said.collector)
    }

    /// All places of a stack, the innermost first.
    fn places_of(&self, stack: StackId) -> impl Iterator<Item = &Said> {
        let locations = self.trace.stacks.frames(stack).flat_map(|frame| self.trace.names.rows(frame));
        locations.map(|number| self.places.at(self.trace, number))
    }

    fn frames_that(
        &self,
        stack: StackId,
        wanted: impl Fn(&Said) -> bool,
    ) -> impl Iterator<Item = (FrameId, LocationRow)> {
        let wanted = self.own_locations(stack).filter(move |(_, number)| wanted(self.places.at(self.trace, *number)));
        wanted.map(|(frame, number)| (frame, self.trace.names.location(number)))
    }

    /// The locations of a stack, by number, up to where its process' own life began, the innermost first.
    pub(super) fn own_locations(&self, stack: StackId) -> impl Iterator<Item = (FrameId, usize)> {
        let all = self.trace.stacks.frames(stack).flat_map(|f| self.trace.names.rows(f).map(move |number| (f, number)));
        all.take_while(move |(_, number)| !self.places.at(self.trace, *number).begins)
    }
}
