//! Which cycle a thread runs next, when it is due, and when it is over.

use std::cell::Cell;
use std::time::Instant;

use super::Length;
use super::pace::Pace;

/// Of more cycles than this that nobody served, some stand for others: a rate that is far beyond reach should not take longer
/// to count than to run.
const MOST_UNSERVED: u64 = 1_000_000;

/// A cycle that a slot has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// Its number, unique in the run.
    pub cycle: u64,
    /// When it should begin. In a closed loop: now.
    pub due: Instant,
    /// Whether it is measured, not warm-up.
    pub is_counted: bool,
}

/// The schedule of one thread.
pub(super) struct Schedule {
    /// Cycles of all threads for each of this one's.
    stride: u64,
    start: Instant,
    /// When cycles of the whole run are due; none in a closed loop.
    pace: Option<Pace>,
    warm_up: Length,
    length: Length,
    /// The next cycle of this thread.
    next: Cell<u64>,
    /// Since when cycles count.
    counted_since: Cell<Option<Instant>>,
    /// Cycles that still count, of this thread.
    left: Cell<u64>,
    /// Counted cycles taken so far.
    taken: Cell<u64>,
    /// Cycles of the warm-up that were due and that no slot had taken when the measured time began.
    left_behind: Cell<u64>,
}

impl Schedule {
    pub(super) fn new(
        (index, threads): (u64, u64),
        pace: Option<Pace>,
        (warm_up, length): (Length, Length),
        start: Instant,
    ) -> Schedule {
        let share = |cycles: u64| cycles.saturating_sub(index).div_ceil(threads);
        let since = match (warm_up, pace) {
            (Length::Time(time), _) => Some(start + time),
            // The schedule says when, whether or not the server keeps up with it.
            (Length::Cycles(cycles), Some(pace)) => Some(start + pace.after(cycles)),
            // The first call that counts says when.
            (Length::Cycles(_), None) => None,
        };
        Schedule {
            stride: threads,
            start,
            pace,
            warm_up,
            length,
            next: Cell::new(index),
            counted_since: Cell::new(since),
            left: Cell::new(match length {
                Length::Cycles(cycles) => share(cycles),
                Length::Time(_) => u64::MAX,
            }),
            taken: Cell::new(0),
            left_behind: Cell::new(0),
        }
    }

    /// Takes the next cycle, or none if it is over.
    ///
    /// Once the measured time has begun, cycles of the warm-up are no longer begun: served then, they would take the server's
    /// time from the cycles that count, and a longer warm-up would make a saturated server look slower.
    #[inline]
    pub(super) fn take(&self, now: Instant) -> Option<Turn> {
        self.leave_warm_up(now);
        let cycle = self.next.get();
        let due = self.due(cycle).unwrap_or(now);
        let is_counted = self.is_counted(cycle, due);
        if self.left.get() == 0 || self.end().is_some_and(|end| due >= end || now >= end) {
            return None;
        }
        self.next.set(cycle + self.stride);
        if is_counted {
            self.left.set(self.left.get() - 1);
            self.taken.set(self.taken.get() + 1);
        }
        Some(Turn { cycle, due, is_counted })
    }

    /// Drops what was due in the warm-up and is not begun, if the measured time has begun; in an open loop.
    fn leave_warm_up(&self, now: Instant) {
        let (Some(pace), Some(since)) = (self.pace, self.counted_since.get()) else { return };
        let next = self.next.get();
        if now < since || self.start + pace.after(next) >= since {
            return;
        }
        let first = pace.due_until(since - self.start) as u64;
        let mut skipped = first.saturating_sub(next) / self.stride;
        // Rounded down above; the same rounding as everywhere says which cycle is the first that counts.
        while self.start + pace.after(next + skipped * self.stride) < since {
            skipped += 1;
        }
        self.next.set(next + skipped * self.stride);
        self.left_behind.set(self.left_behind.get() + skipped);
    }

    fn due(&self, cycle: u64) -> Option<Instant> {
        self.pace.map(|pace| self.start + pace.after(cycle))
    }

    fn is_counted(&self, cycle: u64, due: Instant) -> bool {
        if let Some(since) = self.counted_since.get() {
            return due >= since;
        }
        let is_first = matches!(self.warm_up, Length::Cycles(cycles) if cycle >= cycles);
        if is_first {
            self.counted_since.set(Some(due));
        }
        is_first
    }

    /// Since when cycles count, once that is known.
    pub(super) fn counted_since(&self) -> Option<Instant> {
        self.counted_since.get()
    }

    /// When the measured time ends, if it ends by time.
    pub(super) fn end(&self) -> Option<Instant> {
        match self.length {
            Length::Time(time) => self.counted_since.get().map(|since| since + time),
            Length::Cycles(_) => None,
        }
    }

    /// Counted cycles that a slot took.
    pub(super) fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// Cycles of the warm-up that were due and never begun.
    pub(super) fn left_behind(&self) -> u64 {
        self.left_behind.get()
    }

    /// When the counted cycles were due that no slot took, although they were due before `now` and before the end; each with
    /// the number of cycles that it stands for. That is one, unless there are more than [`MOST_UNSERVED`].
    pub(super) fn unserved(&self, now: Instant) -> impl Iterator<Item = (Instant, u64)> + '_ {
        let first = self.next.get();
        let count = self.unserved_count(first, now);
        let step = count.div_ceil(MOST_UNSERVED).max(1);
        (0..count.div_ceil(step)).filter_map(move |group| {
            let cycle = first + group * step * self.stride;
            let due = self.due(cycle)?;
            self.is_counted(cycle, due).then(|| (due, step.min(count - group * step)))
        })
    }

    /// How many cycles of this thread, from `first` on, were due before `now` and the end. In a closed loop: none.
    fn unserved_count(&self, first: u64, now: Instant) -> u64 {
        let Some(pace) = self.pace else { return 0 };
        let end = self.end().map_or(now, |end| end.min(now));
        let limit = pace.due_until(end.saturating_duration_since(self.start)).ceil() as u64;
        limit.saturating_sub(first).div_ceil(self.stride).min(self.left.get())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn steady(per_s: f64) -> Option<Pace> {
        Some(Pace::new(per_s, None, Length::Cycles(0)))
    }

    /// A server that serves one call after another, each in a millisecond, on a clock of its own: what counted in a second of
    /// measuring, and what was left behind.
    fn served(rate: f64, warm_up: Length) -> (u64, u64) {
        let start = Instant::now();
        let schedule = Schedule::new((0, 1), steady(rate), (warm_up, Length::Time(SECOND)), start);
        let (mut now, mut counted) = (start, 0);
        while let Some(turn) = schedule.take(now) {
            now = now.max(turn.due) + Duration::from_millis(1);
            counted += u64::from(turn.is_counted);
        }
        let end = schedule.end().unwrap();
        assert_eq!(schedule.taken() + unserved(&schedule, end), rate as u64, "all that was due is told");
        (counted, schedule.left_behind())
    }

    #[test]
    fn a_saturated_server_is_as_fast_after_any_warm_up() {
        for rate in [1_500.0, 4_000.0, 64_000.0] {
            for ms in [0, 500, 2_000] {
                let cycles = (rate * ms as f64 / 1e3) as u64;
                for warm_up in [Length::Time(Duration::from_millis(ms)), Length::Cycles(cycles)] {
                    let (counted, left_behind) = served(rate, warm_up);
                    assert!((999..=1001).contains(&counted), "{rate}/s after {warm_up:?}: {counted}");
                    assert!(left_behind.abs_diff(cycles.saturating_sub(ms)) <= 1, "{rate}/s, {ms} ms: {left_behind}");
                }
            }
        }
    }

    #[test]
    fn a_server_that_keeps_up_is_asked_for_all() {
        for warm_up in [Length::Time(SECOND), Length::Cycles(500), Length::Cycles(0)] {
            assert_eq!(served(500.0, warm_up), (500, 0), "{warm_up:?}");
        }
    }

    #[test]
    fn a_closed_loop_without_warm_up_counts_from_its_first_call() {
        let start = Instant::now();
        let schedule = Schedule::new((0, 1), None, (Length::Cycles(0), Length::Cycles(10)), start + SECOND);
        assert!(schedule.take(start).unwrap().is_counted);
        assert_eq!(schedule.counted_since(), Some(start));
    }

    fn taken(schedule: &Schedule, at: Instant, most: usize) -> Vec<(u64, bool)> {
        std::iter::from_fn(|| schedule.take(at)).take(most).map(|turn| (turn.cycle, turn.is_counted)).collect()
    }

    fn unserved(schedule: &Schedule, now: Instant) -> u64 {
        schedule.unserved(now).map(|(_, count)| count).sum()
    }

    #[test]
    fn a_rate_beyond_reach_is_still_counted() {
        let start = Instant::now();
        let schedule =
            Schedule::new((2, 3), steady(1e9), (Length::Time(Duration::ZERO), Length::Time(60 * SECOND)), start);
        assert_eq!(unserved(&schedule, start + 60 * SECOND), 20_000_000_000);
        assert!(schedule.unserved(start + 60 * SECOND).count() as u64 <= MOST_UNSERVED);
    }

    #[test]
    fn threads_share_cycles_without_a_gap() {
        let start = Instant::now();
        let mut all: Vec<u64> = (0..3)
            .flat_map(|index| {
                let lengths = (Length::Cycles(0), Length::Cycles(100));
                taken(&Schedule::new((index, 3), None, lengths, start), start, 1000)
            })
            .map(|(cycle, _)| cycle)
            .collect();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_closed_loop_ends_by_time_and_warms_up_first() {
        let start = Instant::now();
        let schedule = Schedule::new((0, 1), None, (Length::Time(SECOND), Length::Time(SECOND)), start);
        assert!(!schedule.take(start).unwrap().is_counted);
        assert!(schedule.take(start + SECOND).unwrap().is_counted);
        assert_eq!(schedule.take(start + 2 * SECOND), None);
        assert_eq!(unserved(&schedule, start + 2 * SECOND), 0);
    }

    #[test]
    fn warm_up_by_cycles_starts_the_clock_when_it_is_done() {
        let start = Instant::now();
        let schedule = Schedule::new((1, 2), None, (Length::Cycles(4), Length::Time(SECOND)), start);
        let late = start + 5 * SECOND;
        assert_eq!(taken(&schedule, late, 4), [(1, false), (3, false), (5, true), (7, true)]);
        assert_eq!(schedule.end(), Some(late + SECOND));
    }

    #[test]
    fn an_open_loop_counts_what_was_due_and_not_served() {
        let start = Instant::now();
        // 100 a second on two threads, 2 s: 200 are due, 100 of them here, the first half warm-up.
        let schedule = Schedule::new((0, 2), steady(100.0), (Length::Time(SECOND), Length::Time(SECOND)), start);
        let first = schedule.take(start).unwrap();
        assert_eq!((first.due, first.is_counted), (start, false));
        let second = schedule.take(start).unwrap();
        assert_eq!(second.due, start + Duration::from_millis(20));
        for _ in 0..58 {
            schedule.take(start).unwrap();
        }
        // 60 taken: 50 of warm-up and 10 that count; 40 were due until the end.
        assert_eq!(schedule.taken(), 10);
        assert_eq!(unserved(&schedule, start + 3 * SECOND), 40);
        assert_eq!(schedule.take(start + 2 * SECOND), None);
        // Stopped in the middle: only what was due until then is missing.
        assert_eq!(unserved(&schedule, start + Duration::from_millis(1_500)), 15);
    }
}
