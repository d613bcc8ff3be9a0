//! Spans as slices. Slices of one track lie within each other or apart; spans of requests overlap as they like, so that each kind of them gets as many
//! tracks as there are at once.

use std::collections::BTreeMap;

use holdup_trace::tables::Span;
use holdup_trace::{StringId, Trace};

use super::message::Message;
use super::packet::{Writer, timed};
use super::tracks::{BEGIN, END, ROOT, descriptor};
use crate::Result;

/// Tracks of a name at most; what finds none is left out, and its track says how many.
const MOST_TRACKS: usize = 64;
/// Numbers of their tracks lie behind those of findings.
const SPANS: u64 = ROOT + 1_000_000;

/// The tracks of a name.
#[derive(Default)]
struct Lanes {
    /// By track: when the last span on it ends, and its number.
    ends: Vec<(u64, u64)>,
    left_out: u64,
}

/// Writes all spans; `base` is the time at which the trace begins. O(spans log spans).
pub(super) fn write(trace: &Trace, base: u64, out: &mut Message) -> Result<()> {
    let mut spans: Vec<Span> = trace.spans.iter().collect::<holdup_trace::Result<_>>()?;
    spans.sort_by_key(|span| (span.start, span.t));
    let mut all: BTreeMap<StringId, Lanes> = BTreeMap::new();
    let mut tracks = SPANS;
    for span in &spans {
        let lanes = all.entry(span.name).or_default();
        let (from, to) = (span.start.nanos(), span.t.nanos());
        let track = match lanes.ends.iter().position(|(end, _)| *end <= from) {
            Some(free) => {
                lanes.ends[free].0 = to;
                lanes.ends[free].1
            }
            None if lanes.ends.len() >= MOST_TRACKS => {
                lanes.left_out += 1;
                continue;
            }
            None => {
                tracks += 1;
                lanes.ends.push((to, tracks));
                let name = format!("{} {}", trace.text(span.name), lanes.ends.len());
                descriptor(tracks, Some(ROOT), &name, out, |_| {});
                tracks
            }
        };
        slice(trace, span, track, base, out);
    }
    for (name, lanes) in all.iter().filter(|(_, lanes)| lanes.left_out > 0) {
        tracks += 1;
        let text = format!("{}: {} more, of which too many were open at once", trace.text(*name), lanes.left_out);
        descriptor(tracks, Some(ROOT), &text, out, |_| {});
    }
    Ok(())
}

fn slice(trace: &Trace, span: &Span, track: u64, base: u64, out: &mut Message) {
    let thread = trace.thread(span.thread).filter(|_| span.thread.is_real());
    timed(out, Writer::Tracks, base.saturating_add(span.start.nanos()), |packet| {
        packet.message(11, |event| {
            event.number(9, BEGIN);
            event.number(11, track);
            event.text(22, "span");
            event.text(23, trace.text(span.name));
            let mut tell = |name: &str, text: &str| {
                if !text.is_empty() {
                    event.message(4, |annotation| {
                        annotation.text(10, name);
                        annotation.text(6, text);
                    });
                }
            };
            tell("argument", trace.text(span.argument));
            if let Some(thread) = thread {
                tell("process", trace.text(thread.process));
                tell("thread", &format!("{} ({})", trace.text(thread.name), thread.tid));
            }
            tell("outcome", span.outcome.name());
            if span.weight > 1 {
                tell("stands for", &format!("{} spans", span.weight));
            }
            if span.queued.0 > 0 {
                tell("waited first, ns", &span.queued.0.to_string());
            }
        });
    });
    timed(out, Writer::Tracks, base.saturating_add(span.t.nanos()), |packet| {
        packet.message(11, |event| {
            event.number(9, END);
            event.number(11, track);
        });
    });
}
