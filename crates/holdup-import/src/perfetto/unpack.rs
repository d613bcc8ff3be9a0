//! Packets inside packets: deflate or zstd, once.

use std::io::{self, Read};

/// Greatest content of one compressed packet. The tracing service makes them of half a megabyte.
const MOST: u64 = 128 << 20;

/// The packets in a `compressed_packets`.
pub fn deflate(packed: &[u8]) -> impl Read {
    flate2::bufread::ZlibDecoder::new(packed).take(MOST)
}

/// The packets in a `zstd_compressed_packets`.
#[cfg(feature = "zstd")]
pub fn zstd(packed: &[u8]) -> io::Result<impl Read> {
    Ok(zstd::stream::read::Decoder::with_buffer(packed)?.take(MOST))
}

/// The packets in a `zstd_compressed_packets`.
#[cfg(not(feature = "zstd"))]
pub fn zstd(packed: &[u8]) -> io::Result<impl Read> {
    let decoder = ruzstd::decoding::StreamingDecoder::new(packed);
    Ok(decoder.map_err(|e| io::Error::other(e.to_string()))?.take(MOST))
}
