//! Packed parts of a file.

use std::io::{self, Read};

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
    match stream(packing, packed).and_then(|unpacked| unpacked.take(plain + 1).read_to_end(&mut bytes)) {
        Err(e) => Err(format!("damaged packed data: {e}")),
        Ok(n) if n as u64 != plain => {
            Err(format!("expected {plain} unpacked bytes, found {n}{}", if n as u64 > plain { " or more" } else { "" }))
        }
        Ok(_) => Ok(bytes),
    }
}

/// What `packed` holds, which may be any number of bytes: who reads has a limit.
pub fn stream(packing: Packing, packed: &[u8]) -> io::Result<Box<dyn Read + '_>> {
    Ok(match packing {
        Packing::Zstd => Box::new(zstd(packed)?),
        Packing::Zlib => Box::new(flate2::bufread::ZlibDecoder::new(packed)),
    })
}

#[cfg(feature = "zstd")]
fn zstd(packed: &[u8]) -> io::Result<impl Read> {
    zstd::stream::read::Decoder::with_buffer(packed)
}

#[cfg(not(feature = "zstd"))]
fn zstd(packed: &[u8]) -> io::Result<impl Read> {
    ruzstd::decoding::StreamingDecoder::new(packed).map_err(io::Error::other)
}
