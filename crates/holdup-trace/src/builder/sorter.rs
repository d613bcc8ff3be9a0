//! Puts events in time order, as soon as the source's rounds allow.

use std::vec::Drain;

use crate::Event;

/// Events that older ones may still precede.
#[derive(Default)]
pub(super) struct Sorter {
    pending: Vec<(u64, Event)>,
    /// The newest time so far.
    newest: u64,
    /// The newest time of the previous round: nothing older follows.
    horizon: u64,
}

impl Sorter {
    /// Takes an event with the source's clock in nanoseconds.
    #[inline]
    pub fn push(&mut self, t: u64, event: Event) {
        self.newest = self.newest.max(t);
        self.pending.push((t, event));
    }

    /// At the end of a round: the events that nothing older can precede any more, in order.
    pub fn finish_round(&mut self) -> Drain<'_, (u64, Event)> {
        let horizon = std::mem::replace(&mut self.horizon, self.newest);
        self.until(horizon)
    }

    /// At the end of the trace: all events, in order.
    pub fn finish(&mut self) -> Drain<'_, (u64, Event)> {
        self.until(u64::MAX)
    }

    fn until(&mut self, horizon: u64) -> Drain<'_, (u64, Event)> {
        // Stable, and fast on the few sorted runs that the CPUs' buffers are.
        self.pending.sort_by_key(|&(t, _)| t);
        let ready = self.pending.partition_point(|&(t, _)| t <= horizon);
        self.pending.drain(..ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExecEvent, ExitEvent};

    fn times(events: Drain<'_, (u64, Event)>) -> Vec<u64> {
        events.map(|(t, _)| t).collect()
    }

    #[test]
    fn an_event_waits_until_the_round_after_its_own_is_complete() {
        let mut sorter = Sorter::default();
        [30, 10].into_iter().for_each(|t| sorter.push(t, ExitEvent { tid: 1 }.into()));
        assert!(times(sorter.finish_round()).is_empty());
        [40, 20].into_iter().for_each(|t| sorter.push(t, ExitEvent { tid: 1 }.into()));
        assert_eq!(times(sorter.finish_round()), [10, 20, 30]);
        assert_eq!(times(sorter.finish()), [40]);
    }

    #[test]
    fn events_of_one_instant_stay_in_the_order_in_which_they_were_pushed() {
        let mut sorter = Sorter::default();
        sorter.push(2, ExitEvent { tid: 0 }.into());
        (1..40).for_each(|pid| sorter.push(1, ExecEvent { pid }.into()));
        let pids = sorter.finish().filter_map(|(_, event)| match event {
            Event::Exec(ExecEvent { pid }) => Some(pid),
            _ => None,
        });
        assert!(pids.eq(1..40));
    }
}
