//! Histograms as HdrHistogram's own tools read them.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use super::Report;
use crate::harness::{Outcome, new_histogram};

/// A histogram as base64 text.
pub(super) fn encoded(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    match V2DeflateSerializer::new().serialize(histogram, &mut bytes) {
        Ok(_) => STANDARD.encode(bytes),
        Err(_) => String::new(),
    }
}

/// The histogram in a text of [`encoded`]; none in any other text.
pub(super) fn decoded(text: &str) -> Option<Histogram<u64>> {
    let bytes = STANDARD.decode(text).ok()?;
    Deserializer::new().deserialize(&mut io::Cursor::new(bytes)).ok()
}

/// Writes the response times of each slice as an HdrHistogram interval log: nanoseconds, with maxima in milliseconds.
///
/// # Errors
/// The file can't be written.
pub fn write_hdr_log(outcome: &Outcome, mut file: impl Write) -> io::Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    let start = SystemTime::now().checked_sub(outcome.elapsed).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("holdup load: response times in nanoseconds, maxima in milliseconds")
        .with_start_time(start)
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut file, &mut serializer)?;
    for (index, slice) in outcome.slices.iter().enumerate() {
        let mut histogram = new_histogram();
        for (value, count) in &slice.counts {
            histogram.saturating_record_n(*value, *count);
        }
        let begins = outcome.slice.saturating_mul(u32::try_from(index).unwrap_or(u32::MAX));
        write_slice(&mut log, &histogram, begins, outcome.slice)?;
    }
    Ok(())
}

/// Writes the response times of a saved report as a log of one interval, which is all that a report keeps of them.
///
/// # Errors
/// The report holds no histogram that can be read, or the file can't be written.
pub fn write_whole_hdr_log(report: &Report, mut file: impl Write) -> io::Result<()> {
    let histogram = decoded(&report.hdr)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the report's `hdr` is not a histogram"))?;
    let elapsed = Duration::try_from_secs_f64(report.elapsed_s).unwrap_or_default();
    let ended = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(report.finished_unix_s));
    let start = ended.and_then(|ended| ended.checked_sub(elapsed)).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("holdup load: response times in nanoseconds, maxima in milliseconds")
        .with_start_time(start)
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut file, &mut serializer)?;
    write_slice(&mut log, &histogram, Duration::ZERO, elapsed)
}

fn write_slice<W: Write, S: Serializer>(
    log: &mut hdrhistogram::serialization::interval_log::IntervalLogWriter<'_, '_, W, S>,
    histogram: &Histogram<u64>,
    begins: Duration,
    length: Duration,
) -> io::Result<()> {
    log.write_histogram(histogram, begins, length, Tag::new("response")).map_err(|e| io::Error::other(format!("{e:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_survives_its_text() {
        let mut histogram = new_histogram();
        histogram.record_n(1_000_000, 5).unwrap();
        histogram.record(3_000_000_000).unwrap();
        let back = decoded(&encoded(&histogram)).unwrap();
        assert_eq!((back.len(), back.max()), (6, histogram.max()));
        assert!(decoded("not base64!").is_none() && decoded("AAAA").is_none());
    }
}
