//! A profile for the Firefox Profiler (profiler.firefox.com), in its processed format, version 58:
//! <https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md>. Later versions of the profiler
//! convert older formats.
//!
//! - Each thread has its samples. They weigh as many milliseconds as they stand for, so that call trees add up to CPU time. Where the
//!   thread did not run, there are samples without weight, which end in a frame that says for what it waited.
//! - Each wait is a marker, with its stack, its lock and who ended it.
//! - Each name of spans has a track, with the longest as markers.
//! - A track of its own, in front, has the findings and the stalls as markers, at their times.
//!
//! The profiler holds all in memory, and so does this: there is a limit to samples, and of the waits the longest are kept.

mod follow;
mod frames;
mod markers;
mod profile;
mod shared;
mod thread;

use std::io::Write;

use holdup_analysis::explain_study;
use holdup_trace::tables::Span;
use holdup_trace::{Error, Trace};

use crate::study::studied;
use crate::{Result, Source};

/// Samples that the profiler still opens within some seconds.
const MOST_SAMPLES: u64 = 3_000_000;
/// Spans that become markers, at most.
const MOST_SPANS: usize = 100_000;
/// Waits that become markers, at most.
const MOST_WAITS: usize = 200_000;

/// What is not in a profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Waits, each at most as long as the shortest that is there.
    pub waits: u64,
    /// Spans, the same.
    pub spans: u64,
}

/// The longest spans by name and begin, and how many shorter ones there are. O(spans log spans).
fn longest_spans(trace: &Trace) -> Result<(Vec<Span>, u64)> {
    let mut spans: Vec<Span> = trace.spans.iter().collect::<holdup_trace::Result<_>>()?;
    let left_out = spans.len().saturating_sub(MOST_SPANS);
    if left_out > 0 {
        spans.sort_by_key(|span| std::cmp::Reverse(span.t.since(span.start)));
        spans.truncate(MOST_SPANS);
    }
    spans.sort_by_key(|span| (span.name, span.start, span.t));
    Ok((spans, left_out as u64))
}

/// Writes the profile; says what is not in it.
///
/// # Errors
/// If the trace is damaged or has more samples than the profiler opens, if the focus names no process, or if `out` takes no more.
pub fn write(source: &Source, out: &mut dyn Write) -> Result<LeftOut> {
    let samples = source.trace.samples.rows();
    if samples > MOST_SAMPLES {
        let what = format!(
            "{}: {samples} samples are more than the Firefox Profiler opens: choose a part with --window A..B, of {MOST_SAMPLES} at most",
            source.name
        );
        return Err(Error::Input(what).into());
    }
    studied(source, |study| {
        let (explanation, blame) = explain_study(study, source.name, source.options, source.disassembler)?;
        let followed = follow::follow(study, MOST_WAITS)?;
        let (spans, shorter) = longest_spans(source.trace)?;
        let left_out = LeftOut { waits: followed.left_out, spans: shorter };
        let profile = profile::build(source, &followed, &explanation, &blame, &spans);
        serde_json::to_writer(&mut *out, &profile)?;
        out.write_all(b"\n")?;
        Ok(left_out)
    })
}
