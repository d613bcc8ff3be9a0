//! What the trace lacks, and what it only seemed to say.

use holdup_trace::{Cpu, StackId, ThreadIdx, WakeContext};

use super::super::now::CpuNow;
use super::super::state::State;
use super::Machine;

impl Machine<'_> {
    /// What has to have happened on `cpu` for `thread` to run there at `t`.
    #[cold]
    pub(super) fn infer(&mut self, now: CpuNow, cpu: Cpu, thread: ThreadIdx, t: u64, slack: u64) {
        let since = match self.known(thread).then(|| self.threads[thread.index()].state) {
            // The first event of a CPU: whoever leaves it had run there from the start.
            _ if now.running == ThreadIdx::NONE && now.since == 0 => 0,
            Some(State::Woken(i)) => self.out.waits[i as usize].woken,
            Some(State::Runnable(_) | State::Yields(_)) => self.threads[thread.index()].since,
            _ => t.saturating_sub(slack),
        };
        let since = since.max(now.since);
        let first = now.running == ThreadIdx::NONE;
        self.count(|h| h.inferred += u64::from(!first));
        if self.known(now.running) {
            self.count(|h| h.unmatched += 1);
            self.enter(now.running, since, State::Unknown);
        }
        self.cpus[cpu.index()] = CpuNow { running: thread, since };
        if self.known(thread) {
            self.arrive(thread, cpu, since.max(self.threads[thread.index()].since));
        }
    }

    /// A wait that nobody ended after all: what seemed to be its early wake was none.
    pub(in crate::intervals) fn forget_early_wakes(&mut self) {
        for thread in std::mem::take(&mut self.early).into_keys() {
            if let State::Waiting(i) = self.threads[thread.index()].state {
                let wait = &mut self.out.waits[i as usize];
                (wait.waker, wait.context, wait.waker_stack) = (ThreadIdx::NONE, WakeContext::Unknown, StackId::NONE);
            }
        }
    }
}
