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

/// For how many nanoseconds how many of `all` were at it at once, by that number. A stretch that is covered in part counts as that part of
/// one. O(n log n) in spans.
pub(super) fn levels(all: &[&[Span]]) -> Vec<f64> {
    let mut edges: Vec<(u64, f64)> = Vec::new();
    for span in all.iter().copied().flatten().filter(|span| span.to > span.from) {
        let part = (span.covered as f64 / (span.to - span.from) as f64).min(1.0);
        edges.extend([(span.from, part), (span.to, -part)]);
    }
    edges.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let (mut time, mut level) = (vec![0.0; all.len() + 1], 0.0_f64);
    for pair in edges.windows(2) {
        level += pair[0].1;
        let at_once = (level.round().max(0.0) as usize).min(all.len());
        time[at_once] += (pair[1].0 - pair[0].0) as f64;
    }
    time
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

    #[test]
    fn how_many_at_once() {
        let (a, b, c) = (spans(&[(0, 10), (20, 30)]), spans(&[(5, 20)]), spans(&[(28, 40)]));
        assert_eq!(levels(&[&a, &b, &c]), [0.0, 33.0, 7.0, 0.0]);
        let half = Span { from: 0, to: 10, covered: 6 };
        assert_eq!(
            levels(&[&[half], &[half], &[half]]),
            [0.0, 0.0, 10.0, 0.0],
            "three that sleep in turns, two at a time"
        );
        assert_eq!(levels(&[]), [0.0]);
    }
}
