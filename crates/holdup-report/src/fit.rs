//! As much of a recording as the report has room for.

use holdup_analysis::Explanation;
use holdup_trace::{Result, Timestamp, Trace, compact, cut, file};
use serde_json::{Value, json};

use crate::choose::{self, Span};
use crate::{Shown, code};

/// Rows of a recording that may fit as a whole: with more it is not tried.
const MOST_ROWS: u64 = 2_000_000;
/// Packed bytes that a row takes, at least.
const ROW: f64 = 4.0;
/// How often a stretch's length is corrected.
const TRIES: usize = 12;
/// What the main stretch may take of the room.
const MAIN: f64 = 0.7;
/// Stretches beside the main one.
const OTHERS: usize = 4;

/// What a report is made of.
pub struct Source<'a> {
    /// The recording.
    pub trace: &'a Trace,
    /// Its name.
    pub name: &'a str,
    /// What is said of the whole of it.
    pub explanation: &'a Explanation,
    /// The stretch that was asked for, in seconds.
    pub window: Option<(f64, f64)>,
}

impl Source<'_> {
    /// The traces of a report whose document has `room` bytes for them: the whole recording, or else the stretches that tell the most.
    ///
    /// # Errors
    /// If a table is damaged, or the window holds nothing.
    pub fn fit(&self, room: usize) -> Result<Vec<Shown>> {
        if self.window.is_none()
            && self.rows() <= MOST_ROWS
            && let Some(whole) = Some(self.pack(self.trace, self.name, Value::Null)?).filter(|s| s.size() <= room)
        {
            return Ok(vec![whole]);
        }
        let (main, span) = self.main(room)?;
        let mut shown = vec![main];
        let mut spans = vec![span];
        for (span, why) in choose::others(self.explanation) {
            let left = room.saturating_sub(shown.iter().map(Shown::size).sum());
            let around = span.around(self.whole(), spans[0].length());
            if shown.len() > OTHERS || spans.iter().any(|s| s.holds(span)) || !self.whole().holds(span) {
                continue;
            }
            if let Some(part) = self.part(around, Some(&why))?.filter(|part| part.size() <= left) {
                shown.push(part);
                spans.push(around);
            }
        }
        Ok(shown)
    }

    fn rows(&self) -> u64 {
        let trace = self.trace;
        trace.switches.rows() + trace.wakes.rows() + trace.samples.rows() + trace.waits.rows()
    }

    /// All that may be shown.
    fn whole(&self) -> Span {
        let end = self.trace.meta.duration().seconds();
        let (from, to) = self.window.unwrap_or((0.0, end));
        Span { from: from.max(0.0), to: to.min(end) }
    }

    /// The longest stretch with the most blame that fits, within some tenths.
    fn main(&self, room: usize) -> Result<(Shown, Span)> {
        let whole = self.whole();
        let weights = choose::weights(self.explanation);
        let target = if self.window.is_some() { room } else { (room as f64 * MAIN) as usize };
        let rows = self.rows() as f64 * whole.length() / self.trace.meta.duration().seconds();
        let mut length = whole.length() * (target as f64 / (rows * ROW).max(1.0)).min(1.0);
        let mut best: Option<(Shown, Span)> = None;
        for _ in 0..TRIES {
            let span = choose::best(&weights, whole, length);
            let Some(shown) = self.part(span, None)? else { break };
            let share = target as f64 / shown.size() as f64;
            if shown.size() <= target {
                let is_best = best.as_ref().is_none_or(|(_, b)| b.length() < span.length());
                best = if is_best { Some((shown, span)) } else { best };
                if share < 1.4 || span.length() >= whole.length() {
                    break;
                }
            } else if best.is_some() {
                break;
            }
            length = (span.length() * share * 0.9).min(whole.length());
        }
        best.ok_or_else(|| {
            let (from, to) = (whole.from, whole.to);
            holdup_trace::Error::Input(format!(
                "not even a short stretch of {from}..{to} s fits into a report: give a window without so many threads"
            ))
        })
    }

    /// The stretch as a trace; `None` if it holds no time.
    fn part(&self, span: Span, why: Option<&str>) -> Result<Option<Shown>> {
        let (from, to) = (Timestamp::from_seconds(span.from), Timestamp::from_seconds(span.to));
        if from >= to {
            return Ok(None);
        }
        let trace = cut::window(self.trace, from, to)?;
        let of = self.trace.meta.duration().seconds();
        let name = format!("{} {:.3}–{:.3} s of {of:.3} s", self.name, span.from, span.to);
        let mut part = json!({ "of": { "duration_s": of }, "windows": [[from.nanos(), to.nanos()]] });
        match why {
            Some(why) => part["why"] = why.into(),
            // Once is enough.
            None => part["explain"] = json!(self.explanation),
        }
        self.pack(&trace, &name, part).map(Some)
    }

    fn pack(&self, trace: &Trace, name: &str, part: Value) -> Result<Shown> {
        let mut trace = trace.clone();
        let kept = code::kept(&trace)?;
        compact(&mut trace, |code| kept.contains(&code.bytes))?;
        Ok(Shown::new(name, &file::write_memory(&trace, false)?, part))
    }
}
