//! A profile for the Firefox Profiler (profiler.firefox.com), in its processed format, version 58:
//! <https://github.com/firefox-devtools/profiler/blob/main/docs-developer/processed-profile-format.md>. Later versions of the profiler
//! convert older formats.
//!
//! - Each thread has its samples. They weigh as many milliseconds as they stand for, so that call trees add up to CPU time. Where the
//!   thread did not run, there are samples without weight, which end in a frame that says for what it waited.
//! - Each wait is a marker, with its stack, its lock and who ended it.
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
use holdup_trace::Error;

use crate::study::studied;
use crate::{Result, Source};

/// Samples that the profiler still opens within some seconds.
const MOST_SAMPLES: u64 = 3_000_000;
/// Waits that become markers, at most.
const MOST_WAITS: usize = 200_000;

/// What is not in a profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Waits, each at most as long as the shortest that is there.
    pub waits: u64,
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
        let left_out = LeftOut { waits: followed.left_out };
        let profile = profile::build(source, &followed, &explanation, &blame);
        serde_json::to_writer(&mut *out, &profile)?;
        out.write_all(b"\n")?;
        Ok(left_out)
    })
}
