//! What is kept of a series of values.

/// Number, sum, least and greatest of a series of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// How many values.
    pub count: u64,
    /// Their sum; stays at `u64::MAX` if it would be more.
    pub sum: u64,
    /// The least; `u64::MAX` without values.
    pub min: u64,
    /// The greatest; 0 without values.
    pub max: u64,
}

impl Totals {
    /// No values.
    pub const EMPTY: Totals = Totals { count: 0, sum: 0, min: u64::MAX, max: 0 };

    /// Adds one value.
    pub const fn record(&mut self, value: u64) {
        self.merge(&Totals { count: 1, sum: value, min: value, max: value });
    }

    /// Adds another series.
    pub const fn merge(&mut self, other: &Totals) {
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        if other.min < self.min {
            self.min = other.min;
        }
        if other.max > self.max {
            self.max = other.max;
        }
    }

    /// The arithmetic mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

impl Default for Totals {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<'a> core::iter::Sum<&'a Totals> for Totals {
    fn sum<I: Iterator<Item = &'a Totals>>(series: I) -> Self {
        series.fold(Totals::EMPTY, |mut all, one| {
            all.merge(one);
            all
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_is_recording_all() {
        let (mut left, mut right, mut all) = (Totals::EMPTY, Totals::EMPTY, Totals::EMPTY);
        for value in [7, 9, 1, 3, 4] {
            all.record(value);
        }
        [7, 9].iter().for_each(|value| left.record(*value));
        [1, 3, 4].iter().for_each(|value| right.record(*value));
        assert_eq!([left, right].iter().sum::<Totals>(), all);
        assert_eq!(all, Totals { count: 5, sum: 24, min: 1, max: 9 });
        assert_eq!(all.mean(), Some(4.8));
        assert_eq!(Totals::EMPTY.mean(), None);
    }

    #[test]
    fn a_sum_stays_at_its_greatest() {
        let mut totals = Totals::EMPTY;
        (0..2).for_each(|_| totals.record(u64::MAX));
        assert_eq!((totals.count, totals.sum), (2, u64::MAX));
    }
}
