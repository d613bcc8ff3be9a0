//! Which values a panel shows.

use holdup_plot::{linear_end, log_ends};

use crate::result::Point;

/// Above this ratio of the largest to the least value the axis is logarithmic.
const LOG_ABOVE: f64 = 20.0;

/// A scale of values: its ends are labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// From 0 to `end`, with a label at each `step`.
    Linear {
        /// The last label.
        end: f64,
        /// From one label to the next.
        step: f64,
    },
    /// Between two labels, both above 0.
    Log {
        /// The first.
        low: f64,
        /// The last.
        high: f64,
    },
}

impl Scale {
    /// The scale for all of these points; `None` if all are 0.
    pub fn of<'a>(points: impl Iterator<Item = &'a Point> + Clone, unit: &str) -> Option<Scale> {
        let medians = points.clone().map(|p| p.median).filter(|v| *v > 0.0);
        let (least, most) = (medians.clone().fold(f64::MAX, f64::min), medians.fold(0.0, f64::max));
        let high = points.clone().map(|p| p.high).fold(most, f64::max);
        if most == 0.0 {
            return None;
        }
        if most / least > LOG_ABOVE && !unit.starts_with('%') {
            // An interval that reaches to nearly nothing must not take the whole panel.
            let low = points.map(|p| p.low).filter(|v| *v > 0.0).fold(least, f64::min).max(least / 3.0);
            let (low, high) = log_ends(low, high);
            return Some(Scale::Log { low, high });
        }
        let (end, step) = linear_end(high);
        Some(Scale::Linear { end, step })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_ends_at_labels() {
        let of = |values: &[f64], unit| {
            let points: Vec<Point> =
                values.iter().map(|v| Point { median: *v, low: *v, high: *v, ..Point::default() }).collect();
            Scale::of(points.iter(), unit)
        };
        assert_eq!(of(&[12.0, 93.0], "ns"), Some(Scale::Linear { end: 100.0, step: 20.0 }));
        assert_eq!(of(&[3.0, 90.0], "ns"), Some(Scale::Log { low: 2.0, high: 100.0 }));
        assert_eq!(of(&[3.0, 90.0], "% lost"), Some(Scale::Linear { end: 100.0, step: 20.0 }));
        assert_eq!(of(&[0.0], "ns"), None);
    }
}
