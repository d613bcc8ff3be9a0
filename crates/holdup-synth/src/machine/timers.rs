//! What is due when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::cast::Who;

/// What happens at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The thread on this CPU has run for as long as was planned.
    Burst(u16),
    /// A thread comes to this idle CPU.
    Arrival(u16, Who),
    /// An interrupt wakes a thread.
    Interrupt(Who),
    /// The program is told.
    Alarm(u32),
    /// A sample is taken.
    Tick,
    /// A CPU's records are recorded again.
    LossEnds(u16),
}

/// All that is due, the next first; of two at one instant the one that was set first.
///
/// One number for each, because comparing is most of the work: time (64 bits), order (32), kind (3), CPU (9), thread (20).
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<u128>>,
    order: u32,
}

impl Timers {
    pub(super) fn set(&mut self, t: u64, due: Due) {
        let (kind, cpu, what) = match due {
            Due::Burst(cpu) => (0, cpu, 0),
            Due::Arrival(cpu, who) => (1, cpu, who),
            Due::Interrupt(who) => (2, 0, who),
            Due::Alarm(what) => (3, 0, what),
            Due::Tick => (4, 0, 0),
            Due::LossEnds(cpu) => (5, cpu, 0),
        };
        self.order = self.order.wrapping_add(1);
        let low = u64::from(self.order) << 32 | kind << 29 | u64::from(cpu) << 20 | u64::from(what);
        self.heap.push(Reverse(u128::from(t) << 64 | u128::from(low)));
    }

    pub(super) fn next(&mut self) -> Option<(u64, Due)> {
        let Reverse(key) = self.heap.pop()?;
        let (cpu, what) = ((key >> 20) as u16 & 0x1ff, key as u32 & 0xf_ffff);
        let due = match (key >> 29) as u8 & 7 {
            0 => Due::Burst(cpu),
            1 => Due::Arrival(cpu, what),
            2 => Due::Interrupt(what),
            3 => Due::Alarm(what),
            4 => Due::Tick,
            _ => Due::LossEnds(cpu),
        };
        Some(((key >> 64) as u64, due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_comes_back_in_order() {
        let mut timers = Timers::default();
        let all = [
            (5, Due::Interrupt(0xf_ffff)),
            (5, Due::Arrival(511, 99_999)),
            (3, Due::Alarm(7)),
            (u64::MAX, Due::Tick),
            (9, Due::Burst(511)),
            (9, Due::LossEnds(1)),
        ];
        all.into_iter().for_each(|(t, due)| timers.set(t, due));
        let order: Vec<_> = std::iter::from_fn(|| timers.next()).collect();
        assert_eq!(order, [all[2], all[0], all[1], all[4], all[5], all[3]]);
    }
}
