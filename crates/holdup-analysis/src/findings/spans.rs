//! Stretches of time, in nanoseconds from the start of the trace.

use crate::blame::Span;

/// The spans sorted, those that touch or lie less than `gap` apart as one, and how much they cover without the gaps:
/// all of one subject exactly, those of several that overlap as if they lay beside each other, as far as there is room.
pub(super) fn merged(mut spans: Vec<Span>, gap: u64) -> (Vec<(u64, u64)>, u64) {
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.from <= last.to.saturating_add(gap) => {
                last.to = last.to.max(span.to);
                last.covered = last.covered.saturating_add(span.covered);
            }
            _ => merged.push(span),
        }
    }
    let exact = merged.iter().map(|s| s.covered.min(s.to.saturating_sub(s.from))).fold(0, u64::saturating_add);
    (merged.into_iter().map(|s| (s.from, s.to)).collect(), exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(of: &[(u64, u64)]) -> Vec<Span> {
        of.iter().map(|&(from, to)| Span { from, to, covered: to - from }).collect()
    }

    #[test]
    fn two_that_wait_for_one_cpu_wait_once() {
        let (found, exact) = merged(spans(&[(5, 9), (0, 6), (20, 30)]), 0);
        assert_eq!((found.as_slice(), exact), (&[(0, 9), (20, 30)][..], 19));
        assert_eq!(merged(spans(&[(0, 1), (3, 4)]), 2), (vec![(0, 4)], 2));
        assert_eq!(merged(vec![Span { from: 0, to: 100, covered: 30 }], 2), (vec![(0, 100)], 30));
    }
}
