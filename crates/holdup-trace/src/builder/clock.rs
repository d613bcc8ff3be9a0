//! From the source's clock to the trace's.

use crate::Timestamp;

/// The trace's clock: it starts with the first event and never goes back.
#[derive(Default)]
pub(super) struct Clock {
    first: Option<u64>,
    last: u64,
    /// Events that were older than one before them.
    pub late: u64,
}

impl Clock {
    /// The trace's time of an event at `clock` of the source.
    pub fn at(&mut self, clock: u64) -> Timestamp {
        let first = *self.first.get_or_insert(clock);
        let mut since = clock.saturating_sub(first);
        if since < self.last || clock < first {
            // A row behind its table's end would break every reader's merge: keep the event, at the latest time.
            self.late += 1;
            since = self.last;
        }
        self.last = since;
        Timestamp::from_nanos_since_start(since)
    }

    /// The time of the first event by the source's clock; 0 if there was none.
    pub fn start(&self) -> u64 {
        self.first.unwrap_or(0)
    }

    /// The time of the latest event.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_nanos_since_start(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_events_come_at_the_latest_time_and_are_counted() {
        let mut clock = Clock::default();
        let times = [100, 130, 120, 90, 140].map(|t| clock.at(t).nanos());
        assert_eq!((times, clock.late), ([0, 30, 30, 30, 40], 2));
        assert_eq!((clock.start(), clock.now().nanos()), (100, 40));
    }
}
