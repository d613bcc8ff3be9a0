//! Puts events in time order, as soon as the source's rounds allow.

use crate::{Event, Result};

/// Events that older ones may still precede.
#[derive(Default)]
pub(super) struct Sorter {
    /// Time and place in `events`: half as much to move as the events themselves.
    order: Vec<(u64, usize)>,
    events: Vec<Event>,
    spare: Vec<Event>,
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
        self.order.push((t, self.events.len()));
        self.events.push(event);
    }

    /// The events that are held.
    pub fn held_mut(&mut self) -> impl Iterator<Item = (u64, &mut Event)> {
        // Between rounds both lists have the same order.
        self.order.iter().map(|&(t, _)| t).zip(&mut self.events)
    }

    /// At the end of a round: gives the events that nothing older can precede any more to `each`, in order.
    pub fn finish_round(&mut self, each: impl FnMut(u64, Event) -> Result<()>) -> Result<()> {
        let horizon = std::mem::replace(&mut self.horizon, self.newest);
        self.until(horizon, each)
    }

    /// At the end of the trace: gives all events to `each`, in order.
    pub fn finish(&mut self, each: impl FnMut(u64, Event) -> Result<()>) -> Result<()> {
        self.until(u64::MAX, each)
    }

    fn until(&mut self, horizon: u64, mut each: impl FnMut(u64, Event) -> Result<()>) -> Result<()> {
        // Stable, and fast on the few sorted runs that the CPUs' buffers are.
        self.order.sort_by_key(|&(t, _)| t);
        let ready = self.order.partition_point(|&(t, _)| t <= horizon);
        for &(t, at) in &self.order[..ready] {
            each(t, self.events[at])?;
        }
        self.spare.clear();
        self.spare.extend(self.order[ready..].iter().map(|&(_, at)| self.events[at]));
        std::mem::swap(&mut self.events, &mut self.spare);
        self.order.drain(..ready);
        self.order.iter_mut().enumerate().for_each(|(i, (_, at))| *at = i);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExecEvent, ExitEvent};

    /// The times and tids or pids of what a sorter gives.
    fn given(run: impl FnOnce(&mut dyn FnMut(u64, Event) -> Result<()>) -> Result<()>) -> Vec<(u64, u32)> {
        let mut given = Vec::new();
        let mut each = |t, event| {
            given.push(match event {
                Event::Exit(ExitEvent { tid }) => (t, tid),
                Event::Exec(ExecEvent { pid }) => (t, pid),
                other => panic!("nobody pushed {other:?}"),
            });
            Ok(())
        };
        run(&mut each).expect("nothing fails");
        given
    }

    #[test]
    fn an_event_waits_until_the_round_after_its_own_is_complete() {
        let mut sorter = Sorter::default();
        let push = |sorter: &mut Sorter, t: u64| sorter.push(t, ExitEvent { tid: t as u32 }.into());
        [30, 10].into_iter().for_each(|t| push(&mut sorter, t));
        assert_eq!(given(|each| sorter.finish_round(each)), []);
        [40, 20, 50].into_iter().for_each(|t| push(&mut sorter, t));
        assert_eq!(given(|each| sorter.finish_round(each)), [(10, 10), (20, 20), (30, 30)]);
        push(&mut sorter, 45);
        assert_eq!(given(|each| sorter.finish_round(each)), [(40, 40), (45, 45), (50, 50)]);
        push(&mut sorter, 60);
        assert_eq!(given(|each| sorter.finish(each)), [(60, 60)]);
        assert_eq!(given(|each| sorter.finish(each)), []);
    }

    #[test]
    fn events_of_one_instant_stay_in_the_order_in_which_they_were_pushed() {
        let mut sorter = Sorter::default();
        sorter.push(2, ExitEvent { tid: 0 }.into());
        (1..40).for_each(|pid| sorter.push(1, ExecEvent { pid }.into()));
        assert_eq!(given(|each| sorter.finish_round(each)), []);
        (40..60).for_each(|pid| sorter.push(1, ExecEvent { pid }.into()));
        let all = given(|each| sorter.finish(each));
        assert!(all.into_iter().eq((1..60).map(|pid| (1, pid)).chain([(2, 0)])));
    }
}
