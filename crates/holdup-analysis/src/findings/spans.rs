//! Stretches of time, in nanoseconds from the start of the trace.

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
        assert_eq!(merged(vec![(0, 1), (3, 4)], 2), (vec![(0, 4)], 2));
    }
}
