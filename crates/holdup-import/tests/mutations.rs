//! Damaged files: never a panic, never endless, never more memory than the input justifies.

mod common;

use common::{FIXTURES, fixture_bytes, import_bytes};
use holdup_testing::damage::{Random, mutate};

const ROUNDS: usize = 2500;

/// Damages it in a few places.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        mutate(bytes, random, true);
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
    let mut random = Random::new(original.len() as u64);
    let mut readable = 0;
    for _ in 0..ROUNDS {
        let mut bytes = original.clone();
        damage(&mut bytes, &mut random);
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
    let mut random = Random::new(42);
    for _ in 0..200 {
        let mut bytes = original.clone();
        damage(&mut bytes, &mut random);
        drop(import_bytes(bytes));
    }
}
