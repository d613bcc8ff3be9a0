//! Threads that waited when the trace began: no event tells where, but the recorder looked at them.

use holdup_trace::tables::{StandingWait, Switch};
use holdup_trace::{Cpu, Result, SwitchState, ThreadIdx, Timestamp, Trace};

use super::machine::Machine;
use super::now::ThreadNow;
use super::state::State;
use super::wait::Wait;
use crate::classify::WaitKind;

/// The waits that began before the trace.
#[derive(Debug, Clone, Default)]
pub(super) struct Standing(Vec<StandingWait>);

impl Standing {
    /// Those of the trace.
    ///
    /// # Errors
    /// If their table is damaged.
    pub(super) fn of(trace: &Trace) -> Result<Self> {
        trace.standing_waits.iter().collect::<Result<_>>().map(Standing)
    }

    /// Those that are not over when `machine` has followed all events.
    pub(super) fn open(&self, machine: &Machine) -> Vec<StandingWait> {
        let stands = |now: &ThreadNow| now.since == 0 && matches!(now.state, State::Waiting(_));
        self.0.iter().filter(|row| machine.threads.get(row.thread.index()).is_some_and(stands)).copied().collect()
    }

    /// Lets them begin with the trace. O(waits).
    pub(super) fn begin(&self, machine: &mut Machine) {
        for row in &self.0 {
            let thread = row.thread;
            let is_unknown = machine.threads.get(thread.index()).is_some_and(|now| matches!(now.state, State::Unknown));
            if !is_unknown {
                continue;
            }
            machine.begin_wait(&Switch {
                t: Timestamp::ZERO,
                cpu: Cpu::NONE,
                prev: thread,
                state: SwitchState::Sleeping,
                next: ThreadIdx::NONE,
                io_wait: false,
                syscall: row.syscall,
                lock: row.lock,
                stack: row.stack,
            });
            if row.owner.is_real() {
                machine.owners.observe(row.lock, row.owner, 0);
            }
        }
    }
}

/// A focus that runs less than this share of the time hangs: what its threads stand for is what holds it up.
const HANGS: f64 = 0.01;

/// Whether a focus hangs. `parallelism` is how long so many of its threads ran.
pub(super) fn hangs(parallelism: &[u64]) -> bool {
    let all: u64 = parallelism.iter().sum();
    let ran: u64 = parallelism.iter().skip(1).sum();
    (ran as f64) < HANGS * all as f64
}

impl Wait {
    /// Whether it began before the trace and is not over, so that it explains nothing of what goes on meanwhile: of a program that goes on,
    /// and of one that `hangs` where it may be by design. Who waits for a lock, a disk or for room to write all that time is held up.
    pub(super) fn only_stands(&self, hangs: bool) -> bool {
        let held_up = matches!(self.kind, WaitKind::Lock | WaitKind::Disk | WaitKind::PageFault | WaitKind::Write);
        self.is_standing() && !(held_up && hangs)
    }

    /// Whether it began before the trace and is not over.
    pub(super) fn is_standing(&self) -> bool {
        self.start == 0 && self.open
    }
}
