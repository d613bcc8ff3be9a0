//! LZ77 with Huffman codes of Xpress, as [MS-XCA] 2.2 describes it: blocks of 64 KiB, each with 512 code lengths of 4 bits.

use super::xpress::repeat;
use crate::bytes::{u16_at, u32_at};

/// Codes have 15 bits at most.
const BITS: u32 = 15;
const SYMBOLS: usize = 512;
/// Bytes of the code lengths.
const TABLE: usize = SYMBOLS / 2;
/// Unpacked bytes of a block.
const BLOCK: usize = 1 << 16;

/// Unpacks `packed` into `to`, which comes back with exactly `size` bytes. False if it is damaged.
///
/// Linear in `size` and the input's length; `to` grows to `size` bytes at most.
pub fn unpack(packed: &[u8], size: usize, to: &mut Vec<u8>) -> bool {
    to.clear();
    to.reserve(size);
    let mut codes = vec![NONE; 1 << BITS];
    let mut at = 0_usize;
    while to.len() < size {
        let end = (to.len() + BLOCK).min(size);
        let Some(lengths) = packed.get(at..at.saturating_add(TABLE)) else { return false };
        if !fill(&mut codes, lengths) {
            return false;
        }
        match block(packed, at + TABLE, &codes, end, size, to) {
            Some(next) => at = next,
            None => return false,
        }
    }
    to.len() == size
}

/// A code: its symbol and its length in bits; none has no bits.
type Code = (u16, u8);
const NONE: Code = (0, 0);

/// Fills the table of all 15-bit words; false unless the codes fill it exactly or not at all beyond their own.
fn fill(codes: &mut [Code], lengths: &[u8]) -> bool {
    codes.fill(NONE);
    let mut at = 0_usize;
    for bits in 1..=BITS as u8 {
        for symbol in 0..SYMBOLS {
            let pair = lengths.get(symbol / 2).copied().unwrap_or(0);
            let length = if symbol % 2 == 0 { pair & 15 } else { pair >> 4 };
            if length != bits {
                continue;
            }
            let end = at + (1 << (BITS - u32::from(bits)));
            let Some(words) = codes.get_mut(at..end) else { return false };
            words.fill((symbol as u16, bits));
            at = end;
        }
    }
    at > 0
}

/// Bits come in little-endian 16-bit words, the highest first, with at least 16 of them read ahead.
struct Bits<'a> {
    packed: &'a [u8],
    at: usize,
    next: u32,
    /// How many of `next` are there beyond 16; negative never.
    extra: i32,
}

impl Bits<'_> {
    fn drop(&mut self, count: u8) {
        self.next = self.next.checked_shl(count.into()).unwrap_or(0);
        self.extra -= i32::from(count);
        if self.extra < 0 {
            // Behind the end there are zeros: the last symbols are read ahead of it.
            let word = u16_at(self.packed, self.at).unwrap_or(0);
            self.next |= u32::from(word) << (-self.extra).clamp(0, 31);
            self.at += 2;
            self.extra += 16;
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = self.packed.get(self.at).copied();
        self.at += 1;
        byte
    }
}

/// Unpacks a block up to `end`, and says where the next one begins.
fn block(packed: &[u8], at: usize, codes: &[Code], end: usize, size: usize, to: &mut Vec<u8>) -> Option<usize> {
    let (first, second) = (u16_at(packed, at)?, u16_at(packed, at + 2).unwrap_or(0));
    let mut bits = Bits { packed, at: at + 4, next: u32::from(first) << 16 | u32::from(second), extra: 16 };
    while to.len() < end {
        let (symbol, length) = *codes.get((bits.next >> (32 - BITS)) as usize)?;
        if length == 0 || bits.at > packed.len() + 4 {
            return None;
        }
        bits.drop(length);
        if symbol < 256 {
            to.push(symbol as u8);
            continue;
        }
        let (distance_bits, short) = ((symbol >> 4 & 15) as u8, usize::from(symbol & 15));
        let len = if short == 15 { longer(&mut bits)? } else { short };
        let distance = if distance_bits == 0 { 0 } else { (bits.next >> (32 - u32::from(distance_bits))) as usize };
        let back = (1 << distance_bits) + distance;
        bits.drop(distance_bits);
        repeat(to, back, len.checked_add(3)?.min(size - to.len()))?;
    }
    Some(bits.at)
}

fn longer(bits: &mut Bits) -> Option<usize> {
    match bits.byte()? {
        255 => {
            let short = u16_at(bits.packed, bits.at)?;
            bits.at += 2;
            if short != 0 {
                return Some(usize::from(short)).filter(|&len| len >= 15);
            }
            let long = u32_at(bits.packed, bits.at)?;
            bits.at += 4;
            usize::try_from(long).ok()
        }
        byte => Some(usize::from(byte) + 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The alphabet as another implementation's encoder writes it, and the second example of [MS-XCA] 3.2.
    #[test]
    fn letters_and_a_long_match() {
        let mut letters = vec![0; TABLE];
        letters[48..51].copy_from_slice(&[0x40, 0x44, 0x44]);
        letters[51..61].fill(0x55);
        (letters[61], letters[128]) = (0x05, 0x05);
        letters.extend_from_slice(&[
            0x23, 0x01, 0x2d, 0x45, 0x73, 0x8d, 0x19, 0xe1, 0x95, 0x4e, 0xf1, 0xb5, 0x6f, 0x9d, 0xf7, 0x9d, 0x00, 0xc0,
        ]);
        let mut to = Vec::new();
        assert!(unpack(&letters, 26, &mut to));
        assert_eq!(to, b"abcdefghijklmnopqrstuvwxyz");
        let mut abc = vec![0; TABLE];
        abc[48] = 0x30;
        abc[49] = 0x23;
        abc[128] = 0x02;
        abc[143] = 0x20;
        abc.extend_from_slice(&[0xa8, 0xdc, 0, 0, 0xff, 0x26, 0x01]);
        assert!(unpack(&abc, 300, &mut to));
        assert_eq!(to, b"abc".repeat(100));
        assert!(!unpack(&abc[..200], 300, &mut to));
        assert!(!unpack(&[0; 300], 300, &mut to), "no code at all");
        assert!(!unpack(&[0x11; 300], 300, &mut to), "more codes than there are words");
    }
}
