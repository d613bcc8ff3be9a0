//! Which stretch of a recording tells the most.

use holdup_analysis::Explanation;

/// A stretch of time, in seconds since the recording's beginning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    pub from: f64,
    pub to: f64,
}

impl Span {
    pub fn length(self) -> f64 {
        self.to - self.from
    }

    fn overlap(self, other: Span) -> f64 {
        (self.to.min(other.to) - self.from.max(other.from)).max(0.0)
    }

    pub fn holds(self, other: Span) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    /// This stretch with a half of its length around it, within `whole`, and no longer than `most`.
    pub fn around(self, whole: Span, most: f64) -> Span {
        let length = (self.length() * 2.0).max(1e-3).min(most);
        let from = (self.from - length / 4.0).max(whole.from);
        Span { from, to: (from + length).min(whole.to) }
    }
}

/// Stretches of which so many are looked at.
const MOST: usize = 500;

/// Stretches with what they weigh: CPU seconds charged in each second.
pub(crate) fn weights(explanation: &Explanation) -> Vec<(Span, f64)> {
    let causes = explanation.findings.iter().filter(|f| f.is_cause());
    let spans = causes.flat_map(|f| {
        let total: f64 = f.windows.iter().map(|w| w[1] - w[0]).sum();
        f.windows.iter().map(move |w| (Span { from: w[0], to: w[1] }, f.blame_cpu_s / total.max(1e-9)))
    });
    let mut all: Vec<_> = spans.collect();
    all.sort_by(|a, b| (b.0.length() * b.1).total_cmp(&(a.0.length() * a.1)));
    all.truncate(MOST);
    all
}

/// The stretch of that length within `whole` in which the most is charged; the first of equal ones.
pub(crate) fn best(weights: &[(Span, f64)], whole: Span, length: f64) -> Span {
    let length = length.min(whole.length());
    let last = whole.to - length;
    // What leads to a stretch is worth seeing, too.
    let starts = weights.iter().map(|(span, _)| (span.from - length / 10.0).clamp(whole.from, last));
    let charged = |from: f64| -> f64 {
        let here = Span { from, to: from + length };
        weights.iter().map(|(span, weight)| span.overlap(here) * weight).sum()
    };
    let mut found = (whole.from, charged(whole.from));
    for from in starts {
        let sum = charged(from);
        if sum > found.1 * 1.001 {
            found = (from, sum);
        }
    }
    Span { from: found.0, to: found.0 + length }
}

/// Other stretches that are worth seeing, the most telling first, with why: the longest of each finding, and of each stall.
pub(crate) fn others(explanation: &Explanation) -> Vec<(Span, String)> {
    let longest = |windows: &[[f64; 2]]| {
        let spans = windows.iter().map(|w| Span { from: w[0], to: w[1] });
        spans.max_by(|a, b| a.length().total_cmp(&b.length()))
    };
    let causes = explanation.findings.iter().filter(|f| f.is_cause());
    let findings = causes.filter_map(|f| Some((longest(&f.windows)?, f.title.to_string())));
    let stalls = explanation.stalls.iter().filter_map(|s| Some((longest(&s.windows)?, s.title.clone())));
    findings.chain(stalls).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stretch_with_the_most_blame_is_found() {
        let whole = Span { from: 0.0, to: 100.0 };
        let weights = [(Span { from: 10.0, to: 11.0 }, 1.0), (Span { from: 70.0, to: 71.0 }, 8.0)];
        let found = best(&weights, whole, 10.0);
        assert!(found.holds(Span { from: 70.0, to: 71.0 }), "{found:?}");
        assert!((found.length() - 10.0).abs() < 1e-9);
        // The whole is the whole, whatever is in it.
        assert_eq!(best(&weights, whole, 1000.0), whole);
        assert_eq!(best(&[], whole, 10.0).from, 0.0);
        // At the end it does not reach beyond.
        let late = best(&[(Span { from: 99.0, to: 100.0 }, 1.0)], whole, 10.0);
        assert!((late.to - 100.0).abs() < 1e-9, "{late:?}");
    }
}
