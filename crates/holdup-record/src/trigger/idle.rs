//! For how long how many CPUs have had nothing to run.

use std::collections::VecDeque;
use std::time::Duration;

/// A window moves on in steps of this part of it.
const STEPS: u64 = 4;

/// The share of a window in which CPUs were idle.
#[derive(Debug)]
pub(crate) struct Idle {
    share: f64,
    step: u64,
    /// Since when each CPU is idle, at the earliest the begin of the step; none if it runs or nothing is known of it.
    cpus: Vec<Option<u64>>,
    /// When the step ends.
    end: u64,
    /// Idle time within it, of what is over.
    current: u64,
    /// The steps before.
    sums: VecDeque<u64>,
    /// Whether the share was reached at the end of the last window, and told.
    told: bool,
}

/// A window in which the share was reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Window {
    pub begin: u64,
    pub share: f64,
}

impl Idle {
    pub(crate) fn new(share: f64, time: Duration, cpus: usize, t: u64) -> Idle {
        let step = (time.as_nanos() as u64 / STEPS).max(1);
        Idle { share, step, cpus: vec![None; cpus], end: t + step, current: 0, sums: VecDeque::new(), told: false }
    }

    /// Nothing is known any more.
    pub(crate) fn forget(&mut self) {
        self.cpus.fill(None);
        self.sums.clear();
        self.current = 0;
    }

    /// A CPU has nothing to run from `t` on, or something. Times before are over: see [`advance`](Self::advance).
    pub(crate) fn switch(&mut self, cpu: u16, t: u64, is_idle: bool) {
        let Some(since) = self.cpus.get_mut(usize::from(cpu)) else { return };
        if let Some(since) = *since {
            self.current += t.saturating_sub(since);
        }
        *since = is_idle.then_some(t);
    }

    /// Time has come to `t`: the window that ended since and reached the share, until it is [told](Self::tell).
    pub(crate) fn advance(&mut self, t: u64) -> Option<Window> {
        // The machine slept, or so did this process.
        if t.saturating_sub(self.end) > 16 * STEPS * self.step {
            self.forget();
            self.end = t;
        }
        let mut reached = None;
        while t >= self.end {
            reached = self.step_ends();
        }
        reached.filter(|_| !self.told)
    }

    /// The stall is known until less than the share is idle again.
    pub(crate) fn tell(&mut self) {
        self.told = true;
    }

    fn step_ends(&mut self) -> Option<Window> {
        let end = self.end;
        for since in self.cpus.iter_mut().flatten() {
            self.current += end.saturating_sub(*since);
            *since = end;
        }
        self.sums.push_back(std::mem::take(&mut self.current));
        self.end += self.step;
        if self.sums.len() < STEPS as usize {
            return None;
        }
        let whole = (STEPS * self.step * self.cpus.len() as u64) as f64;
        let share = self.sums.iter().sum::<u64>() as f64 / whole;
        self.sums.pop_front();
        let is_reached = share >= self.share;
        self.told &= is_reached;
        is_reached.then_some(Window { begin: end - STEPS * self.step, share })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPU 0 runs for ten steps, then it is idle; CPU 1 runs for good.
    fn half_idle(share: f64) -> Vec<(u64, Window)> {
        let mut idle = Idle::new(share, Duration::from_nanos(400), 2, 0);
        let mut seen = Vec::new();
        idle.switch(1, 0, false);
        idle.switch(0, 0, false);
        for t in (0..3000).step_by(50) {
            if let Some(window) = idle.advance(t) {
                seen.push((t, window));
                idle.tell();
            }
            if t == 1000 || t == 2100 {
                idle.switch(0, t, true);
            }
            if t == 2000 {
                idle.switch(0, t, false);
            }
        }
        seen
    }

    #[test]
    fn a_stall_is_told_once_and_the_next_one_again() {
        let seen = half_idle(0.5);
        assert_eq!(seen.iter().map(|(t, w)| (*t, w.begin)).collect::<Vec<_>>(), [(1400, 1000), (2500, 2100)]);
        assert!((seen[0].1.share - 0.5).abs() < 1e-9);
        assert_eq!(half_idle(0.6), []);
    }

    #[test]
    fn cpus_of_which_nothing_is_known_are_not_idle() {
        let mut idle = Idle::new(0.5, Duration::from_nanos(400), 2, 0);
        assert!((0..4000).step_by(100).all(|t| idle.advance(t).is_none()));
        idle.switch(0, 4000, true);
        idle.switch(1, 4000, true);
        assert_eq!(idle.advance(4400).map(|w| w.share), Some(1.0));
        idle.forget();
        assert_eq!(idle.advance(4900), None);
        // As after a suspend.
        idle.switch(0, 5000, true);
        assert_eq!(idle.advance(u64::MAX / 2), None);
    }
}
