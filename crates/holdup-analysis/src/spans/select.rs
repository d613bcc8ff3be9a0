//! Which spans are followed.

use std::collections::BTreeMap;

use holdup_trace::tables::Span;
use holdup_trace::{Result, SpanOutcome, StringId, Trace};

use super::Options;
use super::report::NamedSpans;

/// As many of each group are followed at most.
const MOST_FOLLOWED: usize = 500;

/// The spans that are followed.
#[derive(Default)]
pub(super) struct Chosen {
    pub(super) slow: Vec<(u64, Span)>,
    pub(super) typical: Vec<(u64, Span)>,
    /// How many there are, of which these were chosen.
    pub(super) slow_count: u64,
    pub(super) typical_count: u64,
    /// How many of the slow ones the trace has; fewer if only some were recorded.
    pub(super) recorded: u64,
    /// How many of these had others of their name under way on their thread.
    pub(super) entangled: u64,
}

/// Whether it was seen from its begin to its end.
pub(super) fn is_whole(span: &Span) -> bool {
    matches!(span.outcome, SpanOutcome::Complete | SpanOutcome::Moved) && span.t >= span.start
}

pub(super) fn length(span: &Span) -> u64 {
    span.t.since(span.start).0
}

/// The lengths of all spans of a name.
#[derive(Default)]
pub(super) struct Name {
    /// How many there are, with those that they stand for.
    pub(super) count: u64,
    /// How many of them were not seen whole.
    pub(super) open: u64,
    /// Of the others the lengths, the shortest first, and how many spans are no longer than that.
    lengths: Vec<(u64, u64)>,
}

impl Name {
    fn add(&mut self, span: &Span) {
        let weight = u64::from(span.weight.max(1));
        self.count += weight;
        if is_whole(span) {
            self.lengths.push((length(span), weight));
        } else {
            self.open += weight;
        }
    }

    fn finish(&mut self) {
        self.lengths.sort_unstable();
        let mut sum = 0;
        for (_, weight) in &mut self.lengths {
            sum += *weight;
            *weight = sum;
        }
    }

    /// The length in nanoseconds that a share of the spans does not exceed.
    pub(super) fn at(&self, share: f64) -> u64 {
        let Some((longest, all)) = self.lengths.last() else { return 0 };
        let rank = share * *all as f64;
        let at = self.lengths.partition_point(|(_, sum)| (*sum as f64) < rank);
        self.lengths.get(at).map_or(*longest, |(length, _)| *length)
    }

    /// How many are at least as long.
    pub(super) fn rank(&self, length: u64) -> u64 {
        let shorter = self.lengths.partition_point(|(l, _)| *l < length);
        let sum = |i: usize| self.lengths.get(i).map_or(0, |(_, sum)| *sum);
        sum(self.lengths.len().wrapping_sub(1)) - shorter.checked_sub(1).map_or(0, sum)
    }
}

/// The lengths by name. O(spans log spans).
pub(super) fn lengths(trace: &Trace) -> Result<BTreeMap<StringId, Name>> {
    let mut all: BTreeMap<StringId, Name> = BTreeMap::new();
    for span in trace.spans.iter() {
        let span = span?;
        all.entry(span.name).or_default().add(&span);
    }
    all.values_mut().for_each(Name::finish);
    Ok(all)
}

/// All names, the most frequent first. O(spans log spans).
pub(super) fn names(trace: &Trace) -> Result<Vec<NamedSpans>> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let of = |(id, name): (StringId, Name)| NamedSpans {
        name: super::text(trace, id),
        count: name.count,
        open: name.open,
        p50_s: seconds(name.at(0.5)),
        p99_s: seconds(name.at(0.99)),
        max_s: seconds(name.at(1.0)),
    };
    let mut names: Vec<NamedSpans> = lengths(trace)?.into_iter().map(of).collect();
    names.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    Ok(names)
}

/// The longest share of the spans that are asked about, and the others. O(spans log spans).
pub(super) fn choose(trace: &Trace, options: &Options) -> Result<Chosen> {
    let mut all: Vec<(u64, Span)> = Vec::new();
    for (i, span) in trace.spans.iter().enumerate() {
        let span = span?;
        let is_meant =
            || trace.text(span.name) == options.name && trace.text(span.argument).contains(&options.argument);
        if is_whole(&span) && is_meant() {
            all.push((i as u64, span));
        }
    }
    all.sort_by_key(|(i, span)| (std::cmp::Reverse(length(span)), *i));
    if all.is_empty() {
        return Ok(Chosen::default());
    }
    let entangled = entangled(&all);
    let typical = all.split_off(longest(&all, options.slow));
    let recorded = all.len() as u64;
    let entangled = entangled[..all.len()].iter().filter(|is| **is).count() as u64;
    let (slow_count, typical_count) = (stand_for(&all), stand_for(&typical));
    Ok(Chosen { recorded, entangled, slow_count, typical_count, slow: evenly(all), typical: evenly(typical) })
}

/// Spans around one that are compared with it.
const MOST_AROUND: usize = 64;

/// For each whether its thread went on with another one of the same name meanwhile, as a loop of events does: what the thread did then need not
/// be about it. Calls within calls lie within each other; where one may end before the other that began after it, or they go by a key, they
/// are independent. O(spans × log).
fn entangled(spans: &[(u64, Span)]) -> Vec<bool> {
    let begun = |i: usize| spans[i].1.start.after(spans[i].1.queued);
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by_key(|&i| (spans[i].1.thread, begun(i)));
    let (mut found, mut open) = (vec![false; spans.len()], Vec::<usize>::new());
    for i in order {
        let span = &spans[i].1;
        open.retain(|&o| spans[o].1.thread == span.thread && spans[o].1.t > begun(i));
        for &o in &open {
            let other = &spans[o].1;
            if other.t < span.t || (span.key != other.key) {
                found[i] = true;
                found[o] = true;
            }
        }
        if open.len() == MOST_AROUND {
            open.remove(0);
        }
        open.push(i);
    }
    found
}

/// How many spans these stand for.
fn stand_for(spans: &[(u64, Span)]) -> u64 {
    spans.iter().map(|(_, s)| u64::from(s.weight.max(1))).sum()
}

/// How many of `spans`, the longest first, are the longest `share`: of the spans that there were, not of those that were recorded, because
/// recorders leave out more at some times than at others.
fn longest(spans: &[(u64, Span)], share: f64) -> usize {
    let wanted = stand_for(spans) as f64 * share;
    let mut sum = 0;
    let before = spans.iter().take_while(|(_, s)| {
        let is_before = (sum as f64) < wanted;
        sum += u64::from(s.weight.max(1));
        is_before
    });
    before.count().clamp(1, spans.len())
}

/// At most [`MOST_FOLLOWED`], from the longest to the shortest, evenly among the spans that there were: one that stands for many may be there
/// several times. The longest stays the first.
fn evenly(spans: Vec<(u64, Span)>) -> Vec<(u64, Span)> {
    let all = stand_for(&spans);
    let is_whole = all == spans.len() as u64;
    if is_whole && spans.len() <= MOST_FOLLOWED {
        return spans;
    }
    let count = all.min(MOST_FOLLOWED as u64);
    let (mut at, mut before) = (0, 0);
    let place = |i: u64| (u128::from(i) * u128::from(all) / u128::from(count)) as u64;
    (0..count)
        .map(place)
        .filter_map(|wanted| {
            while before + u64::from(spans.get(at)?.1.weight.max(1)) <= wanted {
                before += u64::from(spans[at].1.weight.max(1));
                at += 1;
            }
            spans.get(at).copied()
        })
        .collect()
}

/// How many different ones these are.
pub(super) fn different(spans: &[(u64, Span)]) -> usize {
    spans.chunk_by(|a, b| a.0 == b.0).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_trace::{Nanos, ThreadIdx, Timestamp};

    fn of(spans: &[(u64, u32)]) -> Name {
        let mut name = Name::default();
        for &(length, weight) in spans {
            let at = Timestamp::from_nanos_since_start;
            name.add(&Span {
                t: at(length),
                thread: ThreadIdx(1),
                start: at(0),
                end_thread: ThreadIdx(1),
                name: StringId(1),
                argument: StringId(0),
                key: 0,
                outcome: if weight == 0 { SpanOutcome::Open } else { SpanOutcome::Complete },
                weight,
                queued: Nanos(0),
            });
        }
        name.finish();
        name
    }

    #[test]
    fn one_that_stands_for_many_counts_as_many() {
        let name = of(&[(30, 1), (10, 98), (20, 1), (99, 0)]);
        assert_eq!((name.count, name.open), (101, 1));
        assert_eq!([0.0, 0.5, 0.98, 0.985, 0.99, 1.0].map(|q| name.at(q)), [10, 10, 10, 20, 20, 30]);
        assert_eq!([5, 10, 11, 20, 30, 31].map(|length| name.rank(length)), [100, 100, 2, 2, 1, 0]);
        assert_eq!((of(&[]).at(0.5), of(&[]).rank(1), of(&[(7, 0)]).at(0.5)), (0, 0, 0));
    }
}
