//! Student's t, as far as intervals need it.

use std::f64::consts::{PI, TAU};

/// Student's distribution with so many degrees of freedom.
#[derive(Debug, Clone, Copy)]
pub(super) struct Student {
    freedom: f64,
    /// ln of 1 / B(freedom / 2, 1 / 2), which is the same for all arguments.
    scale: f64,
}

impl Student {
    /// `freedom` is above 0, and need not be whole.
    pub(super) fn new(freedom: f64) -> Self {
        let half = freedom / 2.0;
        Student { freedom, scale: ln_gamma(half + 0.5) - ln_gamma(half) - 0.5 * PI.ln() }
    }

    /// The probability of a value further than `t` from 0, on both sides together: the incomplete beta function of
    /// freedom / 2 and 1 / 2 at freedom / (freedom + t²).
    pub(super) fn beyond(&self, t: f64) -> f64 {
        let (a, b) = (self.freedom / 2.0, 0.5);
        let (x, rest) = (self.freedom / (self.freedom + t * t), t * t / (self.freedom + t * t));
        if rest == 0.0 {
            return 1.0;
        }
        let front = (self.scale + a * x.ln() + b * rest.ln()).exp();
        // The fraction converges fast on one side of the mean of the beta distribution only; the other follows by
        // symmetry.
        if x < (a + 1.0) / (a + b + 2.0) {
            front * fraction(a, b, x) / a
        } else {
            1.0 - front * fraction(b, a, rest) / b
        }
    }
}

/// ln Γ(x) for x > 0: Stirling's series, where it is good to 1e-13, and the recurrence below.
fn ln_gamma(mut x: f64) -> f64 {
    let mut below = 0.0;
    while x < 10.0 {
        below -= x.ln();
        x += 1.0;
    }
    let s = 1.0 / (x * x);
    let series = 1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0 - s / 1188.0)));
    below + (x - 0.5) * x.ln() - x + 0.5 * TAU.ln() + series / x
}

/// The continued fraction of the incomplete beta function, by the method of W. J. Lentz (1976).
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let safe = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut d = 1.0 / safe(1.0 - (a + b) * x / (a + 1.0));
    let (mut c, mut value) = (1.0, d);
    for m in (1..500).map(f64::from) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = value;
        for term in [even, odd] {
            d = 1.0 / safe(1.0 + term * d);
            c = safe(1.0 + term / c);
            value *= d * c;
        }
        if (value - before).abs() < 1e-15 * value.abs() {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: scipy 1.17.1, `2 * t.sf(t, freedom)`.
    #[test]
    fn tails_of_student() {
        for (freedom, t, expected) in [
            (1.0, 1.0, 5.0000000000000e-01),
            (2.0, 4.303, 4.9992524985214e-02),
            (2.5, 0.3, 7.8734237149520e-01),
            (9.0, 2.262, 5.0012845502455e-02),
            (59.0, 2.0, 5.0110412988244e-02),
            (59.0, 0.01, 9.9205502458177e-01),
            (59.0, 9.0, 1.1423735969227e-12),
            (399.0, 1.966, 4.9991568684418e-02),
            (399.0, 30.0, 2.5671606091219e-104),
        ] {
            let beyond = Student::new(freedom).beyond(t);
            assert!((beyond / expected - 1.0).abs() < 1e-10, "{freedom} {t}: {beyond:e}, not {expected:e}");
        }
        assert_eq!(Student::new(5.0).beyond(0.0), 1.0);
    }
}
