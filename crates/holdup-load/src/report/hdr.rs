//! Histograms as HdrHistogram's own tools read them.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use crate::harness::{SliceSum, new_histogram};

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

/// The response times of a slice.
pub(super) fn of_slice(slice: &SliceSum) -> Histogram<u64> {
    let mut histogram = new_histogram();
    for (value, count) in &slice.counts {
        histogram.saturating_record_n(*value, *count);
    }
    histogram
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
