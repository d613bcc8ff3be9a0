//! How counts that only grow are emptied.

use crate::sync::{Mutex, lock};

/// What has been taken of a total that others only add to, wrapping.
///
/// To set cells back to 0, their writers would have to be stopped. So nothing is: what is left is the total less what was
/// taken. The lock puts totals in an order: who takes later sees every cell at least as new, so that each add is taken
/// once.
#[derive(Debug)]
pub struct Taken(Mutex<u64>);

impl Taken {
    /// Nothing.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Taken(Mutex::new(0))
    }

    /// Nothing, as a model.
    #[cfg(loom)]
    pub fn new() -> Self {
        Taken(Mutex::new(0))
    }

    /// What `total` has beyond what was taken.
    pub fn left(&self, total: impl FnOnce() -> u64) -> u64 {
        let taken = lock(&self.0);
        total().wrapping_sub(*taken)
    }

    /// Takes that.
    pub fn take(&self, total: impl FnOnce() -> u64) -> u64 {
        let mut taken = lock(&self.0);
        let now = total();
        now.wrapping_sub(std::mem::replace(&mut *taken, now))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn totals_that_wrap_are_taken_right() {
        let taken = Taken::new();
        assert_eq!(taken.take(|| u64::MAX - 1), u64::MAX - 1);
        assert_eq!(taken.left(|| 3), 5);
        assert_eq!(taken.take(|| 3), 5);
        assert_eq!(taken.left(|| 3), 0);
        assert_eq!(taken.take(|| 1), 2u64.wrapping_neg(), "two were subtracted");
    }
}
