//! Plain LZ77 of Xpress, as [MS-XCA] 2.4 describes it: 32 flag bits, then as many literals (0) or matches (1).

use crate::bytes::{u16_at, u32_at};

/// Unpacks `packed` into `to`, which comes back with exactly `size` bytes. False if it is damaged.
///
/// Linear in `size`, and `to` grows to `size` bytes at most: whatever lengths the input claims.
pub fn unpack(packed: &[u8], size: usize, to: &mut Vec<u8>) -> bool {
    to.clear();
    to.reserve(size);
    let mut reader = Reader { packed, at: 0, nibble: None };
    while to.len() < size {
        let Some(flags) = reader.flags() else { break };
        for bit in (0..32).rev() {
            if to.len() >= size {
                break;
            }
            let done = match flags >> bit & 1 {
                0 => reader.byte().map(|b| to.push(b)),
                _ => reader.copy().and_then(|(back, len)| repeat(to, back, len.min(size - to.len()))),
            };
            if done.is_none() {
                return false;
            }
        }
    }
    to.len() == size
}

struct Reader<'a> {
    packed: &'a [u8],
    at: usize,
    /// Where the byte is whose upper half is the next length.
    nibble: Option<usize>,
}

impl Reader<'_> {
    fn flags(&mut self) -> Option<u32> {
        let flags = u32_at(self.packed, self.at)?;
        self.at += 4;
        Some(flags)
    }

    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let byte = self.packed.get(self.at).copied();
        self.at += 1;
        byte
    }

    fn short(&mut self) -> Option<u16> {
        let short = u16_at(self.packed, self.at);
        self.at += 2;
        short
    }

    /// How far back, and how long.
    fn copy(&mut self) -> Option<(usize, usize)> {
        let word = usize::from(self.short()?);
        let len = match word & 7 {
            7 => self.longer()?,
            short => short,
        };
        Some(((word >> 3) + 1, len.checked_add(3)?))
    }

    /// A length of 7 or more: in half a byte, in a byte, in two or in four.
    fn longer(&mut self) -> Option<usize> {
        let half = match self.nibble.take() {
            Some(at) => self.packed.get(at)? >> 4,
            None => {
                self.nibble = Some(self.at);
                self.byte()? & 15
            }
        };
        if half < 15 {
            return Some(usize::from(half) + 7);
        }
        match self.byte()? {
            255 => match self.short()? {
                0 => {
                    let long = u32_at(self.packed, self.at)?;
                    self.at += 4;
                    usize::try_from(long).ok()
                }
                long => Some(usize::from(long)),
            }
            .filter(|&long| long >= 15 + 7),
            byte => Some(usize::from(byte) + 15 + 7),
        }
    }
}

/// Appends `len` bytes that stand `back` bytes before the end; they may overlap what they make.
#[inline]
pub fn repeat(to: &mut Vec<u8>, back: usize, len: usize) -> Option<()> {
    let from = to.len().checked_sub(back).filter(|_| back > 0)?;
    if back >= len {
        to.extend_from_within(from..from + len);
        return Some(());
    }
    let mut left = len;
    while left > 0 {
        // What is there from `from` on repeats itself, and doubles with each step.
        let step = (to.len() - from).min(left);
        to.extend_from_within(from..from + step);
        left -= step;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(packed: &[u8], size: usize) -> Option<Vec<u8>> {
        let mut to = Vec::new();
        unpack(packed, size, &mut to).then_some(to)
    }

    /// The two examples of [MS-XCA] 3.1.
    #[test]
    fn published_examples() {
        let letters = [
            0x3f, 0, 0, 0, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f,
            0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a,
        ];
        assert_eq!(unpacked(&letters, 26).as_deref(), Some(&b"abcdefghijklmnopqrstuvwxyz"[..]));
        let abc = [0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63, 0x17, 0x00, 0x0f, 0xff, 0x26, 0x01];
        assert_eq!(unpacked(&abc, 300), Some(b"abc".repeat(100)));
    }

    #[test]
    fn lengths_are_not_believed() {
        // One match of four thousand million bytes, which the buffer's size cuts.
        let bomb = [0xff, 0xff, 0xff, 0x7f, 0x61, 0x07, 0x00, 0x0f, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(unpacked(&bomb, 100), Some(vec![0x61; 100]));
        assert_eq!(unpacked(&bomb[..9], 100), None, "cut");
        assert_eq!(unpacked(&[0xff, 0xff, 0xff, 0xff, 0, 0], 100), None, "nothing stands before the beginning");
        assert_eq!(unpacked(&[], 1), None);
    }
}
