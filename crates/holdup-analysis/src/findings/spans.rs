//! Stretches of time, in nanoseconds from the start of the trace.

/// How much of `from..to` the spans, sorted and apart, cover.
pub(super) fn overlap(spans: &[(u64, u64)], from: u64, to: u64) -> u64 {
    common(spans, from, to).map(|(from, to)| to - from).sum()
}

/// The parts of `from..to` that the spans, sorted and apart, cover.
pub(super) fn common(spans: &[(u64, u64)], from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
    let first = spans.partition_point(|s| s.1 <= from);
    let touched = spans[first..].iter().take_while(move |s| s.0 < to);
    touched.map(move |s| (s.0.max(from), s.1.min(to))).filter(|(from, to)| from < to)
}

/// The spans sorted, those that touch or lie less than `gap` apart as one, and how much they cover without the gaps.
pub(super) fn merged(mut spans: Vec<(u64, u64)>, gap: u64) -> (Vec<(u64, u64)>, u64) {
    spans.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    let (mut exact, mut covered) = (0, 0);
    for (from, to) in spans {
        exact += to.saturating_sub(from.max(covered));
        covered = covered.max(to);
        match merged.last_mut() {
            Some(last) if from <= last.1.saturating_add(gap) => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    (merged, exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_that_wait_for_one_cpu_wait_once() {
        let (spans, exact) = merged(vec![(5, 9), (0, 6), (20, 30)], 0);
        assert_eq!((spans.as_slice(), exact), (&[(0, 9), (20, 30)][..], 19));
        assert_eq!(overlap(&spans, 3, 25), 6 + 5);
        assert_eq!(overlap(&spans, 9, 20), 0);
        assert_eq!(merged(vec![(0, 1), (3, 4)], 2), (vec![(0, 4)], 2));
    }
}
