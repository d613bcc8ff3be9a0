//! Packed parts of a file, whose plain length the file states.

use std::io::Read;

/// How a part is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Zstandard frames.
    Zstd,
    /// zlib.
    Zlib,
}

/// More than this is never unpacked at once: whole descriptions of a machine are a few MiB.
const MOST: u64 = 256 << 20;

/// The plain bytes of `packed`, which the file says are `plain`. Takes memory for what is there, not for what is said.
///
/// The error is a sentence.
pub fn whole(packing: Option<Packing>, packed: &[u8], plain: u32) -> Result<Vec<u8>, String> {
    let plain = u64::from(plain);
    let Some(packing) = packing else {
        return Err("expected plain bytes here: nothing is said to be packed".to_owned());
    };
    if plain > MOST {
        return Err(format!("{plain} unpacked bytes at once are not plausible"));
    }
    let mut bytes = Vec::new();
    let unpacked = match packing {
        Packing::Zstd => zstd(packed, plain, &mut bytes),
        Packing::Zlib => flate2::read::ZlibDecoder::new(packed).take(plain + 1).read_to_end(&mut bytes),
    };
    match unpacked {
        Err(e) => Err(format!("damaged packed data: {e}")),
        Ok(n) if n as u64 != plain => {
            Err(format!("expected {plain} unpacked bytes, found {n}{}", if n as u64 > plain { " or more" } else { "" }))
        }
        Ok(_) => Ok(bytes),
    }
}

#[cfg(feature = "zstd")]
fn zstd(packed: &[u8], plain: u64, to: &mut Vec<u8>) -> std::io::Result<usize> {
    zstd::stream::read::Decoder::with_buffer(packed)?.take(plain + 1).read_to_end(to)
}

#[cfg(not(feature = "zstd"))]
fn zstd(packed: &[u8], plain: u64, to: &mut Vec<u8>) -> std::io::Result<usize> {
    let decoder = ruzstd::decoding::StreamingDecoder::new(packed).map_err(std::io::Error::other)?;
    decoder.take(plain + 1).read_to_end(to)
}
