//! Damage to files: the same on every run, of the kinds that readers break on.

/// Numbers that come one after another from a seed (xorshift64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed, which may be any number.
    pub fn new(seed: u64) -> Random {
        // Neighbouring seeds give unlike numbers, and none gives zeros for ever.
        let mut random = Random((seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xd1b5_4a32_d192_ed03) | 1);
        (0..8).for_each(|_| {
            random.next();
        });
        random
    }

    /// The next number.
    #[allow(clippy::should_implement_trait, reason = "it has no end")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `n`; 0 where there is none.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n.max(1)
    }

    /// A position, and the end of a span of 1 to `longest` behind it, within `len`.
    pub fn span(&mut self, len: usize, longest: usize) -> (usize, usize) {
        let at = self.below(len);
        (at, (at + 1 + self.below(longest)).min(len))
    }
}

/// Numbers that lengths, counts and offsets are prone to break on.
const NASTY: [u64; 12] =
    [0, 1, 7, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 36, 1 << 40, 1 << 46, i64::MAX as u64, u64::MAX - 7, u64::MAX];

/// Damages `bytes` in one place: flips bits, zeroes, fills with noise or an extreme number, copies a part over another; where
/// `may_resize`, also cuts, takes out and puts in. Half of the damage is among the first kilobyte, where headers are.
pub fn mutate(bytes: &mut Vec<u8>, random: &mut Random, may_resize: bool) {
    if bytes.is_empty() {
        return;
    }
    let reach = if random.below(2) == 0 { bytes.len().min(1024) } else { bytes.len() };
    match random.below(if may_resize { 8 } else { 5 }) {
        0 => (0..1 + random.below(8)).for_each(|_| {
            let at = random.below(reach);
            bytes[at] ^= 1 << random.below(8);
        }),
        1 => {
            let (from, to) = random.span(reach, 64);
            bytes[from..to].fill(0);
        }
        2 => {
            let (from, to) = random.span(reach, 24);
            bytes[from..to].iter_mut().for_each(|b| *b = random.next() as u8);
        }
        3 => {
            let width = [1, 2, 4, 8][random.below(4)];
            let at = random.below(reach) / width * width;
            let number = NASTY[random.below(NASTY.len())].to_le_bytes();
            bytes.iter_mut().skip(at).zip(&number[..width]).for_each(|(b, n)| *b = *n);
        }
        4 => {
            let (from, to) = random.span(bytes.len(), 256);
            let at = random.below(bytes.len() - (to - from) + 1);
            bytes.copy_within(from..to, at);
        }
        kind => resize(bytes, random, reach, kind),
    }
}

fn resize(bytes: &mut Vec<u8>, random: &mut Random, reach: usize, kind: usize) {
    match kind {
        5 => bytes.truncate(random.below(bytes.len())),
        6 => {
            let (from, to) = random.span(reach, 512);
            bytes.drain(from..to);
        }
        _ => {
            let (from, to) = random.span(bytes.len(), 256);
            let mut piece = bytes[from..to].to_vec();
            if random.below(2) == 0 {
                piece.iter_mut().for_each(|b| *b = random.next() as u8);
            }
            let at = random.below(reach);
            bytes.splice(at..at, piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_the_same_for_a_seed_and_keeps_the_length_where_it_has_to() {
        let damaged = |seed: u64, may_resize: bool| {
            let (mut bytes, mut random) = (vec![0x55; 4096], Random::new(seed));
            mutate(&mut bytes, &mut random, may_resize);
            bytes
        };
        let all: Vec<_> = (0..500).map(|seed| damaged(seed, true)).collect();
        assert_eq!(all[7], damaged(7, true));
        let sizes: std::collections::BTreeSet<_> = all.iter().map(Vec::len).collect();
        assert!(sizes.len() > 50, "{sizes:?}");
        assert!((0..500).all(|seed| damaged(seed, false).len() == 4096));
        let mut empty = Vec::new();
        mutate(&mut empty, &mut Random::new(0), true);
        assert!(empty.is_empty());
    }
}
