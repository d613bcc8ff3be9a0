//! Waiting that is short by the clock, not by the pause instruction.

use crate::pause::{self, Calibration};

/// What a waiting thread has just done, and what to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It paused, for 272 ns at most. Look, then take another step.
    Spun,
    /// It gave its CPU away. Look, then take another step.
    Yielded,
    /// It has waited for what a sleep costs: sleep (`park`, a condition variable, a futex) until woken.
    Park,
}

/// A spin-wait of calibrated length: pauses that double up to 272 ns, then yields, then the advice to sleep.
///
/// Iteration i pauses for min(2ⁱ, 7) units of 37 ns, after [`Calibration`]; so the condition is looked at every
/// 272 ns at most, and a processor with a slow pause waits no longer than one with a fast pause. After about 10 µs, which is what a sleep and
/// a wake-up cost, the thread yields four times, and then should sleep. On a machine with one CPU it yields at once.
///
/// *When not:* where the wait is usually longer than 10 µs (sleep at once), and as a lock: a spinning thread whose
/// partner was preempted burns its time slice. std's `Mutex` and `Condvar` spin and sleep already.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// let ready = AtomicBool::new(false);
/// std::thread::scope(|scope| {
///     let waiter = scope.spawn(|| {
///         while !holdup_sync::SpinWait::new().until(|| ready.load(Ordering::Acquire)) {
///             std::thread::park();
///         }
///     });
///     ready.store(true, Ordering::Release);
///     waiter.thread().unpark();
/// });
/// ```
#[derive(Clone, Debug)]
pub struct SpinWait {
    pauses_per_unit: u32,
    max_units: u32,
    iteration: u32,
    units_left: u32,
    yields_left: u32,
}

/// About 10 µs.
const BUDGET_UNITS: u32 = 270;
const YIELDS: u32 = 4;

impl SpinWait {
    /// A wait that begins now, by the calibration of this process (see [`Calibration::current`]).
    pub fn new() -> Self {
        let (pauses_per_unit, max_units) = pause::limits();
        Self::with_limits(pauses_per_unit, max_units, crate::cpu::possible() > 1)
    }

    /// A wait by a calibration of the caller's, whose pause is given to [`step_with`](Self::step_with).
    pub fn calibrated(calibration: &Calibration) -> Self {
        Self::with_limits(calibration.pauses_per_unit(), calibration.max_units(), true)
    }

    fn with_limits(pauses_per_unit: u32, max_units: u32, spins: bool) -> Self {
        let units_left = if spins { BUDGET_UNITS } else { 0 };
        SpinWait { pauses_per_unit, max_units, iteration: 0, units_left, yields_left: YIELDS }
    }

    /// Waits for one iteration. Look at the condition after each.
    pub fn step(&mut self) -> Step {
        self.step_with(core::hint::spin_loop)
    }

    /// [`step`](Self::step) with another pause: a slower one, or one that counts.
    pub fn step_with(&mut self, mut pause: impl FnMut()) -> Step {
        if self.units_left > 0 {
            let units = (1 << self.iteration.min(16)).min(self.max_units).min(self.units_left);
            (0..units * self.pauses_per_unit).for_each(|_| pause());
            self.iteration += 1;
            self.units_left -= units;
            Step::Spun
        } else if self.yields_left > 0 {
            self.yields_left -= 1;
            std::thread::yield_now();
            Step::Yielded
        } else {
            Step::Park
        }
    }

    /// Waits until `ready`, or until it is time to sleep: then `false`.
    pub fn until(mut self, mut ready: impl FnMut() -> bool) -> bool {
        loop {
            if ready() {
                return true;
            }
            if self.step() == Step::Park {
                return false;
            }
        }
    }
}

impl Default for SpinWait {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Pauses of each iteration, then the number of yields.
    fn course(pause_ns: u64) -> (Vec<u32>, u32) {
        let clock = std::cell::Cell::new(Duration::ZERO);
        let pause = || clock.set(clock.get() + Duration::from_nanos(pause_ns));
        let mut wait = SpinWait::calibrated(&Calibration::measure(pause, || clock.get()));
        let (mut rounds, mut yields) = (Vec::new(), 0);
        loop {
            let mut pauses = 0;
            match wait.step_with(|| pauses += 1) {
                Step::Spun => rounds.push(pauses),
                Step::Yielded => yields += 1,
                Step::Park => return (rounds, yields),
            }
        }
    }

    #[test]
    fn pauses_double_up_to_the_blind_limit() {
        let (rounds, yields) = course(37);
        assert_eq!(rounds[..5], [1, 2, 4, 7, 7]);
        assert_eq!(rounds.iter().sum::<u32>(), BUDGET_UNITS);
        assert_eq!(yields, YIELDS);
    }

    #[test]
    fn a_pause_ten_times_slower_waits_as_long() {
        for pause_ns in [4, 40] {
            let (rounds, _) = course(pause_ns);
            let longest = rounds.iter().max().map_or(0, |pauses| u64::from(*pauses) * pause_ns);
            assert!((200..=272).contains(&longest), "{longest} ns between two looks at a pause of {pause_ns} ns");
            let all = u64::from(rounds.iter().sum::<u32>()) * pause_ns;
            assert!((7_500..=12_500).contains(&all), "{all} ns in all at a pause of {pause_ns} ns");
        }
    }

    #[test]
    fn ends_when_ready_and_when_it_is_time_to_sleep() {
        let mut looks = 0;
        assert!(SpinWait::new().until(|| {
            looks += 1;
            looks == 3
        }));
        assert_eq!(looks, 3);
        assert!(!SpinWait::new().until(|| false));
    }
}
