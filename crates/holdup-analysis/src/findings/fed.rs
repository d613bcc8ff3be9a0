//! From whom programs get their work.

use holdup_trace::{StringId, ThreadIdx};
use rustc_hash::FxHashMap;

use crate::blame::Study;
use crate::intervals::{Place, Wait};

/// From this share of its waits for work on that another program of the focus ended, a program is fed by that one.
const MOSTLY: f64 = 0.6;

/// How long the focus's programs waited, in nanoseconds, by who ended it.
#[derive(Debug, Default)]
pub(crate) struct Fed {
    /// For work.
    work: Ended,
    /// For anything that another program did.
    anything: Ended,
}

type Ended = FxHashMap<(StringId, By), u64>;

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
        let Some(own) = program(wait.thread).filter(|_| !wait.exempt) else { return };
        let by = match program(wait.waker) {
            None => By::Nobody,
            Some(_) if study.focus.is_kernel(wait.waker) => By::Nobody,
            Some(by) if study.focus.contains(wait.waker) => By::Inside(by),
            Some(by) => By::Outside(by),
        };
        let ns = wait.woken.min(study.window.to).saturating_sub(wait.start.max(study.window.from));
        if by == By::Inside(own) {
            return;
        }
        if by != By::Nobody {
            add(&mut self.anything, (own, by), ns);
        }
        if wait.place == Place::Home {
            add(&mut self.work, (own, by), ns);
        }
    }

    /// Adds what an earlier part tells.
    pub(super) fn absorb(&mut self, earlier: Fed) {
        earlier.work.into_iter().for_each(|(pair, ns)| add(&mut self.work, pair, ns));
        earlier.anything.into_iter().for_each(|(pair, ns)| add(&mut self.anything, pair, ns));
    }

    /// Whether `other`, beside the focus, ended most of its waits for other programs: its client or its server, without which it would
    /// have nothing to do.
    pub(super) fn is_partner(&self, program: StringId, other: StringId) -> bool {
        most(&self.anything, program) == By::Outside(other)
    }

    /// The program beside the focus from which `program` gets its work, if one is on this machine.
    pub(super) fn sender(&self, program: StringId) -> Option<StringId> {
        match most(&self.work, program) {
            By::Outside(sender) => Some(sender),
            By::Inside(_) | By::Nobody => None,
        }
    }

    /// The program of the focus that feeds `program`.
    fn source(&self, program: StringId) -> Option<StringId> {
        match most(&self.work, program) {
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

/// Who ended most of the program's waits.
fn most(ended: &Ended, program: StringId) -> By {
    let of = || ended.iter().filter(|((waited, _), _)| *waited == program);
    let all: u64 = of().map(|(_, ns)| ns).sum();
    let by = of().find(|(_, ns)| **ns as f64 > MOSTLY * all as f64);
    by.map_or(By::Nobody, |((_, by), _)| *by)
}

fn add(to: &mut Ended, pair: (StringId, By), ns: u64) {
    let sum = to.entry(pair).or_default();
    *sum = sum.saturating_add(ns);
}
