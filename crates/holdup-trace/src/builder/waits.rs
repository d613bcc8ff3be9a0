//! Follows each thread's current wait far enough to write its row when it ends.
//!
//! Only waits whose stack comes when they end become rows: the rest can be told from switches and wake-ups alone.

use super::TraceBuilder;
use crate::tables::{Switch, Wait, Wake};
use crate::{LockId, Result, StackId, ThreadIdx, Timestamp, WakeContext};

/// A thread's open or just ended wait.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending {
    row: Option<Wait>,
    resumed: bool,
    /// The kernel lock that the thread contends for, by the kernel's own word.
    contended: LockId,
}

impl TraceBuilder {
    fn pending_wait(&mut self, thread: ThreadIdx) -> &mut Pending {
        let at = thread.index();
        if at >= self.waits.len() {
            self.waits.resize(at + 1, Pending::default());
        }
        &mut self.waits[at]
    }

    /// The kernel lock that the thread contends for.
    pub(super) fn contended(&mut self, thread: ThreadIdx) -> LockId {
        self.pending_wait(thread).contended
    }

    pub(super) fn wait_begins(&mut self, s: &Switch) {
        if !s.state.is_blocked() || !s.prev.is_real() {
            return;
        }
        self.pending_wait(s.prev).row = Some(Wait {
            t: s.t,
            thread: s.prev,
            start: s.t,
            woken: Timestamp::MAX,
            waker: ThreadIdx::NONE,
            context: WakeContext::Unknown,
            syscall: s.syscall,
            lock: s.lock,
            stack: s.stack,
            waker_stack: StackId::NONE,
        });
        self.pending_wait(s.prev).resumed = false;
    }

    pub(super) fn wait_woken(&mut self, w: &Wake) {
        let pending = self.pending_wait(w.wakee);
        if let (Some(row), false) = (&mut pending.row, pending.resumed)
            && row.woken == Timestamp::MAX
        {
            (row.woken, row.waker, row.context, row.waker_stack) = (w.t, w.waker, w.context, w.stack);
        }
    }

    /// `next` runs again. Its row waits for [`wait_blocked`](Self::wait_blocked).
    pub(super) fn wait_ends(&mut self, t: Timestamp, next: ThreadIdx) {
        let pending = self.pending_wait(next);
        if let Some(row) = &mut pending.row {
            row.t = t;
            row.woken = row.woken.min(t);
            pending.resumed = true;
        }
    }

    /// The stack of a wait: of one that just ended, or of one that is still open when the trace ends.
    pub(super) fn wait_blocked(&mut self, thread: ThreadIdx, stack: StackId, lock: LockId) -> Result<()> {
        let pending = self.pending_wait(thread);
        let Some(row) = &mut pending.row else { return Ok(()) };
        row.stack = stack;
        row.lock = if lock == LockId::NONE { row.lock } else { lock };
        if pending.resumed { self.write_wait(thread) } else { Ok(()) }
    }

    pub(super) fn wait_kernel_lock(&mut self, thread: ThreadIdx, lock: LockId, begin: bool) {
        self.pending_wait(thread).contended = if begin { lock } else { LockId::NONE };
    }

    fn write_wait(&mut self, thread: ThreadIdx) -> Result<()> {
        match self.pending_wait(thread).row.take() {
            Some(row) => self.out.waits.push(row),
            None => Ok(()),
        }
    }

    /// Writes the waits that are still open at the end and have a stack.
    pub(super) fn close_waits(&mut self, end: Timestamp) -> Result<()> {
        for pending in std::mem::take(&mut self.waits) {
            if let Some(row) = pending.row.filter(|r| !pending.resumed && r.stack != StackId::NONE) {
                self.out.waits.push(Wait { t: end, woken: end.min(row.woken), ..row })?;
            }
        }
        Ok(())
    }
}
