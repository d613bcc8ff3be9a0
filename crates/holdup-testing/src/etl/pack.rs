//! Packs buffers as [MS-XCA] describes it: simple, and not small.

/// Plain LZ77: each match is the longest one that began at the last place of the same three bytes.
pub fn lz77(bytes: &[u8]) -> Vec<u8> {
    let mut out = Packed::default();
    let mut last = std::collections::HashMap::new();
    let mut at = 0;
    while at < bytes.len() {
        let seen = bytes.get(at..at + 3).and_then(|three| last.insert(three, at));
        let len = seen.map_or(0, |from| bytes[from..].iter().zip(&bytes[at..]).take_while(|(a, b)| a == b).count());
        match seen.filter(|from| len >= 3 && at - from <= 1 << 13) {
            Some(from) => out.copy(at - from, len),
            None => out.literal(bytes[at]),
        }
        at += if seen.is_some_and(|from| len >= 3 && at - from <= 1 << 13) { len } else { 1 };
    }
    out.finish()
}

#[derive(Default)]
struct Packed {
    bytes: Vec<u8>,
    flags_at: usize,
    flags: u32,
    count: u32,
    /// Where the byte is whose upper half is still free.
    half: Option<usize>,
}

impl Packed {
    fn flag(&mut self, is_copy: bool) {
        if self.count == 0 {
            self.flags_at = self.bytes.len();
            self.bytes.extend([0; 4]);
        }
        self.flags = self.flags << 1 | u32::from(is_copy);
        self.count += 1;
        if self.count == 32 {
            self.write_flags();
        }
    }

    fn write_flags(&mut self) {
        self.bytes[self.flags_at..self.flags_at + 4].copy_from_slice(&self.flags.to_le_bytes());
        (self.flags, self.count) = (0, 0);
    }

    fn literal(&mut self, byte: u8) {
        // Flags are complete before what stands behind them: the last byte of 32 comes after its flag.
        self.flag(false);
        self.bytes.push(byte);
    }

    fn copy(&mut self, back: usize, len: usize) {
        self.flag(true);
        let len = len - 3;
        let word = (back - 1) << 3 | len.min(7);
        self.bytes.extend((word as u16).to_le_bytes());
        if len < 7 {
            return;
        }
        let half = (len - 7).min(15) as u8;
        match self.half.take() {
            Some(at) => self.bytes[at] |= half << 4,
            None => {
                self.half = Some(self.bytes.len());
                self.bytes.push(half);
            }
        }
        if half < 15 {
            return;
        }
        match len - 22 {
            short if short < 255 => self.bytes.push(short as u8),
            _ => {
                self.bytes.push(255);
                self.bytes.extend((len as u16).to_le_bytes());
            }
        }
    }

    fn finish(mut self) -> Vec<u8> {
        // What follows the last literal is marked as copies: a reader has all that it wants before.
        if self.count > 0 {
            let free = 32 - self.count;
            self.flags = self.flags << free | ((1_u64 << free) - 1) as u32;
            self.write_flags();
        }
        self.bytes
    }
}

/// LZ77 with Huffman codes, of literals alone: every byte, and the end, has a code of 9 bits.
pub fn huffman(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for block in bytes.chunks(1 << 16) {
        // 512 codes of 9 bits are all that there are: the symbol is its code.
        out.extend([0x99; 256]);
        let mut word = 0_u32;
        let mut count = 0;
        for symbol in block.iter().map(|&byte| u32::from(byte)).chain([256]) {
            word = word << 9 | symbol;
            count += 9;
            if count >= 16 {
                count -= 16;
                out.extend(((word >> count) as u16).to_le_bytes());
                word &= (1 << count) - 1;
            }
        }
        out.extend(((word << (16 - count)) as u16).to_le_bytes());
        out.extend([0; 2]);
    }
    out
}
