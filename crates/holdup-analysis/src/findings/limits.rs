//! What time and CPUs allow: every figure of a report passes here, so that none is printed that cannot be.

use std::cell::Cell;

use holdup_trace::{Amount, Nanos, Result, Timestamp, Trace};

use crate::blame::Window;
use crate::report::Options;

/// The bounds of one report, and how many figures went beyond them.
#[derive(Debug)]
pub(crate) struct Limits {
    /// How much time is explained.
    length: Amount,
    cpus: f64,
    impossible: Cell<u64>,
}

/// Rounding of sums, relative.
const ROUNDING: f64 = 1e-3;

impl Limits {
    pub(super) fn new(window: Window, cpus: usize) -> Self {
        let length = Nanos(window.to.saturating_sub(window.from)).amount();
        Limits { length, cpus: cpus.max(1) as f64, impossible: Cell::new(0) }
    }

    /// Seconds of what happens at most once at a time.
    pub(super) fn once(&self, time: Amount) -> f64 {
        self.cut(time, self.length)
    }

    /// Seconds that `threads` spent, perhaps all at once.
    pub(super) fn of_threads(&self, time: Amount, threads: usize) -> f64 {
        self.cut(time, self.length * threads as f64)
    }

    /// Seconds of CPU time.
    pub(super) fn of_cpus(&self, time: Amount) -> f64 {
        self.cut(time, self.length * self.cpus)
    }

    /// How many figures were cut.
    pub(super) fn impossible(&self) -> u64 {
        self.impossible.get()
    }

    fn cut(&self, time: Amount, most: Amount) -> f64 {
        if time >= Amount::ZERO && time <= most * (1.0 + ROUNDING) + Amount(1.0) {
            return time.seconds();
        }
        self.impossible.set(self.impossible.get() + 1);
        if time > Amount::ZERO { most.seconds() } else { 0.0 }
    }
}

/// The part of the time that is to be explained; refuses one in which nothing lies.
pub(super) fn window(trace: &Trace, path: &str, options: &Options) -> Result<Window> {
    let end = trace.meta.duration_ns;
    let Some((from, to)) = options.window else { return Ok(Window { from: 0, to: end }) };
    let ns = |s: f64| Timestamp::from_seconds(s).nanos();
    let window = Window { from: ns(from).min(end), to: ns(to).min(end) };
    if window.from >= window.to {
        let length = trace.meta.duration().seconds();
        let what = format!("{path}: nothing lies between {from} s and {to} s; the trace is {length:.3} s long");
        return Err(holdup_trace::Error::Input(what));
    }
    Ok(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_cut_and_counted() {
        let limits = Limits::new(Window { from: 1_000_000_000, to: 3_000_000_000 }, 4);
        assert_eq!(limits.once(Amount(2e9)), 2.0);
        assert_eq!(limits.of_threads(Amount(20e9), 10), 20.0);
        assert_eq!(limits.of_cpus(Amount(8e9)), 8.0);
        assert_eq!(limits.impossible(), 0);
        assert_eq!(limits.once(Amount(486e9)), 2.0);
        assert_eq!(limits.of_threads(Amount(-1.0), 3), 0.0);
        assert_eq!(limits.of_cpus(Amount(f64::NAN)), 0.0);
        assert_eq!(limits.impossible(), 3);
    }
}
