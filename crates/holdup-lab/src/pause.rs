//! How long the processor's spin hint takes, measured, and a stand-in for that of another processor.

use crate::harness::clock;
use crate::harness::stats::{self, Spread};

/// Pauses between two readings of the clock.
const BATCH: u32 = 200;

/// Nanoseconds for each pause in `batches` batches of 200, sorted.
pub fn batches_sorted(batches: usize) -> Vec<f64> {
    let cost = clock::cost_ns();
    let batch = || {
        let start = clock::now_ns();
        for _ in 0..BATCH {
            std::hint::spin_loop();
        }
        (clock::now_ns() - start).saturating_sub(cost) as f64 / f64::from(BATCH)
    };
    stats::sorted((0..batches).map(|_| batch()))
}

/// The length that sorted batches tell: that of the fastest twentieth, as interrupts and a busy sibling only ever add.
/// The interval reaches from the fastest batch to nearly the slowest: a busy sibling makes all of a run slower.
pub fn of_sorted(batches: &[f64]) -> Spread {
    let at = |q| stats::quantile_of_sorted(batches, q);
    Spread { median: at(0.05), low: at(0.0), high: at(0.95) }
}

/// Measures the pause in so many batches.
pub fn measure(batches: usize) -> Spread {
    of_sorted(&batches_sorted(batches))
}

/// Simulated pauses longer than this are timed by the clock.
const BY_CLOCK_NS: u64 = 1000;

fn spin_for(length_ns: u64) {
    let end = clock::now_ns() + length_ns;
    while clock::now_ns() < end {
        std::hint::spin_loop();
    }
}

/// The spin hint of this processor, or of one on which it takes longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    repeat: u32,
    /// Its length where it is simulated; 0 is the real one.
    simulated_ns: u32,
}

impl Pause {
    /// This processor's.
    pub const REAL: Pause = Pause { repeat: 1, simulated_ns: 0 };

    /// As many real ones in a row as come next to `wanted_ns`, where one takes `real_ns`. Shorter than a real one is
    /// not possible.
    pub fn simulated(wanted_ns: f64, real_ns: f64) -> Pause {
        let repeat = (wanted_ns / real_ns.max(0.1)).round().clamp(1.0, 100_000.0) as u32;
        Pause { repeat, simulated_ns: wanted_ns.max(real_ns).round() as u32 }
    }

    /// Spins for `count` pauses. Many simulated ones are timed by the clock, as real ones change with the load of the
    /// sibling.
    #[inline]
    pub fn spin(self, count: u64) {
        let length = count * u64::from(self.simulated_ns);
        if length > BY_CLOCK_NS {
            return spin_for(length);
        }
        for _ in 0..count * u64::from(self.repeat) {
            std::hint::spin_loop();
        }
    }

    /// Its length by repetition, where a real one takes `real_ns`.
    pub fn length_ns(self, real_ns: f64) -> f64 {
        f64::from(self.repeat) * real_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_pause_is_as_many_real_ones() {
        assert_eq!(Pause::simulated(43.0, 4.3), Pause { repeat: 10, simulated_ns: 43 });
        assert_eq!(Pause::simulated(1.0, 4.3), Pause { repeat: 1, simulated_ns: 4 });
        let start = clock::now_ns();
        Pause::simulated(43.0, 4.3).spin(1000);
        assert!(clock::now_ns() - start >= 43_000);
        assert_eq!(Pause::simulated(43.0, 4.3).length_ns(4.3), 43.0);
        assert!(measure(20).median > 0.0);
    }
}
