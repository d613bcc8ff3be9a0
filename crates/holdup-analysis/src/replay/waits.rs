//! Waits that no thread ends: whether their time passes on the virtual clocks.

use holdup_trace::{StackId, ThreadIdx};
use rustc_hash::FxHashMap;

use super::taken::waits;
use crate::blame::Blame;
use crate::classify::WaitKind;
use crate::focus::Focus;
use crate::intervals::Wait;

/// Whether a wait is part of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Passes {
    /// A thread ends it, which is an edge; or it is idle by design.
    #[default]
    Never,
    /// While others wait for the thread.
    HoldingUp,
    Always,
}

/// Where threads wait for what is no thread, and hold up themselves (`true`) or others.
pub(super) struct Places(FxHashMap<(ThreadIdx, StackId), bool>);

impl Places {
    pub(super) fn new(blame: &Blame) -> Self {
        let mut places = FxHashMap::default();
        for (key, cell) in blame.cells.iter().filter(|(k, _)| k.terminal.holds_up() && waits(k.terminal)) {
            *places.entry((key.thread, key.site)).or_default() |= cell.threads.contains(&key.thread);
        }
        Places(places)
    }

    pub(super) fn passes(&self, wait: &Wait, focus: &Focus) -> Passes {
        if wait.goes_on != 0 || wait.waker.is_real() && !focus.is_kernel(wait.waker) {
            return Passes::Never;
        }
        if matches!(wait.kind, WaitKind::Disk | WaitKind::PageFault) && !wait.open {
            return Passes::Always;
        }
        match self.0.get(&(wait.thread, wait.stack)) {
            Some(true) => Passes::Always,
            Some(false) => Passes::HoldingUp,
            None => Passes::Never,
        }
    }
}
