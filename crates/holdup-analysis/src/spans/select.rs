//! Which spans are followed.

use std::collections::BTreeMap;

use holdup_trace::tables::Span;
use holdup_trace::{Result, SpanOutcome, Trace};

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
}

/// Whether it was seen from its begin to its end.
fn is_whole(span: &Span) -> bool {
    matches!(span.outcome, SpanOutcome::Complete | SpanOutcome::Moved) && span.t >= span.start
}

pub(super) fn length(span: &Span) -> u64 {
    span.t.since(span.start).0
}

#[derive(Default)]
struct Name {
    count: u64,
    open: u64,
    /// With how many spans each stands for.
    lengths: Vec<(u64, u64)>,
}

/// All names, the most frequent first. O(spans log spans).
pub(super) fn names(trace: &Trace) -> Result<Vec<NamedSpans>> {
    let mut all: BTreeMap<u32, Name> = BTreeMap::new();
    for span in trace.spans.iter() {
        let span = span?;
        let name = all.entry(span.name.0).or_default();
        name.count += u64::from(span.weight.max(1));
        if is_whole(&span) {
            name.lengths.push((length(&span), u64::from(span.weight.max(1))));
        } else {
            name.open += u64::from(span.weight.max(1));
        }
    }
    let mut names: Vec<NamedSpans> = all
        .into_iter()
        .map(|(id, mut name)| {
            name.lengths.sort_unstable();
            let at = |q| quantile(&name.lengths, q);
            NamedSpans {
                name: super::text(trace, holdup_trace::StringId(id)),
                count: name.count,
                open: name.open,
                p50_s: at(0.5),
                p99_s: at(0.99),
                max_s: at(1.0),
            }
        })
        .collect();
    names.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    Ok(names)
}

/// The length in seconds that a share of the spans does not exceed; `sorted` has lengths, and for how many spans each stands.
fn quantile(sorted: &[(u64, u64)], share: f64) -> f64 {
    let rank = share * sorted.iter().map(|(_, weight)| *weight as f64).sum::<f64>();
    let mut sum = 0.0;
    let found = sorted.iter().find(|(_, weight)| {
        sum += *weight as f64;
        sum >= rank
    });
    found.or(sorted.last()).map_or(0.0, |(length, _)| *length as f64 / 1e9)
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
    let typical = all.split_off(longest(&all, options.slow));
    let recorded = all.len() as u64;
    let (slow_count, typical_count) = (stand_for(&all), stand_for(&typical));
    Ok(Chosen { recorded, slow_count, typical_count, slow: evenly(all), typical: evenly(typical) })
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
