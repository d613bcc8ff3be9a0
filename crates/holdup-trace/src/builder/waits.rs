//! Follows each thread's current wait far enough to make its row when it ends.
//!
//! Only waits whose stack comes when they end become rows: the rest can be told from switches and wake-ups alone.

use crate::tables::{Switch, Wait, Wake};
use crate::{LockId, StackId, ThreadIdx, Timestamp, WakeContext};

/// A thread's open or just ended wait.
#[derive(Debug, Clone, Default)]
struct Pending {
    row: Option<Wait>,
    resumed: bool,
    /// Whether it ran, or was woken.
    seen: bool,
    /// The kernel lock that the thread contends for, by the kernel's own word.
    contended: LockId,
}

/// The current wait of each thread.
#[derive(Debug, Default)]
pub(super) struct OpenWaits(Vec<Pending>);

impl OpenWaits {
    #[inline]
    fn of(&mut self, thread: ThreadIdx) -> &mut Pending {
        let at = thread.index();
        if at >= self.0.len() {
            self.0.resize(at + 1, Pending::default());
        }
        &mut self.0[at]
    }

    /// Whether the thread ran, or was woken.
    pub fn has_seen(&mut self, thread: ThreadIdx) -> bool {
        self.of(thread).seen
    }

    /// The kernel lock that the thread contends for.
    pub fn contended(&mut self, thread: ThreadIdx) -> LockId {
        self.of(thread).contended
    }

    /// The thread begins or ends to contend for a kernel lock.
    pub fn contend(&mut self, thread: ThreadIdx, lock: LockId, begin: bool) {
        self.of(thread).contended = if begin { lock } else { LockId::NONE };
    }

    /// A thread leaves its CPU.
    pub fn begin(&mut self, s: &Switch) {
        if !s.prev.is_real() {
            return;
        }
        let pending = self.of(s.prev);
        pending.seen = true;
        if !s.state.is_blocked() {
            return;
        }
        pending.row = Some(Wait {
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
        pending.resumed = false;
    }

    /// A thread is woken.
    pub fn woken(&mut self, w: &Wake) {
        let pending = self.of(w.wakee);
        pending.seen = true;
        if let (Some(row), false) = (&mut pending.row, pending.resumed)
            && row.woken == Timestamp::MAX
        {
            (row.woken, row.waker, row.context, row.waker_stack) = (w.t, w.waker, w.context, w.stack);
        }
    }

    /// `next` runs again. Its row waits for [`blocked`](Self::blocked).
    pub fn end(&mut self, t: Timestamp, next: ThreadIdx) {
        let pending = self.of(next);
        pending.seen = true;
        if let Some(row) = &mut pending.row {
            row.t = t;
            row.woken = row.woken.min(t);
            pending.resumed = true;
        }
    }

    /// The stack of a wait comes: that of one that just ended, whose row this is, or of one that is still open when the
    /// trace ends.
    pub fn blocked(&mut self, thread: ThreadIdx, stack: StackId, lock: LockId) -> Option<Wait> {
        let pending = self.of(thread);
        let row = pending.row.as_mut()?;
        row.stack = stack;
        row.lock = if lock == LockId::NONE { row.lock } else { lock };
        if pending.resumed { pending.row.take() } else { None }
    }

    /// The waits that are still open at the trace's end and have a stack.
    pub fn close(&mut self, end: Timestamp) -> Vec<Wait> {
        let open = std::mem::take(&mut self.0).into_iter().filter(|pending| !pending.resumed);
        let rows = open.filter_map(|pending| pending.row).filter(|row| row.stack != StackId::NONE);
        rows.map(|row| Wait { t: end, woken: end.min(row.woken), ..row }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cpu, SwitchState};

    const END: Timestamp = Timestamp::MAX;

    fn switch(t: u64, prev: u32, next: u32) -> Switch {
        let (t, lock, stack) = (Timestamp::from_nanos_since_start(t), LockId::NONE, StackId::NONE);
        let (prev, next, state) = (ThreadIdx(prev), ThreadIdx(next), SwitchState::Sleeping);
        Switch { t, cpu: Cpu(0), prev, state, next, io_wait: false, syscall: -1, lock, stack }
    }

    #[test]
    fn a_wait_is_a_row_when_its_stack_comes_after_its_end() {
        let mut waits = OpenWaits::default();
        let out = switch(10, 1, 2);
        waits.begin(&out);
        waits.end(Timestamp::from_nanos_since_start(30), ThreadIdx(1));
        let row = waits.blocked(ThreadIdx(1), StackId(5), LockId(3)).expect("a row");
        assert_eq!((row.start, row.t.nanos(), row.stack, row.lock), (out.t, 30, StackId(5), LockId(3)));
        assert_eq!(waits.blocked(ThreadIdx(1), StackId(5), LockId(3)), None, "each wait is one row");
        assert_eq!(waits.close(END), []);
    }

    #[test]
    fn a_wait_without_an_end_is_a_row_if_it_has_a_stack() {
        let mut waits = OpenWaits::default();
        [1, 2].into_iter().for_each(|thread| waits.begin(&switch(10, thread, 0)));
        assert_eq!(waits.blocked(ThreadIdx(1), StackId(5), LockId::NONE), None);
        let rows = waits.close(END);
        assert_eq!(rows.iter().map(|r| (r.thread, r.t, r.woken)).collect::<Vec<_>>(), [(ThreadIdx(1), END, END)]);
    }
}
