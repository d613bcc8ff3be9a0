//! From whom programs get their work.

use holdup_trace::{StringId, ThreadIdx};
use rustc_hash::FxHashMap;

use crate::blame::Study;
use crate::intervals::{Place, Wait};

/// From this share of its waits for work on that another program of the focus ended, a program is fed by that one.
const MOSTLY: f64 = 0.6;

/// How long the focus's programs waited for work, in nanoseconds, by who ended it.
#[derive(Debug, Default)]
pub(crate) struct Fed(FxHashMap<(StringId, By), u64>);

/// Who sent work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum By {
    /// Another program of the focus.
    Inside(StringId),
    /// A program beside the focus.
    Outside(StringId),
    /// Nobody on this machine.
    Nobody,
}

impl Fed {
    /// Counts a wait of the focus. What threads of one program give each other is no input.
    pub(super) fn add(&mut self, wait: &Wait, study: &Study) {
        let program = |thread: ThreadIdx| study.trace.threads.process.get(thread.index()).copied();
        let Some(own) = program(wait.thread).filter(|_| wait.place == Place::Home && !wait.exempt) else { return };
        let by = match program(wait.waker) {
            None => By::Nobody,
            Some(_) if study.focus.is_kernel(wait.waker) => By::Nobody,
            Some(by) if study.focus.contains(wait.waker) => By::Inside(by),
            Some(by) => By::Outside(by),
        };
        let ns = wait.woken.min(study.window.to).saturating_sub(wait.start.max(study.window.from));
        if by != By::Inside(own) {
            let sum = self.0.entry((own, by)).or_default();
            *sum = sum.saturating_add(ns);
        }
    }

    /// Adds what an earlier part tells.
    pub(super) fn absorb(&mut self, earlier: Fed) {
        for (pair, ns) in earlier.0 {
            let sum = self.0.entry(pair).or_default();
            *sum = sum.saturating_add(ns);
        }
    }

    /// Who ended most of the program's waits for work.
    fn most(&self, program: StringId) -> By {
        let of = || self.0.iter().filter(|((fed, _), _)| *fed == program);
        let all: u64 = of().map(|(_, ns)| ns).sum();
        let fed = of().find(|(_, ns)| **ns as f64 > MOSTLY * all as f64);
        fed.map_or(By::Nobody, |((_, by), _)| *by)
    }

    /// The program beside the focus from which `program` gets its work, if one is on this machine.
    pub(super) fn sender(&self, program: StringId) -> Option<StringId> {
        match self.most(program) {
            By::Outside(sender) => Some(sender),
            By::Inside(_) | By::Nobody => None,
        }
    }

    /// The program of the focus that feeds `program`.
    fn source(&self, program: StringId) -> Option<StringId> {
        match self.most(program) {
            By::Inside(source) => Some(source),
            By::Outside(_) | By::Nobody => None,
        }
    }

    /// The first in the row of those that feed `program`; none for a circle. O(programs).
    pub(super) fn first_source(&self, program: StringId) -> Option<StringId> {
        let mut seen = vec![program];
        while let Some(source) = seen.last().and_then(|last| self.source(*last)) {
            if seen.contains(&source) {
                return None;
            }
            seen.push(source);
        }
        seen.pop().filter(|first| *first != program)
    }
}
