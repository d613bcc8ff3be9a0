//! Interval logs, as HdrHistogram's own tools read them.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use super::Report;
use super::hdr::{decoded, of_slice};
use crate::harness::{Outcome, new_histogram};

/// Writes the response times of each slice as an HdrHistogram interval log: nanoseconds, with maxima in milliseconds.
///
/// # Errors
/// The file can't be written.
pub fn write_hdr_log(outcome: &Outcome, file: impl Write) -> io::Result<()> {
    let start = SystemTime::now().checked_sub(outcome.elapsed).unwrap_or(SystemTime::UNIX_EPOCH);
    let slices = outcome.slices.iter().enumerate().map(|(index, slice)| {
        let begins = outcome.slice.saturating_mul(u32::try_from(index).unwrap_or(u32::MAX));
        (begins, outcome.slice, of_slice(slice))
    });
    write_log(start, slices, file)
}

/// The same from a saved report; one interval if it keeps no slices, as those of earlier versions and of runs that were killed.
///
/// # Errors
/// The report holds no histogram that can be read, or the file can't be written.
pub fn write_saved_hdr_log(report: &Report, file: impl Write) -> io::Result<()> {
    let seconds = |s: f64| Duration::try_from_secs_f64(s).unwrap_or_default();
    let ended = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(report.finished_unix_s));
    let start = ended.and_then(|ended| ended.checked_sub(seconds(report.elapsed_s)));
    let start = start.unwrap_or(SystemTime::UNIX_EPOCH);
    if report.series.iter().any(|slice| !slice.hdr.is_empty()) {
        let slices = report.series.iter().map(|slice| {
            (seconds(slice.t_s), seconds(report.slice_s), slice.histogram().unwrap_or_else(new_histogram))
        });
        return write_log(start, slices, file);
    }
    let whole = decoded(&report.hdr)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the report's `hdr` is not a histogram"))?;
    write_log(start, std::iter::once((Duration::ZERO, seconds(report.elapsed_s), whole)), file)
}

/// Writes intervals: when each begins, how long it is, and its times.
fn write_log(
    start: SystemTime,
    intervals: impl Iterator<Item = (Duration, Duration, Histogram<u64>)>,
    mut file: impl Write,
) -> io::Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("holdup load: response times in nanoseconds, maxima in milliseconds")
        .with_start_time(start)
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut file, &mut serializer)?;
    for (begins, length, times) in intervals {
        let written = log.write_histogram(&times, begins, length, Tag::new("response"));
        written.map_err(|e| io::Error::other(format!("{e:?}")))?;
    }
    Ok(())
}
