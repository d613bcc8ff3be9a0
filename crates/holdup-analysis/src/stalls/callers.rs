//! Who calls whom: what is known of those who end a thread's waits for input.

use holdup_trace::{ThreadIdx, Trace};
use rustc_hash::FxHashMap;

use crate::intervals::Wait;

#[derive(Debug, Default)]
struct Called {
    /// A process that calls it; 0 for none.
    pid: u32,
    /// Whether there is another.
    several: bool,
    /// Waits ended by threads of this machine, and all.
    by_threads: u64,
    all: u64,
}

/// By thread that awaits events.
#[derive(Debug, Default)]
pub(super) struct Callers(FxHashMap<ThreadIdx, Called>);

impl Callers {
    /// Adds a wait for input.
    pub(super) fn add(&mut self, trace: &Trace, wait: &Wait) {
        let pid = |of: ThreadIdx| trace.threads.pid.get(of.index()).copied().unwrap_or(0);
        let called = self.0.entry(wait.thread).or_default();
        called.all += u64::from(!wait.is_timed_out());
        if wait.waker.is_real() {
            called.by_threads += 1;
            if pid(wait.waker) != pid(wait.thread) {
                called.note(pid(wait.waker));
            }
        }
    }

    pub(super) fn absorb(&mut self, earlier: Callers) {
        for (thread, earlier) in earlier.0 {
            let called = self.0.entry(thread).or_default();
            called.note(earlier.pid);
            called.several |= earlier.several;
            called.by_threads += earlier.by_threads;
            called.all += earlier.all;
        }
    }

    /// Whether threads of more than one other process end its waits: a server, most likely.
    pub(super) fn are_several(&self, thread: ThreadIdx) -> bool {
        self.0.get(&thread).is_some_and(|called| called.several)
    }

    /// Whether those who end its waits are mostly no threads of this machine.
    pub(super) fn are_elsewhere(&self, thread: ThreadIdx) -> bool {
        self.0.get(&thread).is_some_and(|called| 2 * called.by_threads < called.all)
    }
}

impl Called {
    /// Called by a process.
    fn note(&mut self, pid: u32) {
        self.several |= pid != 0 && self.pid != 0 && self.pid != pid;
        self.pid = if self.pid == 0 { pid } else { self.pid };
    }
}
