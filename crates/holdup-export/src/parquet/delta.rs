//! Parquet's encoding DELTA_BINARY_PACKED: the differences of neighbours, in as few bits as those of 32 need.
//!
//! ```text
//!   header   block size, blocks' parts, how many values, the first one
//!   block    the least difference, a width for each of 4 parts, and the parts: 32 differences less the least, packed
//! ```
//!
//! <https://github.com/apache/parquet-format/blob/master/Encodings.md>. All integers of a trace are written so: times rise, and
//! numbers of CPUs, threads and stacks are small or near each other.

use super::thrift::{varint, zigzag};

/// Values in a block, and in each of its parts.
const BLOCK: usize = 128;
const PART: usize = 32;

/// Encodes `values`. Those of a 32-bit column are sign-extended, and their differences wrap at 32 bits. O(values).
pub fn encode(values: &[i64], narrow: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(values.len() * 2 + 16);
    varint(&mut out, BLOCK as u64);
    varint(&mut out, (BLOCK / PART) as u64);
    varint(&mut out, values.len() as u64);
    zigzag(&mut out, values.first().copied().unwrap_or(0));
    let difference = |pair: &[i64]| match *pair {
        [before, value] if narrow => i64::from(value.wrapping_sub(before) as i32),
        [before, value] => value.wrapping_sub(before),
        _ => 0,
    };
    let differences: Vec<i64> = values.windows(2).map(difference).collect();
    for block in differences.chunks(BLOCK) {
        encode_block(block, &mut out);
    }
    out
}

fn encode_block(block: &[i64], out: &mut Vec<u8>) {
    let least = block.iter().copied().min().unwrap_or(0);
    zigzag(out, least);
    let above = |difference: &i64| difference.wrapping_sub(least).cast_unsigned();
    let parts: Vec<Vec<u64>> = block.chunks(PART).map(|part| part.iter().map(above).collect()).collect();
    let width = |part: &Vec<u64>| u64::BITS - part.iter().fold(0, |bits, value| bits | value).leading_zeros();
    // A part that is not there has a width, too.
    out.extend((0..BLOCK / PART).map(|i| parts.get(i).map_or(0, width) as u8));
    for part in &parts {
        pack(part, width(part), out);
    }
}

/// Appends the lowest `width` bits of 32 values, the lowest bit first; those that are missing are 0.
fn pack(part: &[u64], width: u32, out: &mut Vec<u8>) {
    let (mut bits, mut held): (u128, u32) = (0, 0);
    for i in 0..PART {
        bits |= u128::from(part.get(i).copied().unwrap_or(0)) << held;
        held += width;
        while held >= 8 {
            out.push(bits as u8);
            bits >>= 8;
            held -= 8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::encode;

    /// Both examples of the format's description.
    #[test]
    fn the_examples_of_the_format() {
        // 1, 2, 3, 4, 5: all differences are 1, so they need no bits.
        assert_eq!(encode(&[1, 2, 3, 4, 5], false), [128, 1, 4, 5, 2, 2, 0, 0, 0, 0]);
        // 7, 5, 3, 1, 2, 3, 4, 5: -2 is the least, the others are 0, 0, 0, 3, 3, 3, 3 above it: 2 bits each.
        let packed = [0b1100_0000, 0b0011_1111, 0, 0, 0, 0, 0, 0];
        let expected: Vec<u8> = [128, 1, 4, 8, 14, 3, 2, 0, 0, 0].into_iter().chain(packed).collect();
        assert_eq!(encode(&[7, 5, 3, 1, 2, 3, 4, 5], false), expected);
    }

    #[test]
    fn narrow_differences_wrap() {
        // From the least to the greatest and back: the differences are -1 and 1, two bits.
        let ends = [i64::from(i32::MIN), i64::from(i32::MAX), i64::from(i32::MIN)];
        assert_eq!(encode(&ends, true)[9..14], [1, 2, 0, 0, 0]);
        assert_eq!(encode(&[], true), [128, 1, 4, 0, 0]);
    }
}
