//! Records of spans: which probe, and what it tells of itself.

use rustc_hash::FxHashMap;

use crate::argument::Argument;
use crate::records::{Record, TID_MASK, bit, kind};
use crate::side::Side;
use holdup_trace::{Nanos, Pairing, SpanEdgeEvent, SpanEvent, SpanOutcome, StringId, TraceBuilder};

/// Most different arguments that are told by name; a request's number would be another one each time.
const MOST_TEXTS: usize = 65_536;
/// What stands for all the others.
const OTHER: &str = "(other)";
/// Records of a text.
const TEXT_RECORDS: usize = 4;
/// Most records that follow one of a span: two numbers, two texts, and the weight of one that is told whole.
const MOST_PARTS: usize = 2 + 2 * TEXT_RECORDS;

/// What the records with a probe's number mean.
#[derive(Debug, Clone, Copy)]
struct Probe {
    name: StringId,
    begins: bool,
    returns: bool,
    keyed: bool,
    arguments: [Argument; 2],
}

/// A span's record and what follows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    first: Record,
    words: [u64; 2 * MOST_PARTS],
    found: usize,
    wanted: usize,
}

impl Parts {
    pub(crate) fn new(first: Record) -> Parts {
        let wanted = usize::from((first.a >> bit::PARTS) as u8).min(MOST_PARTS);
        Parts { first, words: [0; 2 * MOST_PARTS], found: 0, wanted }
    }

    /// Adds a record.
    pub(crate) fn add(&mut self, more: Record) {
        if let Some(words) = self.words.get_mut(2 * self.found..2 * self.found + 2) {
            words.copy_from_slice(&[more.a, more.b]);
        }
        self.found += 1;
    }

    pub(crate) fn are_complete(&self) -> bool {
        self.found >= self.wanted
    }

    /// The text whose records begin at `at`: up to its zero, and what of it is no UTF-8 replaced.
    fn text(&self, at: usize) -> String {
        let words = self.words.iter().skip(2 * at).take(2 * TEXT_RECORDS);
        let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).take_while(|&byte| byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// All probes of a recording.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    known: FxHashMap<u16, Probe>,
    texts: FxHashMap<String, StringId>,
    /// Spans whose argument is told as [`OTHER`].
    pub others: u64,
    /// Spans of probes that nothing was told of.
    pub unknown: u64,
}

impl Probes {
    /// Learns of a probe.
    pub(crate) fn learn(&mut self, builder: &mut TraceBuilder, side: &Side) {
        if let Side::Probe { id, begins, returns, keyed, arguments, name, .. } = side {
            let name = builder.string(name);
            let (begins, returns, keyed, arguments) = (*begins, *returns, *keyed, *arguments);
            self.known.insert(*id, Probe { name, begins, returns, keyed, arguments });
        }
    }

    /// Pushes a begin or an end.
    pub(crate) fn push(&mut self, builder: &mut TraceBuilder, parts: &Parts) {
        let first = parts.first;
        let Some(probe) = self.known.get(&((first.a >> bit::SECOND) as u16)).copied() else {
            self.unknown += 1;
            return;
        };
        if first.kind == kind::SPAN_WHOLE {
            self.push_whole(builder, parts, probe);
            return;
        }
        let key = probe.arguments.iter().position(|&argument| argument == Argument::Key);
        let at = key.filter(|_| probe.keyed).map_or(first.b, |at| parts.words[at]);
        let pairing = if probe.keyed { Pairing::Key } else { Pairing::Frame };
        let argument = if probe.begins { self.argument(builder, parts, probe.arguments) } else { StringId::default() };
        let (begin, returns, name, weight) = (probe.begins, probe.returns, probe.name, 1);
        let tid = first.a as u32 & TID_MASK;
        builder.push(first.t, SpanEdgeEvent { tid, begin, returns, name, argument, at, pairing, weight });
    }

    /// Pushes a span that was recorded when its length was known. One that weighs nothing had not ended.
    fn push_whole(&mut self, builder: &mut TraceBuilder, parts: &Parts, probe: Probe) {
        let first = parts.first;
        let tid = first.a as u32 & TID_MASK;
        let weight = u32::try_from(parts.words[2 * parts.wanted.saturating_sub(1)]).unwrap_or(u32::MAX);
        let (outcome, end_tid) = match weight {
            0 => (SpanOutcome::Open, 0),
            _ => (SpanOutcome::Complete, tid),
        };
        let (length, weight, name, key) = (Nanos(first.b), weight.max(1), probe.name, 0);
        let argument = self.argument(builder, parts, probe.arguments);
        builder.push(first.t, SpanEvent { tid, end_tid, length, name, argument, key, outcome, weight });
    }

    /// Both arguments as one text. Only so many different ones are told.
    fn argument(&mut self, builder: &mut TraceBuilder, parts: &Parts, kinds: [Argument; 2]) -> StringId {
        let mut told = Vec::new();
        let mut text_at = 1;
        for (kind, value) in kinds.into_iter().zip(parts.words) {
            match kind {
                Argument::Integer => told.push(value.cast_signed().to_string()),
                Argument::Text => {
                    told.push(parts.text(text_at));
                    text_at += TEXT_RECORDS;
                }
                Argument::Key | Argument::None => {}
            }
        }
        if told.is_empty() {
            return StringId::default();
        }
        let told = told.join(", ");
        if let Some(&known) = self.texts.get(&told) {
            return known;
        }
        if self.texts.len() >= MOST_TEXTS {
            self.others += 1;
            return builder.string(OTHER);
        }
        let text = builder.string(&told);
        self.texts.insert(told, text);
        text
    }
}
