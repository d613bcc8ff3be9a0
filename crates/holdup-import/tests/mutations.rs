//! Damaged files: never a panic, never endless, never more memory than the input justifies.

mod common;

use common::{FIXTURES, fixture_bytes, import_bytes};

const ROUNDS: usize = 2500;

/// xorshift: the same damage on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Numbers that lengths, counts and offsets are prone to break on.
const NASTY: [u64; 10] = [0, 1, 7, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 40, i64::MAX as u64, u64::MAX - 7, u64::MAX];

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let len = bytes.len();
        if len < 16 {
            return;
        }
        // Half of the damage goes to the header, where it hurts most.
        let reach = if random.below(2) == 0 { len.min(1024) } else { len };
        let at = random.below(reach);
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes.truncate(random.below(len)),
            2 => {
                let from = random.below(len);
                let n = random.below(256).min(len - from).min(len - at);
                let part = bytes[from..from + n].to_vec();
                bytes[at..at + n].copy_from_slice(&part);
            }
            3 => {
                let n = random.below(512).min(len - at);
                bytes.drain(at..at + n);
            }
            4 => {
                let width = [1, 2, 4, 8][random.below(4)];
                let at = (at / width * width).min(len - 8);
                let value = NASTY[random.below(NASTY.len())].to_le_bytes();
                bytes[at..at + width].copy_from_slice(&value[..width]);
            }
            _ => {
                let n = random.below(64);
                let noise: Vec<u8> = (0..n).map(|_| random.next() as u8).collect();
                bytes.splice(at..at, noise);
            }
        }
    }
}

fn survives(name: &str) {
    let original = fixture_bytes(name);
    let original = match name.strip_suffix(".gz") {
        // Damage inside, not to gzip's checksum alone.
        Some(_) => {
            let mut plain = Vec::new();
            let mut gzip = flate2::read::GzDecoder::new(original.as_slice());
            std::io::Read::read_to_end(&mut gzip, &mut plain).expect("sound gzip");
            plain
        }
        None => original,
    };
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ original.len() as u64);
    let mut readable = 0;
    for _ in 0..ROUNDS {
        let mut bytes = original.clone();
        mutate(&mut bytes, &mut random);
        match import_bytes(bytes) {
            Ok(_) => readable += 1,
            Err(e) => assert!(e.to_string().len() > 20, "{e}"),
        }
    }
    assert!(readable > ROUNDS / 10, "{name}: only {readable} of {ROUNDS} could be read");
}

#[test]
fn damaged_file() {
    survives(FIXTURES[0]);
}

#[test]
fn damaged_stream() {
    survives(FIXTURES[1]);
}

#[test]
fn damaged_zstd() {
    survives(FIXTURES[2]);
}

#[test]
fn damaged_stacks() {
    survives(FIXTURES[3]);
}

#[test]
fn damaged_contexts() {
    survives(FIXTURES[4]);
}

#[test]
fn damaged_gzip() {
    let original = fixture_bytes(FIXTURES[4]);
    let mut random = Random(42);
    for _ in 0..200 {
        let mut bytes = original.clone();
        mutate(&mut bytes, &mut random);
        drop(import_bytes(bytes));
    }
}
