//! How long many things took, in little memory.

use holdup_trace::Nanos;

/// Steps by which a time is told from one twice as long.
const STEPS: u32 = 8;
/// Times are told apart up to this power of two of nanoseconds, 18 minutes.
const POWERS: u32 = 40;

/// How many took how long, within a twelfth.
#[derive(Debug, Clone, Default)]
pub struct Latency {
    counts: Vec<u32>,
    /// How many.
    pub count: u64,
    /// All together.
    pub total: Nanos,
    /// The longest.
    pub longest: Nanos,
}

impl Latency {
    /// One more.
    pub(super) fn add(&mut self, time: Nanos) {
        let at = bucket(time.0);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] = self.counts[at].saturating_add(1);
        (self.count, self.total) = (self.count + 1, self.total + time);
        self.longest = self.longest.max(time);
    }

    /// All of `other`, too.
    pub(super) fn absorb(&mut self, other: &Latency) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(n, by)| *n = n.saturating_add(*by));
        (self.count, self.total) = (self.count + other.count, self.total + other.total);
        self.longest = self.longest.max(other.longest);
    }

    /// The time than which so great a share took no longer; zero for none.
    pub fn quantile(&self, share: f64) -> Nanos {
        let wanted = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (at, &n) in self.counts.iter().enumerate() {
            seen += u64::from(n);
            if seen >= wanted {
                return middle(at).min(self.longest);
            }
        }
        self.longest
    }
}

fn bucket(ns: u64) -> usize {
    let power = ns.max(1).ilog2().min(POWERS);
    let step = if power >= 3 { (ns >> (power - 3)).min(2 * u64::from(STEPS) - 1) as u32 - STEPS } else { 0 };
    (power * STEPS + step) as usize
}

fn middle(bucket: usize) -> Nanos {
    let (power, step) = (bucket as u32 / STEPS, bucket as u32 % STEPS);
    if power < 3 { Nanos(1 << power) } else { Nanos((u64::from(STEPS + step) << (power - 3)) + (1 << (power - 3)) / 2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_twelfth() {
        let mut all = Latency::default();
        (1..=1000).for_each(|us| all.add(Nanos(us * 1000)));
        for (share, us) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0), (0.001, 1.0)] {
            let found = all.quantile(share).0 as f64 / 1000.0;
            assert!((found / us - 1.0).abs() < 1.0 / 12.0, "{share}: {found}");
        }
        assert_eq!((all.count, all.longest, all.total), (1000, Nanos(1_000_000), Nanos(500_500_000)));
        let mut twice = all.clone();
        twice.absorb(&all);
        assert_eq!((twice.count, twice.quantile(0.5)), (2000, all.quantile(0.5)));
        assert_eq!(Latency::default().quantile(0.5), Nanos(0));
        let mut extremes = Latency::default();
        [0, 1, 7, u64::MAX / 2].into_iter().for_each(|ns| extremes.add(Nanos(ns)));
        assert_eq!(extremes.quantile(0.1), Nanos(1));
    }
}
