//! Unpacking sections: never more than is allowed, whatever they claim.

use std::io::Read;

use crate::bytes::{u32_at, u64_at};

/// Deflate cannot shrink by more than this; whoever claims more lies.
const DEFLATE_RATIO: u64 = 1032;
/// What zstd and xz may need beside what they unpack.
const WINDOW: u64 = 8 << 20;

const XZ_MAGIC: &[u8] = b"\xfd7zXZ\0";
const LZMA2: u64 = 0x21;

/// The contents of a section with a compression header, if they have at most `limit` bytes.
pub(crate) fn decompress(bytes: &[u8], is_64: bool, limit: u64) -> Option<Vec<u8>> {
    let (size, header) = if is_64 { (u64_at(bytes, 8)?, 24) } else { (u64::from(u32_at(bytes, 4)?), 12) };
    let packed = bytes.get(header..)?;
    if size > limit {
        return None;
    }
    // The size is the file's word: memory is taken as bytes arrive.
    let mut out = Vec::new();
    match u32_at(bytes, 0)? {
        1 if size / DEFLATE_RATIO <= packed.len() as u64 => {
            flate2::read::ZlibDecoder::new(packed).take(size).read_to_end(&mut out).ok()?
        }
        2 => {
            let window = limit.min(size.max(WINDOW));
            let decoder = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(packed, window).ok()?;
            decoder.take(size).read_to_end(&mut out).ok()?
        }
        _ => return None,
    };
    (out.len() as u64 == size).then_some(out)
}

/// An xz file, if it unpacks to at most `limit` bytes. The unpacker collects all of a block before it hands anything on,
/// so what comes out is added up before.
pub(crate) fn unxz(packed: &[u8], limit: u64) -> Option<Vec<u8>> {
    if unpacked_size(packed)? > limit {
        return None;
    }
    let mut unpacked = Vec::new();
    lzma_rs::xz_decompress(&mut &packed[..], &mut unpacked).ok()?;
    Some(unpacked)
}

/// A file that may be packed as a whole, by gzip, xz or zstd: what is in it, if that has at most `limit` bytes.
pub(crate) fn unpack_file(file: Vec<u8>, limit: u64) -> Option<Vec<u8>> {
    let bounded = |from: &mut dyn Read| {
        let mut out = Vec::new();
        from.take(limit.saturating_add(1)).read_to_end(&mut out).ok()?;
        (out.len() as u64 <= limit).then_some(out)
    };
    match file.get(..4)? {
        [0x1f, 0x8b, ..] => bounded(&mut flate2::read::GzDecoder::new(&file[..])),
        [0x28, 0xb5, 0x2f, 0xfd] => {
            let decoder = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(&file[..], limit.min(WINDOW));
            bounded(&mut decoder.ok()?)
        }
        magic if XZ_MAGIC.starts_with(magic) => unxz(&file, limit),
        _ => Some(file),
    }
}

/// What the chunks of an xz file say that they unpack to, which is what the unpacker goes by. `None` for filters other
/// than a single LZMA2.
fn unpacked_size(file: &[u8]) -> Option<u64> {
    if !file.starts_with(XZ_MAGIC) {
        return None;
    }
    // Size of the check behind each block, by the kind of check.
    let check = match file.get(7)? & 15 {
        0 => 0,
        kind => 4 << ((usize::from(kind) - 1) / 3),
    };
    let (mut at, mut total) = (12usize, 0u64);
    // A block whose header has size 0 is the index.
    while let size @ 1.. = *file.get(at)? {
        let header = file.get(at..at.checked_add(4 * (usize::from(size) + 1))?)?;
        single_lzma2(header)?;
        at += header.len();
        let begin = at;
        total = total.checked_add(chunks(file, &mut at)?)?;
        at = begin + (at - begin).next_multiple_of(4) + check;
    }
    Some(total)
}

/// Whether a block is packed by one LZMA2 filter: a chain of them would unpack what others unpacked.
fn single_lzma2(header: &[u8]) -> Option<()> {
    let flags = *header.get(1)?;
    let mut at = 2;
    for _ in 0..(flags >> 6 & 1) + (flags >> 7) {
        number(header, &mut at)?;
    }
    (flags & 3 == 0 && number(header, &mut at)? == LZMA2).then_some(())
}

/// A number of seven bits a byte.
fn number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Adds up the chunks from `at` on, and moves it behind them.
fn chunks(file: &[u8], at: &mut usize) -> Option<u64> {
    let big = |at: usize| Some(u64::from(*file.get(at)?) << 8 | u64::from(*file.get(at + 1)?));
    let mut total = 0u64;
    loop {
        let control = *file.get(*at)?;
        let (unpacked, length) = match control {
            0 => {
                *at += 1;
                return Some(total);
            }
            1 | 2 => {
                let size = big(*at + 1)? + 1;
                (size, 3 + size)
            }
            0x80.. => {
                let unpacked = (u64::from(control & 0x1f) << 16) + big(*at + 1)? + 1;
                // From here on the properties follow the sizes.
                (unpacked, big(*at + 3)? + 1 + if control >= 0xc0 { 6 } else { 5 })
            }
            _ => return None,
        };
        total = total.checked_add(unpacked)?;
        *at = at.checked_add(usize::try_from(length).ok()?)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An xz file of one block with the filters, whose chunks claim 2 MiB each.
    fn claiming(chunks: usize, filters: &[u8]) -> Vec<u8> {
        let mut file = [XZ_MAGIC, &[0, 4, 0, 0, 0, 0], filters].concat();
        (0..chunks).for_each(|_| file.extend([0xff, 0xff, 0xff, 0, 0, 0x5d, 0]));
        file.push(0);
        file.resize(file.len().next_multiple_of(4) + 8, 0);
        file.extend([0; 8]);
        file
    }

    #[test]
    fn what_xz_claims_is_added_up_before() {
        let lzma2 = [2, 0, 0x21, 1, 0x16, 0, 0, 0, 0, 0, 0, 0];
        let twice = [2, 1, 0x21, 1, 0x16, 0x21, 1, 0x16, 0, 0, 0, 0];
        assert_eq!(unpacked_size(&claiming(3, &lzma2)), Some(6 << 20));
        assert_eq!(unpacked_size(&claiming(5000, &lzma2)), Some(10_000 << 20));
        assert_eq!(unpacked_size(&claiming(3, &twice)), None);
        for end in 0..claiming(3, &lzma2).len() - 8 {
            assert_eq!(unpacked_size(&claiming(3, &lzma2)[..end]), None, "{end}");
        }
    }

    #[test]
    fn what_xz_claims_is_what_it_unpacks_to() {
        let mut packed = Vec::new();
        let plain: Vec<u8> = (0..300_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
        lzma_rs::xz_compress(&mut &plain[..], &mut packed).unwrap();
        assert_eq!(unpacked_size(&packed), Some(300_000));
        assert_eq!(unxz(&packed, 300_000), Some(plain));
        assert_eq!(unxz(&packed, 299_999), None);
    }
}
