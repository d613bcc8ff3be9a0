//! Chance that costs next to nothing and is the same in each run.

use std::num::NonZeroU64;

/// Marsaglia's xorshift generator ("Xorshift RNGs", 2003, with the shifts 13, 7, 17): for spreading things, not for secrets.
#[derive(Debug, Clone, Copy)]
pub struct Random(NonZeroU64);

impl Random {
    /// Another sequence for each `seed`.
    pub const fn new(seed: u64) -> Random {
        // A state of zero would stay.
        match NonZeroU64::new(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed.wrapping_add(1))) {
            Some(state) => Random(state),
            None => Random(NonZeroU64::MIN),
        }
    }

    /// The next number, any but 0.
    #[inline]
    pub fn number(&mut self) -> u64 {
        let mut x = self.0.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        // Each step can be undone, so only zero leads to zero.
        self.0 = NonZeroU64::new(x).unwrap_or(NonZeroU64::MIN);
        x
    }

    /// Evenly from 0 to below 1.
    #[inline]
    pub fn share(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
