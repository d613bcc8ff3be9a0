//! What a thread does, and changes of it.

use holdup_trace::{Cpu, ThreadIdx};

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Runs on a CPU.
    Running(Cpu),
    /// Could run; the CPU is the one on which it will.
    Runnable(Cpu),
    /// The same, but it gives way to others again and again, and does nothing else: it has no use for a CPU yet.
    Yields(Cpu),
    /// Waits; index of the wait.
    Waiting(u32),
    /// Was woken from that wait at most [`HANDOFF_NS`](super::HANDOFF_NS) ago and has not run yet.
    Woken(u32),
    /// Not known: before its first event, or during a loss.
    Unknown,
    /// Does not exist.
    Gone,
}

impl State {
    /// The wait that it is in, or has just been woken from.
    pub(crate) const fn wait(self) -> Option<u32> {
        match self {
            State::Waiting(i) | State::Woken(i) => Some(i),
            _ => None,
        }
    }

    /// The same state with another index for its wait.
    pub(super) fn with_wait(self, to: impl FnOnce(u32) -> u32) -> State {
        match self {
            State::Waiting(i) => State::Waiting(to(i)),
            State::Woken(i) => State::Woken(to(i)),
            other => other,
        }
    }
}

/// A state in four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packed(u32);

const PAYLOAD_BITS: u32 = 29;
const PAYLOAD: u32 = (1 << PAYLOAD_BITS) - 1;

impl Packed {
    pub(super) const fn new(state: State) -> Self {
        let (tag, payload) = match state {
            State::Running(cpu) => (0, cpu.0 as u32),
            State::Runnable(cpu) => (1, cpu.0 as u32),
            State::Waiting(i) => (2, i),
            State::Woken(i) => (3, i),
            State::Unknown => (4, 0),
            State::Gone => (5, 0),
            State::Yields(cpu) => (6, cpu.0 as u32),
        };
        Packed(tag << PAYLOAD_BITS | (payload & PAYLOAD))
    }

    pub(super) const fn state(self) -> State {
        let payload = self.0 & PAYLOAD;
        match self.0 >> PAYLOAD_BITS {
            0 => State::Running(Cpu(payload as u16)),
            1 => State::Runnable(Cpu(payload as u16)),
            2 => State::Waiting(payload),
            3 => State::Woken(payload),
            4 => State::Unknown,
            6 => State::Yields(Cpu(payload as u16)),
            _ => State::Gone,
        }
    }
}

/// A change of state: 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// When, in nanoseconds since the trace's start.
    pub t: u64,
    /// Whose.
    pub thread: ThreadIdx,
    packed: Packed,
}

impl Step {
    pub(super) fn new(t: u64, thread: ThreadIdx, before: State) -> Self {
        Step { t, thread, packed: Packed::new(before) }
    }

    /// The state that ends here.
    #[inline]
    pub fn before(&self) -> State {
        self.packed.state()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_survives_packing() {
        use State::{Gone, Runnable, Running, Unknown, Waiting, Woken, Yields};
        for state in [
            Running(Cpu(511)),
            Runnable(Cpu::NONE),
            Yields(Cpu(1)),
            Waiting(0),
            Waiting(PAYLOAD),
            Woken(7),
            Unknown,
            Gone,
        ] {
            assert_eq!(Packed::new(state).state(), state);
        }
    }
}
