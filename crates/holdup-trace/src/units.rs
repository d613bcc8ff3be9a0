//! Units of time. Seconds are for reports: nothing else knows how many nanoseconds are in one.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

use serde::{Deserialize, Serialize};

/// Nanoseconds since the trace's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Timestamp(u64);

/// Nanoseconds in a second: no other file knows it.
const SECOND: f64 = 1e9;

/// A length of time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Nanos(pub u64);

impl Timestamp {
    /// The start of the trace.
    pub const ZERO: Self = Timestamp(0);
    /// Later than any event.
    pub const MAX: Self = Timestamp(u64::MAX);

    /// From nanoseconds since the trace's start.
    pub const fn from_nanos_since_start(nanos: u64) -> Self {
        Timestamp(nanos)
    }

    /// Nanoseconds since the trace's start.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// From seconds since the trace's start; what lies before it is its start.
    pub fn from_seconds(seconds: f64) -> Self {
        Timestamp((seconds * SECOND) as u64)
    }

    /// Seconds since the trace's start.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / SECOND
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Timestamp) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// This instant moved back by `by`, not before the trace's start.
    pub const fn before(self, by: Nanos) -> Timestamp {
        Timestamp(self.0.saturating_sub(by.0))
    }

    /// This instant moved on by `by`.
    pub const fn after(self, by: Nanos) -> Timestamp {
        Timestamp(self.0.saturating_add(by.0))
    }
}

impl Nanos {
    /// No time.
    pub const ZERO: Nanos = Nanos(0);

    /// This length in seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / SECOND
    }

    /// As an amount that can be divided.
    pub fn amount(self) -> Amount {
        Amount(self.0 as f64)
    }
}

/// A sum never wraps: it is at most the greatest length.
impl Add for Nanos {
    type Output = Nanos;

    fn add(self, more: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(more.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, more: Nanos) {
        *self = *self + more;
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(all: I) -> Nanos {
        all.fold(Nanos::ZERO, Add::add)
    }
}

/// Time in nanoseconds that was divided, weighted or averaged: CPU time that several share, blame, a mean.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Amount(pub f64);

impl Amount {
    /// None.
    pub const ZERO: Amount = Amount(0.0);

    /// From seconds.
    pub fn from_seconds(seconds: f64) -> Amount {
        Amount(seconds * SECOND)
    }

    /// In seconds.
    pub fn seconds(self) -> f64 {
        self.0 / SECOND
    }

    /// The larger one; a number where the other is none.
    pub fn max(self, other: Amount) -> Amount {
        Amount(self.0.max(other.0))
    }
}

impl Add for Amount {
    type Output = Amount;

    fn add(self, more: Amount) -> Amount {
        Amount(self.0 + more.0)
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, more: Amount) {
        self.0 += more.0;
    }
}

impl Sub for Amount {
    type Output = Amount;

    fn sub(self, less: Amount) -> Amount {
        Amount(self.0 - less.0)
    }
}

impl Mul<f64> for Amount {
    type Output = Amount;

    fn mul(self, factor: f64) -> Amount {
        Amount(self.0 * factor)
    }
}

impl Mul<Amount> for f64 {
    type Output = Amount;

    fn mul(self, amount: Amount) -> Amount {
        Amount(self * amount.0)
    }
}

impl Div<f64> for Amount {
    type Output = Amount;

    fn div(self, by: f64) -> Amount {
        Amount(self.0 / by)
    }
}

/// How many times the other it is.
impl Div for Amount {
    type Output = f64;

    fn div(self, other: Amount) -> f64 {
        self.0 / other.0
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Amount>>(all: I) -> Amount {
        Amount(all.map(|amount| amount.0).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_and_written() {
        assert_eq!(Timestamp::from_seconds(1.5).nanos(), 1_500_000_000);
        assert_eq!([Timestamp::from_seconds(-1.0), Timestamp::from_seconds(f64::NAN)], [Timestamp::ZERO; 2]);
        assert_eq!((Nanos(2_500_000_000).seconds(), Amount::from_seconds(0.25).seconds()), (2.5, 0.25));
    }

    #[test]
    fn sums_do_not_wrap() {
        assert_eq!([Nanos(u64::MAX), Nanos(1)].into_iter().sum::<Nanos>(), Nanos(u64::MAX));
        assert_eq!(Timestamp::from_seconds(1.0).since(Timestamp::from_seconds(2.0)), Nanos::ZERO);
        let parts = [Amount(1.0), Amount(3.0)];
        assert_eq!(
            (parts.into_iter().sum::<Amount>(), parts[1] / parts[0], Amount(f64::NAN).max(parts[0])),
            (Amount(4.0), 3.0, parts[0])
        );
    }
}
