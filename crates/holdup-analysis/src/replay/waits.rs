//! Waits that no thread ends: whether their time passes on the virtual clocks.

use holdup_trace::{StackId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::pieces::Ordered;
use super::taken::waits;
use crate::blame::{Blame, Key};
use crate::classify::WaitKind;
use crate::focus::Focus;
use crate::intervals::Wait;

/// Whether a wait is part of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Passes {
    /// A thread ends it, which is an edge; or it is idle by design.
    #[default]
    Never,
    /// Nothing ends it but what ends others that hold somebody up, and this one held up nobody.
    ByDesign,
    /// While others wait for the thread.
    HoldingUp,
    Always,
}

/// Who waits, and where.
type Site = (ThreadIdx, StackId);

/// Where threads wait for what is no thread.
pub(super) struct Places(FxHashMap<Site, Held>);

/// A place.
#[derive(Default)]
struct Held {
    /// Whether its own thread is held up there, and not only others.
    own: bool,
    /// When somebody was.
    when: Ordered,
}

impl Places {
    pub(super) fn new(blame: &Blame) -> Self {
        let holds_up = |key: &Key| key.terminal.holds_up() && waits(key.terminal);
        let mut all: FxHashMap<Site, (bool, Vec<(u64, u64)>)> = FxHashMap::default();
        for (key, cell) in blame.cells.iter().filter(|(key, _)| holds_up(key)) {
            all.entry((key.thread, key.site)).or_default().0 |= cell.threads.contains(&key.thread);
        }
        for (key, spans) in blame.spans.iter().filter(|(key, _)| holds_up(key)) {
            let held = all.entry((key.thread, key.site)).or_default();
            held.1.extend(spans.iter().map(|span| (span.from, span.to)));
        }
        let held = |(site, (own, when))| (site, Held { own, when: Ordered::new(when) });
        Places(all.into_iter().map(held).collect())
    }

    /// Of the waits of a thread, the earlier ones first.
    pub(super) fn passes(&mut self, wait: &Wait, focus: &Focus) -> Passes {
        if wait.goes_on != 0 || wait.waker.is_real() && !focus.is_kernel(wait.waker) {
            return Passes::Never;
        }
        if matches!(wait.kind, WaitKind::Disk | WaitKind::PageFault) && !wait.open {
            return Passes::Always;
        }
        self.0.get_mut(&(wait.thread, wait.stack)).map_or(Passes::Never, |held| held.of(wait.start, wait.woken))
    }
}

impl Held {
    fn of(&mut self, from: u64, to: u64) -> Passes {
        match (self.when.within(from, to) > 0, self.own) {
            (false, _) => Passes::ByDesign,
            (true, false) => Passes::HoldingUp,
            (true, true) => Passes::Always,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blame::{Span, Terminal};

    #[test]
    fn a_sleep_counts_while_it_holds_somebody_up() {
        let key = |terminal, thread| Key { terminal, thread: ThreadIdx(thread), site: StackId(7), ..Key::default() };
        let held = [(key(Terminal::Timer, 1), 10), (key(Terminal::Outside, 1), 40), (key(Terminal::Running, 2), 10)];
        let spans = held.map(|(key, from)| (key, vec![Span::whole(from, from + 10)]));
        let mut places = Places::new(&Blame { spans: FxHashMap::from_iter(spans), ..Blame::default() });
        let held = places.0.get_mut(&(ThreadIdx(1), StackId(7))).unwrap();
        let of = [(0, 9), (9, 15), (25, 40), (45, 90)].map(|(from, to)| held.of(from, to));
        assert_eq!(of, [Passes::ByDesign, Passes::HoldingUp, Passes::ByDesign, Passes::HoldingUp]);
        assert_eq!(places.0.len(), 1, "who runs waits nowhere");
    }
}
