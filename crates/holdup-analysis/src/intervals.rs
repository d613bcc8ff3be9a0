//! From events to intervals: what every thread did at every instant, and who ended each of its waits.
//!
//! ```text
//!   thread  ──Running(cpu)──┐ switch-out          ┌ wake        ┌ switch-in
//!                           └──────Waiting(i)─────┴──Woken(i)───┴──Running(cpu)──…
//! ```
//!
//! The result is a list of [`Step`]s in time order, each with the state that *ends* there, so that a reader going
//! backwards always knows what was before. Cost: O(events), about 60 bytes for each event.

mod finish;
mod forward;
mod owners;
mod streams;

use holdup_trace::{Cpu, LockId, StackId, ThreadIdx, WakeContext};

use crate::classify::WaitKind;
pub use forward::build;
pub use owners::OwnerSpan;

/// A wake traced this long before the switch-out that it ends still belongs to it, in nanoseconds.
const RACE_NS: u64 = 50_000;
/// CPU time between two timed waits on one lock that makes them one wait, in nanoseconds.
const REWAIT_NS: u64 = 300_000;
/// The longest tail of a lock wait that counts as hand-off, in nanoseconds.
pub(crate) const HANDOFF_NS: u64 = 1_000_000;

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Runs on a CPU.
    Running(Cpu),
    /// Could run; the CPU is the one on which it will.
    Runnable(Cpu),
    /// Waits; index into [`Intervals::waits`].
    Waiting(u32),
    /// Was woken from that wait at most [`HANDOFF_NS`] ago and has not run yet.
    Woken(u32),
    /// Not known: before its first event, or during a loss.
    Unknown,
    /// Does not exist.
    Gone,
}

/// A change of state.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// When, in nanoseconds since the trace's start.
    pub t: u64,
    /// Whose.
    pub thread: ThreadIdx,
    packed: u32,
}

const PAYLOAD: u32 = (1 << 29) - 1;

impl Step {
    fn new(t: u64, thread: ThreadIdx, before: State) -> Self {
        let (tag, payload) = match before {
            State::Running(cpu) => (0, u32::from(cpu.0)),
            State::Runnable(cpu) => (1, u32::from(cpu.0)),
            State::Waiting(i) => (2, i),
            State::Woken(i) => (3, i),
            State::Unknown => (4, 0),
            State::Gone => (5, 0),
        };
        Step { t, thread, packed: tag << 29 | (payload & PAYLOAD) }
    }

    /// The state that ends here.
    pub fn before(&self) -> State {
        let payload = self.packed & PAYLOAD;
        match self.packed >> 29 {
            0 => State::Running(Cpu(payload as u16)),
            1 => State::Runnable(Cpu(payload as u16)),
            2 => State::Waiting(payload),
            3 => State::Woken(payload),
            4 => State::Unknown,
            _ => State::Gone,
        }
    }
}

/// A change that no single thread's step tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// A thread's hand-off is over: it is merely runnable afterwards.
    HandoffEnds(ThreadIdx, u32),
    /// A CPU's records begin (`false`) or cease (`true`) to be lost here; the flag is what was before.
    Lost(Cpu, bool),
    /// A thread is created here; before, it is gone.
    Born(ThreadIdx),
    /// Index into [`Intervals::owners`]: the owner is known until here.
    OwnerEnds(u32),
    /// The owner is known from here on.
    OwnerBegins(u32),
}

/// One wait: from leaving the CPU to running again.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    /// Whose.
    pub thread: ThreadIdx,
    /// When it left its CPU, in nanoseconds since the trace's start.
    pub start: u64,
    /// When it was first woken; the trace's end if never.
    pub woken: u64,
    /// When it ran again; the trace's end if never.
    pub resumed: u64,
    /// Who woke it, in process context; [`ThreadIdx::NONE`] if an interrupt or nobody did.
    pub waker: ThreadIdx,
    /// In which context it was woken.
    pub context: WakeContext,
    /// Interrupt number or softirq vector.
    pub source: u16,
    /// The system call, or -1.
    pub syscall: i16,
    /// For what.
    pub lock: LockId,
    /// Where it blocked.
    pub stack: StackId,
    /// Where its waker was.
    pub waker_stack: StackId,
    /// For what, in kind.
    pub kind: WaitKind,
    /// Whether nobody ended it within the trace.
    pub open: bool,
    /// Whether the kernel counts it as I/O.
    pub io_wait: bool,
    /// Whether the thread is a kernel thread idling by the kernel's word (state I).
    pub idle_state: bool,
    /// Never held up, whoever it waits for: a join, or a wait ended only so that the thread could exit.
    pub exempt: bool,
    /// This wait timed out and goes on in that later one; 0 for none, else index + 1.
    pub goes_on: u32,
}

impl Wait {
    /// From leaving the CPU to running again, in nanoseconds.
    pub fn length(&self) -> u64 {
        self.resumed.saturating_sub(self.start)
    }
}

/// What was wrong with the events.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Health {
    /// Events that the source says were lost.
    pub lost_events: u64,
    /// Stacks that found no room.
    pub lost_stacks: u64,
    /// Mappings of code that are missing: functions without names.
    pub lost_mappings: u64,
    /// Waits whose waker is unknown.
    pub unknown_wakers: u64,
    /// Switches that contradict the previous state.
    pub unmatched: u64,
    /// Switch-ins that the trace does not have and that were inferred.
    pub inferred: u64,
    /// Waits that were open when the trace began.
    pub censored: u64,
    /// Parent pointers that closed a circle.
    pub cycles: u64,
}

/// The whole trace as intervals.
#[derive(Debug, Default)]
pub struct Intervals {
    /// Changes of state in time order.
    pub steps: Vec<Step>,
    /// Other changes in time order.
    pub extras: Vec<(u64, Extra)>,
    /// All waits, in the order of their starts.
    pub waits: Vec<Wait>,
    /// Who is known to hold which lock when.
    pub owners: Vec<OwnerSpan>,
    /// The state of every thread at the end.
    pub last: Vec<State>,
    /// Which CPUs are lost at the end.
    pub lost_at_end: Vec<bool>,
    /// Number of CPUs.
    pub cpus: usize,
    /// The trace's length in nanoseconds.
    pub end: u64,
    /// Nanoseconds during which n threads of the focus ran at once.
    pub parallelism: Vec<u64>,
    /// CPU nanoseconds of every thread.
    pub ran: Vec<u64>,
    /// What was wrong.
    pub health: Health,
}

impl Intervals {
    /// The greatest number of the focus's threads that ran at once for at least 1 % of the time that any ran.
    pub fn peak_parallelism(&self) -> usize {
        let active: u128 = self.parallelism.iter().skip(1).map(|&t| u128::from(t)).sum();
        let mut above: u128 = 0;
        for (n, time) in self.parallelism.iter().enumerate().skip(1).rev() {
            above += u128::from(*time);
            if above * 100 >= active && above > 0 {
                return n;
            }
        }
        0
    }
}
