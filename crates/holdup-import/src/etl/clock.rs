//! From the log's clock to nanoseconds of wall-clock time.

/// Nanoseconds in a second, for clocks that count others.
const SECOND: u64 = 1_000_000_000;
/// Ticks in a second of the system's time.
const SYSTEM: u64 = 10_000_000;
/// 1970 in ticks since 1601.
const UNIX: u64 = 116_444_736_000_000_000;
/// Times further from the log's beginning (416 days) are damage.
const PLAUSIBLE: u64 = 1 << 55;

/// The clock of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Ticks a second.
    frequency: u64,
    /// Its reading when the log began, and what time that was in nanoseconds since 1970.
    base: (u64, u64),
}

impl Clock {
    /// A clock of `frequency` ticks a second that read `ticks` at the system time `start` (100 ns since 1601; 0 for unknown).
    pub fn new(frequency: u64, ticks: u64, start: u64) -> Clock {
        let mut clock = Clock { frequency: frequency.max(1), base: (0, 0) };
        let began = match start.saturating_sub(UNIX) {
            0 => clock.length(ticks),
            since => since.saturating_mul(SECOND / SYSTEM),
        };
        clock.base = (ticks, began);
        clock
    }

    /// By the type that the log's header tells: performance counter (1), system time (2) or CPU cycles (3).
    pub fn by_type(kind: u32, counter: u64, mhz: u32, ticks: u64, start: u64) -> Clock {
        let frequency = match kind {
            2 => SYSTEM,
            3 => u64::from(mhz) * 1_000_000,
            _ => counter,
        };
        Clock::new(if frequency == 0 { SYSTEM } else { frequency }, ticks, start)
    }

    /// Nanoseconds that so many ticks take.
    #[inline]
    pub fn length(&self, ticks: u64) -> u64 {
        let (whole, part) = (ticks / self.frequency, ticks % self.frequency);
        let part = u128::from(part) * u128::from(SECOND) / u128::from(self.frequency);
        whole.saturating_mul(SECOND).saturating_add(part as u64)
    }

    /// The time of a reading, in nanoseconds since 1970; `None` if it can't be one of this log.
    #[inline]
    pub fn time(&self, ticks: u64) -> Option<u64> {
        let (base, began) = self.base;
        let length = self.length(ticks.abs_diff(base));
        if length >= PLAUSIBLE {
            return None;
        }
        if ticks >= base { began.checked_add(length) } else { began.checked_sub(length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_of_win7() {
        let clock = Clock::by_type(1, 2_143_632, 2195, 1_321_813_084_924, 129_591_538_365_000_000);
        // The 30th of August 2011, 03:57:16.5.
        let began = 1_314_680_236_500_000_000;
        assert_eq!(clock.time(1_321_813_084_924), Some(began));
        assert_eq!(clock.time(1_321_813_084_924 + 2_143_632 * 17), Some(began + 17 * SECOND));
        assert_eq!(clock.time(1_321_813_084_924 - 1), Some(began - 466));
        assert_eq!(clock.time(u64::MAX), None);
    }

    #[test]
    fn other_clocks() {
        let cycles = Clock::by_type(3, 0, 2000, 0, 0);
        assert_eq!((cycles.length(4_000_000_001), cycles.time(2)), (2_000_000_000, Some(1)));
        let system = Clock::by_type(2, 5, 0, UNIX + SYSTEM, UNIX + SYSTEM);
        assert_eq!(system.time(UNIX + 2 * SYSTEM), Some(2 * SECOND));
        assert_eq!(Clock::by_type(1, 0, 0, 0, 0).length(1), 100, "no frequency: as if it were the system's");
    }
}
