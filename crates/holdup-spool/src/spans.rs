//! Records of spans: which probe, and what it tells of itself.

use rustc_hash::FxHashMap;

use crate::argument::Argument;
use crate::records::{Record, TID_MASK, bit, kind};
use crate::side::Side;
use holdup_trace::{Nanos, Pairing, SpanEdgeEvent, SpanEvent, SpanOutcome, StringId, TraceBuilder};

/// Most different arguments that are told by name; a request's number would be another one each time.
const MOST_TEXTS: usize = 65_536;
/// What stands where a probe's number does for requests on TCP's ports and on local sockets: `bpf/sockets.h`.
const PORT_ID: u16 = 0xfffe;
const PATH_ID: u16 = 0xfffd;
/// What stands there for lines of a `trace_marker`: `bpf/marker.h`.
const MARKER_ID: u16 = 0xfffc;
/// Records of such a line.
const LINE_RECORDS: usize = 6;
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

    /// For how many spans one that is told whole stands: its last record.
    fn weight(&self) -> u32 {
        u32::try_from(self.words[2 * self.wanted.saturating_sub(1)]).unwrap_or(u32::MAX)
    }

    /// The text whose records begin at `at`: up to its zero, and what of it is no UTF-8 replaced.
    fn text(&self, at: usize) -> String {
        text(self.bytes(at))
    }

    /// All bytes of such a text.
    fn bytes(&self, at: usize) -> Vec<u8> {
        self.bytes_of(at, TEXT_RECORDS)
    }

    /// Those of `records` from `at` on.
    fn bytes_of(&self, at: usize, records: usize) -> Vec<u8> {
        self.words.iter().skip(2 * at).take(2 * records).flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// Up to its zero, and what of it is no UTF-8 replaced.
fn text(mut bytes: Vec<u8>) -> String {
    bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a line that begins a span calls it, and its number: `B|1234|name`, or `S|1234|name|7`. Only this much of a line is told, so that a
/// long name ends where that does, and its number is not known.
fn marked(line: &str) -> (&str, u64) {
    let line = line.trim_end_matches('\n');
    let name = line.splitn(3, '|').last().unwrap_or_default();
    let numbered = if line.starts_with('S') { name.rsplit_once('|') } else { None };
    match numbered.and_then(|(name, number)| Some((name, number.parse::<i64>().ok()?))) {
        Some((name, number)) => (name, number.cast_unsigned()),
        None => (name, 0),
    }
}

/// What a request begins with, where protocols put lengths and ends of lines between words: runs of what is no letter of a text are a
/// space.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let words = text.split(|c: char| c.is_control() || c.is_whitespace() || c == char::REPLACEMENT_CHARACTER);
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
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
        let id = (first.a >> bit::SECOND) as u16;
        if first.kind == kind::SPAN_WHOLE && (id == PORT_ID || id == PATH_ID) {
            self.push_request(builder, parts, id == PATH_ID);
            return;
        }
        if first.kind == kind::SPAN_WHOLE && id == MARKER_ID {
            self.push_marked(builder, parts);
            return;
        }
        let Some(probe) = self.known.get(&id).copied() else {
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
        let weight = parts.weight();
        let (outcome, end_tid) = match weight {
            0 => (SpanOutcome::Open, 0),
            _ => (SpanOutcome::Complete, tid),
        };
        let (length, weight, name, key) = (Nanos(first.b), weight.max(1), probe.name, 0);
        let argument = self.argument(builder, parts, probe.arguments);
        builder
            .push(first.t, SpanEvent { tid, end_tid, length, queued: Nanos(0), name, argument, key, outcome, weight });
    }

    /// Pushes what a program marked as begun and ended. One that weighs nothing had not ended.
    fn push_marked(&mut self, builder: &mut TraceBuilder, parts: &Parts) {
        let first = parts.first;
        let (tid, end_tid) = (first.a as u32 & TID_MASK, (parts.words[0] >> bit::PROCESS) as u32 & TID_MASK);
        let line = text(parts.bytes_of(1, LINE_RECORDS));
        let (name, key) = marked(&line);
        let name = self.text(builder, name.to_owned());
        let weight = parts.weight();
        let (outcome, end_tid) = match weight {
            0 => (SpanOutcome::Open, 0),
            _ if end_tid != tid => (SpanOutcome::Moved, end_tid),
            _ => (SpanOutcome::Complete, tid),
        };
        let (length, queued, argument) = (Nanos(first.b), Nanos(0), StringId::default());
        builder.push(
            first.t,
            SpanEvent { tid, end_tid, length, queued, name, argument, key, outcome, weight: weight.max(1) },
        );
    }

    /// Pushes what was asked and answered on a connection, called by where it listens.
    fn push_request(&mut self, builder: &mut TraceBuilder, parts: &Parts, is_path: bool) {
        let first = parts.first;
        let (tid, end_tid) = (first.a as u32 & TID_MASK, (parts.words[0] >> bit::PROCESS) as u32 & TID_MASK);
        let (text_at, name) = match is_path {
            true => (1 + TEXT_RECORDS, format!("unix:{}", parts.text(1))),
            false => (1, format!("tcp:{}", parts.words[0] as u16)),
        };
        // The last record is the weight.
        let argument = match parts.wanted > text_at + TEXT_RECORDS {
            true => self.text(builder, plain(&parts.bytes(text_at))),
            false => StringId::default(),
        };
        let weight = parts.weight().max(1);
        let (length, queued) = (Nanos(first.b), Nanos(parts.words[1].min(first.b)));
        let outcome = if end_tid == tid { SpanOutcome::Complete } else { SpanOutcome::Moved };
        let name = self.text(builder, name);
        builder.push(first.t, SpanEvent { tid, end_tid, length, queued, name, argument, key: 0, outcome, weight });
    }

    /// A text by its number. Only so many different ones are told.
    fn text(&mut self, builder: &mut TraceBuilder, told: String) -> StringId {
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

    /// Both arguments as one text.
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
        self.text(builder, told.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::marked;

    #[test]
    fn markers_are_named_by_what_they_say() {
        for (line, name, number) in [
            ("B|1|request", "request", 0),
            ("B|1|a|b\n", "a|b", 0),
            ("B|request", "request", 0),
            ("B|", "", 0),
            ("S|1|job|7", "job", 7),
            ("S|1|a|b|-1", "a|b", u64::MAX),
            ("S|1|cut off here", "cut off here", 0),
        ] {
            assert_eq!(marked(line), (name, number), "{line}");
        }
    }
}
