//! Spans as they are drawn: on the thread where each began, none over another, with its standing among all of its name.

use std::cmp::Reverse;

use holdup_base::named;
use holdup_trace::tables::Span;
use holdup_trace::{Result, SpanOutcome, StringId, ThreadIdx, Trace};
use rustc_hash::FxHashMap;

use super::select::{Name, is_whole, length};

/// Spans that are kept, 40 bytes each; of more, the longest.
const MOST_KEPT: usize = 2_000_000;
/// Levels of a thread. What finds none free lies on the last one, over others.
const MOST_LEVELS: usize = 8;
/// One that is among this share of the longest of its name is slow.
const SLOW: f64 = 0.1;
/// One that is among this share is one of the slowest.
const SLOWEST: f64 = 0.01;

named! {
    /// How long a span is beside all of its name.
    #[derive(Default)]
    pub enum Standing {
        /// As nine of ten.
        #[default]
        Typical = "typical",
        /// It was not seen from its begin to its end.
        Partial = "partial",
        /// Among the slowest tenth.
        Slow = "slow",
        /// Among the slowest hundredth.
        Slowest = "slowest",
    }
}

/// A span that is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// Its row in the table `span`.
    pub id: u32,
    /// Its name's place in [`SpanLanes::names`].
    pub name: u32,
    /// What it was about.
    pub argument: StringId,
    /// When it began, in nanoseconds since the trace's start.
    pub start: u64,
    /// When it ended; behind `start`.
    pub end: u64,
    /// How many of its name are at least as long, itself among them; 0 if it was not seen whole.
    pub rank: u32,
    /// How it ended.
    pub outcome: SpanOutcome,
}

/// All spans of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct NameFacts {
    /// The name.
    pub name: StringId,
    /// How many were seen whole, with those that they stand for.
    pub whole: u64,
    /// How many were not.
    pub open: u64,
    /// Lengths that half, and 99 of 100, of those seen whole do not exceed, and the longest: in nanoseconds.
    pub p50: u64,
    /// See `p50`.
    pub p99: u64,
    /// See `p50`.
    pub max: u64,
}

/// Spans side by side, in the order of their begins.
#[derive(Debug, Clone, Default)]
pub struct Level {
    spans: Vec<Drawn>,
    /// See [`Level::is_crowded`].
    crowded: bool,
}

/// The spans of a trace by thread and level.
#[derive(Debug, Clone, Default)]
pub struct SpanLanes {
    threads: FxHashMap<ThreadIdx, Vec<Level>>,
    /// All names, those first whose slow ones take longest beside the others, all together.
    pub names: Vec<NameFacts>,
    /// How many spans were too many to be kept, the shortest ones.
    pub left_out: u64,
}

impl Level {
    /// Those that touch the time from `from` to `to`, in the order of their begins. O(log spans + answer), where none lies over others.
    pub fn within(&self, from: u64, to: u64) -> impl Iterator<Item = &Drawn> {
        let first = if self.crowded { 0 } else { self.spans.partition_point(|s| s.end <= from) };
        self.spans[first..].iter().take_while(move |s| s.start < to).filter(move |s| s.end > from)
    }

    /// The first that begins after `t`, or the last that does before it.
    pub fn beside(&self, t: u64, after: bool) -> Option<&Drawn> {
        match after {
            true => self.spans.get(self.spans.partition_point(|s| s.start <= t)),
            false => self.spans.partition_point(|s| s.start < t).checked_sub(1).map(|i| &self.spans[i]),
        }
    }

    /// Whether some lie over others here, because more overlap than there are levels.
    pub fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// All of them.
    pub fn spans(&self) -> &[Drawn] {
        &self.spans
    }
}

impl Drawn {
    fn whole(&self) -> bool {
        self.rank > 0
    }

    /// Its length in nanoseconds.
    pub fn length(&self) -> u64 {
        self.end - self.start
    }
}

impl SpanLanes {
    /// Reads the table `span` twice. O(spans log spans) time; 40 bytes for each that is kept, of which there are at most two million.
    ///
    /// # Errors
    /// If the table is damaged.
    pub fn new(trace: &Trace) -> Result<Self> {
        if trace.spans.rows() == 0 {
            return Ok(SpanLanes::default());
        }
        let (names, places) = names(trace)?;
        let least = least_kept(trace, MOST_KEPT)?;
        let mut lanes = SpanLanes::default();
        let mut all: Vec<(ThreadIdx, Drawn)> = Vec::new();
        for (id, span) in trace.spans.iter().enumerate() {
            let span = span?;
            let begun = span.start.min(span.t);
            if length_of(&span) < least || all.len() >= MOST_KEPT || u32::try_from(id).is_err() {
                lanes.left_out += 1;
                continue;
            }
            let name = places[&span.name];
            let rank = if is_whole(&span) { names[name as usize].1.rank(length(&span)) } else { 0 };
            all.push((
                span.thread,
                Drawn {
                    id: id as u32,
                    name,
                    argument: span.argument,
                    start: begun.nanos(),
                    end: span.t.nanos().max(begun.nanos().saturating_add(1)),
                    rank: u32::try_from(rank).unwrap_or(u32::MAX),
                    outcome: span.outcome,
                },
            ));
        }
        lanes.names = names.into_iter().map(|(id, name)| facts(id, &name)).collect();
        // An outer one begins no later and ends no sooner; of two that are alike the inner one ended first, so that it has the smaller number.
        all.sort_unstable_by_key(|(thread, s)| (*thread, s.start, Reverse(s.end), Reverse(s.id)));
        for group in all.chunk_by(|a, b| a.0 == b.0) {
            lanes.threads.insert(group[0].0, levels(group));
        }
        Ok(lanes)
    }

    /// The spans of a thread, the outermost level first; empty if it has none.
    pub fn of(&self, thread: ThreadIdx) -> &[Level] {
        self.threads.get(&thread).map_or(&[], Vec::as_slice)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Where the span with this number is drawn: its thread and level. O(spans).
    pub fn find(&self, id: u32) -> Option<(ThreadIdx, usize, &Drawn)> {
        self.threads.iter().find_map(|(thread, levels)| {
            let at = |(i, level): (usize, &'_ Level)| level.spans.iter().position(|s| s.id == id).map(|k| (i, k));
            let (level, place) = levels.iter().enumerate().find_map(at)?;
            Some((*thread, level, &levels[level].spans[place]))
        })
    }

    /// How long it is beside all of its name.
    pub fn standing(&self, span: &Drawn) -> Standing {
        let share = f64::from(span.rank) / self.names.get(span.name as usize).map_or(1, |n| n.whole.max(1)) as f64;
        match share {
            _ if !span.whole() => Standing::Partial,
            s if s <= SLOWEST => Standing::Slowest,
            s if s <= SLOW => Standing::Slow,
            _ => Standing::Typical,
        }
    }

    /// The longest `count` of each of the first `names` names that were seen whole, the longest first, with thread and level. O(spans).
    pub fn longest(&self, names: usize, count: usize) -> Vec<Vec<(ThreadIdx, usize, Drawn)>> {
        let mut all: Vec<Vec<(ThreadIdx, usize, Drawn)>> = vec![Vec::new(); names.min(self.names.len())];
        let order = |s: &Drawn| (Reverse(s.length()), s.id);
        for (thread, levels) in &self.threads {
            for (i, span) in levels.iter().enumerate().flat_map(|(i, l)| l.spans.iter().map(move |s| (i, s))) {
                let Some(found) = all.get_mut(span.name as usize).filter(|_| span.whole()) else { continue };
                if found.len() < count || found.last().is_some_and(|(_, _, last)| order(span) < order(last)) {
                    let at = found.partition_point(|(_, _, s)| order(s) < order(span));
                    found.insert(at, (*thread, i, *span));
                    found.truncate(count);
                }
            }
        }
        all
    }

    /// Bytes that are kept.
    pub fn bytes(&self) -> usize {
        let spans: usize = self.threads.values().flatten().map(|l| l.spans.len()).sum();
        spans * size_of::<Drawn>() + self.names.len() * size_of::<NameFacts>()
    }
}

fn length_of(span: &Span) -> u64 {
    span.t.nanos().saturating_sub(span.start.nanos())
}

/// The length below which spans are left out, so that at most `most` are kept. O(spans).
fn least_kept(trace: &Trace, most: usize) -> Result<u64> {
    if trace.spans.rows() <= most as u64 {
        return Ok(0);
    }
    let mut lengths: Vec<u64> = Vec::new();
    for span in trace.spans.iter() {
        lengths.push(length_of(&span?));
    }
    let at = lengths.len() - most;
    Ok(*lengths.select_nth_unstable(at).1)
}

/// Each name with its lengths, and where it stands in that list.
type Names = (Vec<(StringId, Name)>, FxHashMap<StringId, u32>);

fn names(trace: &Trace) -> Result<Names> {
    let mut all: Vec<(StringId, Name)> = super::select::lengths(trace)?.into_iter().collect();
    let tail = |n: &Name| n.at(0.99).saturating_sub(n.at(0.5)) as f64 * n.count as f64;
    all.sort_by(|a, b| tail(&b.1).total_cmp(&tail(&a.1)).then(b.1.count.cmp(&a.1.count)).then(a.0.cmp(&b.0)));
    let places = all.iter().enumerate().map(|(i, (id, _))| (*id, i as u32)).collect();
    Ok((all, places))
}

fn facts(id: StringId, name: &Name) -> NameFacts {
    let (open, whole) = (name.open, name.count - name.open);
    NameFacts { name: id, whole, open, p50: name.at(0.5), p99: name.at(0.99), max: name.at(1.0) }
}

/// The spans of a thread, outer ones first, each on the first level that is free.
fn levels(spans: &[(ThreadIdx, Drawn)]) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    let mut free: Vec<u64> = Vec::new();
    for (_, span) in spans {
        let at = match free.iter().position(|&end| end <= span.start) {
            Some(at) => at,
            None if levels.len() < MOST_LEVELS => {
                levels.push(Level::default());
                free.push(0);
                levels.len() - 1
            }
            None => {
                levels[MOST_LEVELS - 1].crowded = true;
                MOST_LEVELS - 1
            }
        };
        levels[at].spans.push(*span);
        free[at] = free[at].max(span.end);
    }
    levels.iter_mut().for_each(|l| l.spans.shrink_to_fit());
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(id: u32, start: u64, end: u64) -> (ThreadIdx, Drawn) {
        let (argument, outcome) = (StringId(0), SpanOutcome::Complete);
        (ThreadIdx(1), Drawn { id, name: 0, argument, start, end, rank: 1, outcome })
    }

    #[test]
    fn none_lies_over_another_before_the_last_level() {
        let spans: Vec<_> = (0..40).map(|i| span(i, u64::from(i), 100 + u64::from(i))).collect();
        let found = levels(&spans);
        assert_eq!(found.len(), MOST_LEVELS);
        for level in &found[..MOST_LEVELS - 1] {
            assert!(level.spans.windows(2).all(|w| w[0].end <= w[1].start) && !level.crowded);
        }
        assert_eq!(found[MOST_LEVELS - 1].within(120, 121).count(), 33 - 14, "those from the 21st on are over");
    }

    #[test]
    fn inner_spans_lie_below() {
        let spans = [span(9, 0, 10), span(1, 1, 4), span(0, 2, 3), span(2, 5, 6), span(3, 10, 12)];
        let ids: Vec<Vec<u32>> = levels(&spans).iter().map(|l| l.spans.iter().map(|s| s.id).collect()).collect();
        assert_eq!(ids, [vec![9, 3], vec![1, 2], vec![0]]);
        let level = &levels(&spans)[1];
        assert_eq!(level.within(3, 5).map(|s| s.id).collect::<Vec<_>>(), [1]);
        assert_eq!((level.beside(1, true).map(|s| s.id), level.beside(1, false)), (Some(2), None));
    }
}
