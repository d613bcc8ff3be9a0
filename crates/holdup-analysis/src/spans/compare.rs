//! What the slow spans have that the others have not.

use std::collections::BTreeMap;

use holdup_trace::tables::Span;
use holdup_trace::{LossKind, SpanOutcome, StackId, ThreadIdx};

use super::charge::{Charged, Charger, Own};
use super::report::{Account, Cause, Done, Group, NamedSpans, OneSpan, Piece, SpanReport, other_side};
use super::select::{Chosen, different, length};
use crate::chain::Who;
use crate::label;
use crate::report::{Confidence, TraceFacts};

/// Causes and pieces that are told.
const MOST_CAUSES: usize = 20;
const MOST_PIECES: usize = 12;
const WORST: usize = 3;
/// Functions that are told of where a span waited.
const MOST_FRAMES: usize = 6;
/// Pieces below this share of a span are not listed one by one.
const SHORTEST_PIECE: f64 = 0.005;
/// A cause is sure if it is this share of what makes them slow.
const SURE: f64 = 0.5;
const LIKELY: f64 = 0.25;
/// With more of the spans missing than this share, those that are there tell less.
const MANY: f64 = 0.1;
/// With fewer slow spans nothing can be said of all of them.
const ENOUGH: usize = 5;

/// By what spans' time is added up: what was done, by which process, in which function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    what: &'static str,
    process: String,
    function: String,
}

/// What some spans' time was.
#[derive(Default)]
struct Sums {
    of: BTreeMap<Key, Sum>,
    account: Account,
    unaccounted: f64,
}

struct Sum {
    what: Done,
    ns: u64,
    /// Spans of which it was a tenth.
    spans: u64,
    /// Whose, if it was always the same name.
    thread: Option<String>,
    /// Its number, if it was always the same one.
    tid: Option<u32>,
    source: String,
    /// Where the spans' own threads waited meanwhile, and how long.
    waits: BTreeMap<StackId, u64>,
}

/// The report on the chosen spans.
pub(super) fn report(
    charger: &Charger,
    trace: TraceFacts,
    wanted: &NamedSpans,
    chosen: &Chosen,
    names: &[NamedSpans],
) -> SpanReport {
    let slow = sums(charger, &chosen.slow);
    let typical = sums(charger, &chosen.typical);
    let slow_group = group(&chosen.slow, chosen.slow_count, &slow);
    let typical_group = group(&chosen.typical, chosen.typical_count, &typical);
    let causes = causes(charger, &slow, &typical, (chosen.slow.len(), chosen.typical.len()));
    let excess = slow_group.mean_s - typical_group.mean_s;
    let (confidence, doubt) = judge(charger, &causes, excess, chosen);
    let longest = chosen.slow.chunk_by(|a, b| a.0 == b.0).take(WORST);
    let worst = longest.map(|same| one(charger, same[0].0, &same[0].1)).collect();
    SpanReport {
        schema: "holdup.spans/1",
        trace,
        name: wanted.name.clone(),
        names: names.to_vec(),
        slow: slow_group,
        typical: typical_group,
        causes,
        confidence,
        doubt,
        worst,
        unaccounted: slow.unaccounted.max(typical.unaccounted),
    }
}

fn sums(charger: &Charger, spans: &[(u64, Span)]) -> Sums {
    let mut sums = Sums::default();
    for (_, span) in spans {
        let pieces = charger.of_span(span);
        let total: u64 = pieces.iter().map(|p| p.to - p.from).sum();
        let long = length(span).max(1);
        sums.unaccounted = sums.unaccounted.max(total.abs_diff(length(span)) as f64 / long as f64);
        let mut own: BTreeMap<Key, u64> = BTreeMap::new();
        for piece in &pieces {
            let ns = piece.to - piece.from;
            let account = match piece.own {
                Own::Ran => &mut sums.account.ran_s,
                Own::Ready => &mut sums.account.ready_s,
                Own::Waited => &mut sums.account.waited_s,
                Own::Unknown => &mut sums.account.unknown_s,
            };
            *account += ns as f64 / 1e9;
            let key = add(charger, &mut sums.of, piece);
            *own.entry(key).or_default() += ns;
        }
        for key in own.into_iter().filter(|(_, ns)| *ns >= long.div_ceil(10)).map(|(key, _)| key) {
            if let Some(sum) = sums.of.get_mut(&key) {
                sum.spans += 1;
            }
        }
    }
    let each = |s: &mut f64| *s /= spans.len().max(1) as f64;
    let Account { ran_s, ready_s, waited_s, unknown_s } = &mut sums.account;
    [ran_s, ready_s, waited_s, unknown_s].into_iter().for_each(each);
    sums
}

/// Adds a piece to its sum.
fn add(charger: &Charger, sums: &mut BTreeMap<Key, Sum>, piece: &Charged) -> Key {
    let trace = charger.trace;
    let place = charger.place(piece);
    let function = place.map_or(String::new(), |l| trace.text(l.function).to_owned());
    let named = piece.who.is_real();
    let process = if named { label::process_name(trace, piece.who).to_owned() } else { String::new() };
    let thread = if named { label::thread_name(trace, piece.who).to_owned() } else { String::new() };
    let tid = trace.thread(piece.who).filter(|_| named).map_or(0, |t| t.tid);
    let key = Key { what: piece.what.name(), process, function };
    let sum = sums.entry(key.clone()).or_insert_with(|| Sum {
        what: piece.what,
        ns: 0,
        spans: 0,
        thread: Some(thread.clone()),
        tid: Some(tid),
        source: place.map_or(String::new(), |l| label::source(trace, &l)),
        waits: BTreeMap::new(),
    });
    if piece.own == Own::Waited {
        *sum.waits.entry(piece.own_stack).or_default() += piece.to - piece.from;
    }
    sum.tid = sum.tid.filter(|t| *t == tid);
    sum.ns += piece.to - piece.from;
    if sum.thread.as_ref().is_some_and(|t| *t != thread) {
        sum.thread = None;
    }
    key
}

fn group(spans: &[(u64, Span)], count: u64, sums: &Sums) -> Group {
    let lengths = || spans.iter().map(|(_, s)| length(s) as f64 / 1e9);
    let mean = lengths().sum::<f64>() / spans.len().max(1) as f64;
    Group {
        count,
        followed: different(spans) as u64,
        min_s: lengths().fold(f64::MAX, f64::min).min(mean),
        max_s: lengths().fold(0.0, f64::max),
        mean_s: mean,
        account: sums.account,
        moved: spans.iter().filter(|(_, s)| s.outcome == SpanOutcome::Moved).count() as u64,
    }
}

/// The parts of both sides, those first by which they differ most.
fn causes(charger: &Charger, slow: &Sums, typical: &Sums, (slow_count, typical_count): (usize, usize)) -> Vec<Cause> {
    let each = |sums: &Sums, key: &Key, count: usize| {
        sums.of.get(key).map_or(0.0, |s| s.ns as f64 / 1e9 / count.max(1) as f64)
    };
    let mut keys: Vec<&Key> = slow.of.keys().chain(typical.of.keys().filter(|k| !slow.of.contains_key(*k))).collect();
    keys.sort_unstable();
    let mut causes: Vec<Cause> = keys
        .into_iter()
        .filter_map(|key| {
            let sum = slow.of.get(key).or_else(|| typical.of.get(key))?;
            Some(Cause {
                what: sum.what,
                process: key.process.clone(),
                thread: sum.thread.clone().unwrap_or_default(),
                tid: sum.tid.unwrap_or(0),
                waited_at: waited_at(charger, sum),
                function: key.function.clone(),
                source: sum.source.clone(),
                slow_s: each(slow, key, slow_count),
                typical_s: each(typical, key, typical_count),
                in_slow: slow.of.get(key).map_or(0, |s| s.spans),
            })
        })
        .collect();
    causes.sort_by(|a, b| (b.slow_s - b.typical_s).total_cmp(&(a.slow_s - a.typical_s)));
    causes.truncate(MOST_CAUSES);
    causes
}

/// Where the spans' own threads waited longest meanwhile, the innermost function of the application first.
fn waited_at(charger: &Charger, sum: &Sum) -> Vec<String> {
    let longest = sum.waits.iter().max_by_key(|(stack, ns)| (**ns, std::cmp::Reverse(**stack)));
    let frames = longest.map(|(stack, _)| charger.classifier.application_frames(*stack)).unwrap_or_default();
    frames.iter().take(MOST_FRAMES).map(|(_, l)| super::text(charger.trace, l.function)).collect()
}

/// How sure it is that the first cause makes them slow.
fn judge(charger: &Charger, causes: &[Cause], excess: f64, chosen: &Chosen) -> (Confidence, String) {
    let Some(first) = causes.first() else { return (Confidence::Low, "nothing is known of their time".into()) };
    let more = |cause: &Cause| cause.slow_s - cause.typical_s;
    let share = (more(first) + other_side(causes).map_or(0.0, more)) / excess.max(f64::MIN_POSITIVE);
    let mut doubts = Vec::new();
    let few = different(&chosen.slow);
    if few < ENOUGH {
        doubts.push(match few {
            1 => "there is 1 slow span only".to_owned(),
            _ => format!("there are {few} slow spans only"),
        });
    }
    doubts.extend(sampled(chosen));
    doubts.extend(left_out(charger, chosen));
    let moved = chosen.slow.iter().filter(|(_, s)| s.outcome == SpanOutcome::Moved).count();
    if moved > 0 {
        doubts.push(format!("{moved} of them ended on another thread, which was not followed"));
    }
    if chosen.entangled * 2 > chosen.recorded {
        doubts.push("their threads had others under way meanwhile, for which some of this may have been".to_owned());
    }
    if charger.intervals.health.lost_events > 0 {
        doubts.push("events were lost".to_owned());
    }
    if matches!(first.what, Done::Unknown | Done::Circle | Done::Nobody) {
        doubts.push("what they waited for is not known".to_owned());
    }
    if first.function.is_empty() && matches!(first.what, Done::Ran | Done::WaitedFor) {
        doubts.push("no sample tells in which function".to_owned());
    }
    let mut level = match share {
        s if s >= SURE => Confidence::High,
        s if s >= LIKELY => Confidence::Medium,
        _ => Confidence::Low,
    };
    if share < SURE {
        doubts.push(format!("it is {:.0} % of what they take longer", 100.0 * share.max(0.0)));
    }
    if !doubts.is_empty() && level == Confidence::High {
        level = Confidence::Medium;
    }
    if doubts.len() > 1 {
        level = Confidence::Low;
    }
    (level, doubts.join("; "))
}

/// That only some were recorded: the rare ones may be among those that were not.
fn sampled(chosen: &Chosen) -> Option<String> {
    let few = chosen.recorded < chosen.slow_count;
    few.then(|| {
        format!(
            "to keep to the budget {} of about {} slow ones were recorded (record with a greater --budget)",
            chosen.recorded, chosen.slow_count
        )
    })
}

/// That the trace lacks many: those that it has need not be like them.
fn left_out(charger: &Charger, chosen: &Chosen) -> Option<String> {
    let losses = charger.trace.losses.iter().filter_map(std::result::Result::ok);
    let lost: u64 = losses.filter(|loss| loss.kind == LossKind::Spans).map(|loss| loss.count).sum();
    let there = chosen.slow_count + chosen.typical_count;
    (lost as f64 > MANY * (lost + there) as f64).then(|| format!("{lost} spans are missing beside these {there}"))
}

/// One span with its pieces in order: neighbours that say the same are one.
pub(super) fn one(charger: &Charger, id: u64, span: &Span) -> OneSpan {
    let trace = charger.trace;
    let begin = span.start.nanos();
    let whole = length(span) as f64 / 1e9;
    let mut pieces: Vec<Piece> = Vec::new();
    for charged in charger.of_span(span) {
        let function = charger.place(&charged).map_or(String::new(), |l| trace.text(l.function).to_owned());
        let piece = Piece {
            from_s: (charged.from - begin) as f64 / 1e9,
            length_s: (charged.to - charged.from) as f64 / 1e9,
            what: charged.what,
            who: who(charger, charged.who),
            function,
        };
        match pieces.last_mut() {
            Some(last) if last.what == piece.what && last.who == piece.who && last.function == piece.function => {
                last.length_s += piece.length_s;
            }
            _ => pieces.push(piece),
        }
    }
    let all: f64 = pieces.iter().map(|p| p.length_s).sum();
    let mut lengths: Vec<f64> = pieces.iter().map(|p| p.length_s).collect();
    lengths.sort_by(|a, b| b.total_cmp(a));
    let least = lengths.get(MOST_PIECES - 1).copied().unwrap_or(0.0).max(SHORTEST_PIECE * whole);
    pieces.retain(|p| p.length_s >= least);
    let told: f64 = pieces.iter().map(|p| p.length_s).sum();
    OneSpan {
        id,
        start_s: span.start.seconds(),
        length_s: whole,
        who: who(charger, span.thread),
        argument: super::text(trace, span.argument),
        pieces,
        rest_s: (all - told).max(0.0),
    }
}

fn who(charger: &Charger, thread: ThreadIdx) -> Who {
    let trace = charger.trace;
    let Some(row) = trace.thread(thread).filter(|_| thread.is_real()) else { return Who::default() };
    Who { process: super::text(trace, row.process), pid: row.pid, thread: super::text(trace, row.name), tid: row.tid }
}
