//! Bits of a packet: integers of any length at any bit, in either byte order.
//!
//! Bits are counted from the packet's beginning, since that is what alignments refer to; the bytes are those of a window of it.

/// Why a step could not be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The bits end before it does.
    Short,
    /// The value of a tag that stands for nothing.
    NoOption(i128),
    /// More steps than any event has.
    Endless,
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Short => f.write_str("an event reaches beyond its packet's end"),
            Stop::NoOption(tag) => write!(f, "a tag is {tag}, for which the metadata knows no option"),
            Stop::Endless => f.write_str("an event has more fields than its packet has room for"),
        }
    }
}

/// A window of a packet, and where reading is.
#[derive(Debug)]
pub struct Bits<'a> {
    /// The window's bytes.
    pub window: &'a [u8],
    /// The bit at which the window begins.
    pub base: u64,
    /// The next bit.
    pub at: u64,
    /// The bit behind the last one.
    pub end: u64,
    /// Steps that may still be taken: nothing that takes no bits can go on for ever.
    pub steps: u64,
}

impl Bits<'_> {
    /// Counts a step.
    #[inline]
    pub fn step(&mut self) -> Result<(), Stop> {
        self.steps = self.steps.checked_sub(1).ok_or(Stop::Endless)?;
        Ok(())
    }

    /// To the next multiple of `bits`.
    #[inline]
    pub fn align(&mut self, bits: u16) -> Result<(), Stop> {
        let mask = u64::from(bits).saturating_sub(1);
        self.skip(self.at.wrapping_neg() & mask)
    }

    /// Past `bits`.
    #[inline]
    pub fn skip(&mut self, bits: u64) -> Result<(), Stop> {
        match self.at.checked_add(bits) {
            Some(at) if at <= self.end => {
                self.at = at;
                Ok(())
            }
            _ => Err(Stop::Short),
        }
    }

    /// The next byte's place in the window, if the next bit begins one.
    #[inline]
    pub fn byte(&self) -> Option<usize> {
        self.at.is_multiple_of(8).then_some((self.at.saturating_sub(self.base) / 8) as usize)
    }

    /// An integer of 1 to 64 bits.
    #[inline]
    pub fn integer(&mut self, bits: u8, big: bool) -> Result<u64, Stop> {
        let start = self.at;
        self.skip(bits.into())?;
        let (byte, shift) = ((start.saturating_sub(self.base) / 8) as usize, (start % 8) as u32);
        let bytes = self.window.get(byte..).unwrap_or(&[]);
        if shift == 0 && !big {
            let whole = match bits {
                32 => bytes.first_chunk().map(|b| u32::from_le_bytes(*b).into()),
                64 => bytes.first_chunk().map(|b| u64::from_le_bytes(*b)),
                16 => bytes.first_chunk().map(|b| u16::from_le_bytes(*b).into()),
                8 => bytes.first().map(|&b| b.into()),
                _ => Some(some_bits(bytes, shift, bits, big)),
            };
            return whole.ok_or(Stop::Short);
        }
        Ok(some_bits(bytes, shift, bits, big))
    }

    /// Behind the next NUL; how many bytes there were before it.
    #[inline]
    pub fn text(&mut self) -> Result<u64, Stop> {
        let start = (self.at.saturating_sub(self.base) / 8) as usize;
        let end = (self.end.saturating_sub(self.base) / 8) as usize;
        let rest = self.window.get(start..end.min(self.window.len())).unwrap_or(&[]);
        let len = rest.iter().position(|&b| b == 0).ok_or(Stop::Short)? as u64;
        self.skip((len + 1) * 8)?;
        Ok(len)
    }
}

/// Bits within the first bytes: in little-endian order the lowest of a byte come first, in big-endian order the highest.
fn some_bits(bytes: &[u8], shift: u32, bits: u8, big: bool) -> u64 {
    let (shift, bits) = (shift % 8, u32::from(bits));
    let mut all = [0; 16];
    let len = bytes.len().min(((shift + bits).div_ceil(8)) as usize);
    for (to, from) in all.iter_mut().zip(bytes.iter().take(len)) {
        *to = *from;
    }
    let word = match big {
        false => u128::from_le_bytes(all) >> shift,
        true => u128::from_be_bytes(all) >> (128 - shift - bits),
    };
    (word & ((1_u128 << bits) - 1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(window: &[u8]) -> Bits<'_> {
        Bits { window, base: 0, at: 0, end: window.len() as u64 * 8, steps: 100 }
    }

    #[test]
    fn little_endian_bits_come_from_the_low_end() {
        let mut b = bits(&[0b1010_0101, 0x12, 0x34, 0x56, 0x78]);
        assert_eq!(b.integer(5, false), Ok(0b00101));
        assert_eq!(b.integer(27, false), Ok(0x5634_12a5 >> 5));
        assert_eq!(b.integer(8, false), Ok(0x78));
        assert_eq!(b.integer(1, false), Err(Stop::Short));
    }

    #[test]
    fn big_endian_bits_come_from_the_high_end() {
        let mut b = bits(&[0b1010_0101, 0x12, 0x34, 0x56, 0x78, 0x9a]);
        assert_eq!(b.integer(5, true), Ok(0b10100));
        assert_eq!(b.integer(27, true), Ok(0xa512_3456 & 0x7ff_ffff));
        assert_eq!(b.integer(16, true), Ok(0x789a));
    }

    #[test]
    fn sixty_four_bits_across_nine_bytes() {
        let bytes: Vec<u8> = (1..=9).collect();
        let mut b = bits(&bytes);
        b.skip(4).expect("there are more");
        assert_eq!(b.integer(64, false), Ok((0x0009_0807_0605_0403_0201_u128 >> 4) as u64));
        let mut b = bits(&bytes);
        b.skip(4).expect("there are more");
        assert_eq!(b.integer(64, true), Ok((0x0001_0203_0405_0607_0809_u128 >> 4) as u64));
    }

    #[test]
    fn texts_end_with_nul_or_not_at_all() {
        let mut b = bits(b"ab\0c");
        assert_eq!(b.text(), Ok(2));
        assert_eq!((b.byte(), b.text()), (Some(3), Err(Stop::Short)));
    }

    #[test]
    fn alignment_counts_from_the_packet() {
        let mut b = Bits { window: &[0; 8], base: 8, at: 9, end: 72, steps: 1 };
        b.align(32).expect("there is room");
        assert_eq!((b.at, b.byte()), (32, Some(3)));
        assert_eq!(b.align(512), Err(Stop::Short));
        assert_eq!((b.step(), b.step()), (Ok(()), Err(Stop::Endless)));
    }
}
