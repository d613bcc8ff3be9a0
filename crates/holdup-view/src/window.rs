//! A stretch of time, and its pixels.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// More pixels than any screen has.
pub(crate) const MOST_PX: usize = 8192;

/// From when to when, in nanoseconds since the trace's start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Window(pub f64, pub f64);

/// A window that lies in the trace, and is cut into pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Grid {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) px: usize,
}

impl Window {
    /// The part of it that lies in a trace of `end` nanoseconds.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn within(self, end: u64) -> Result<(u64, u64)> {
        let ns = |t: f64| if t.is_finite() { (t.max(0.0) as u64).min(end) } else { end };
        let (from, to) = (ns(self.0), ns(self.1));
        if from >= to {
            let (a, b) = (self.0, self.1);
            return Err(Error::Question(format!("nothing lies between {a} and {b} ns; the trace is {end} ns long")));
        }
        Ok((from, to))
    }
}

impl Grid {
    /// # Errors
    /// If nothing of the window lies in the trace, or if there are no pixels, or too many.
    pub(crate) fn new(window: Window, px: usize, end: u64) -> Result<Self> {
        if px == 0 || px > MOST_PX {
            return Err(Error::Question(format!("px is {px}; it must lie between 1 and {MOST_PX}")));
        }
        let (from, to) = window.within(end)?;
        Ok(Grid { from, to, px })
    }

    /// Nanoseconds in a pixel.
    pub(crate) fn width(&self) -> f64 {
        (self.to - self.from) as f64 / self.px as f64
    }

    /// Shows `see` the pixels that the time from `from` to `to` touches, each with the nanoseconds of it that lie there.
    #[inline]
    pub(crate) fn each(&self, from: u64, to: u64, mut see: impl FnMut(usize, f32)) {
        let (from, to) = (from.max(self.from), to.min(self.to));
        if from >= to {
            return;
        }
        let width = self.width();
        let (a, b) = ((from - self.from) as f64 / width, (to - self.from) as f64 / width);
        let (first, last) = ((a as usize).min(self.px - 1), (b as usize).min(self.px - 1));
        if first == last {
            return see(first, (to - from) as f32);
        }
        see(first, (((first + 1) as f64 - a) * width) as f32);
        for px in first + 1..last {
            see(px, width as f32);
        }
        let rest = ((b - last as f64) * width) as f32;
        if rest > 0.0 {
            see(last, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shared_out_to_pixels() {
        let grid = Grid { from: 100, to: 200, px: 10 };
        let of = |from, to| {
            let mut found = Vec::new();
            grid.each(from, to, |px, ns| found.push((px, ns)));
            found
        };
        assert_eq!(of(0, 105), [(0, 5.0)]);
        assert_eq!(of(95, 125), [(0, 10.0), (1, 10.0), (2, 5.0)]);
        assert_eq!(of(195, 900), [(9, 5.0)]);
        assert_eq!(of(0, 100), []);
    }

    #[test]
    fn windows_outside_are_refused() {
        assert!(Grid::new(Window(5.0, 1.0), 10, 100).is_err());
        assert!(Grid::new(Window(f64::NAN, 1.0), 10, 100).is_err());
        assert!(Grid::new(Window(0.0, 1.0), 0, 100).is_err());
        assert_eq!(Grid::new(Window(-5.0, 1e300), 10, 100).unwrap(), Grid { from: 0, to: 100, px: 10 });
    }
}
