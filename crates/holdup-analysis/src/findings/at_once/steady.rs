//! At which number something mostly stands.

use super::STEADY;

/// The number at which it stands, by how long it does so at each: it is as many for more of the time than chance has, and hardly fewer on
/// average.
pub(super) fn steady(levels: &[f64]) -> Option<usize> {
    let at_least = |n: usize| levels.iter().skip(n).sum::<f64>();
    let whole = at_least(1);
    let at_once = (1..levels.len()).rev().find(|n| at_least(*n) > (1.0 - STEADY) * whole)?;
    let all: f64 = (1..=at_once).map(at_least).sum();
    (all >= STEADY * at_once as f64 * whole).then_some(at_once)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_few_workers_are_seldom_busy_at_the_same_instant() {
        // The times at which none, one, two … do it.
        assert_eq!(steady(&[0.0, 10.0]), Some(1));
        assert_eq!(steady(&[0.0, 9.0, 1.0]), Some(1), "now and then a second one begins before the first has ended");
        assert_eq!(steady(&[0.0, 3.0, 7.0]), Some(2));
        assert_eq!(steady(&[0.0, 0.1, 0.5, 2.9, 6.5]), Some(4), "four of which each does it nine tenths of the time");
        assert_eq!(steady(&[0.0, 5.0, 5.0]), None);
        assert_eq!(steady(&[0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]), None, "as many as there are");
        assert_eq!(steady(&[10.0]), None);
    }
}
