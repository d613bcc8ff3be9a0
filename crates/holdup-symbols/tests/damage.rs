//! Damaged files: nothing panics, nothing hangs.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::{BASE, compile, flat_image, symbol};
use holdup_symbols::{Kernel, StackUnwinder, Symbols};
use holdup_testing::damage::Random;
use holdup_trace::{RawStack, Symbolizer, Unwinder};

static PANICS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn mutated_files_never_panic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("good");
    if compile("gcc", &["-O2", "-g", "-Wl,-z,noseparate-code"], &["inline.c"], &path).is_none() {
        return;
    }
    let (good, outer) = (std::fs::read(&path).unwrap(), symbol(&path, "outer"));
    // Panics of third-party parsers are caught, but shall be seen here.
    std::panic::set_hook(Box::new(|info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        eprintln!("{info}");
    }));
    let mut random = Random::new(1);
    for round in 0..400 {
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(40) {
            // Half of the damage hits the headers, where it hurts most.
            let (begin, len) = match random.below(4) {
                0 => (0, 64 + 13 * 56),
                1 => (good.len() - 64 * 38, 64 * 38),
                _ => (0, good.len()),
            };
            bytes[begin + random.below(len)] = random.below(256) as u8;
        }
        if round % 10 == 0 {
            bytes.truncate(random.below(good.len()));
        }
        let bad = dir.path().join(format!("bad{round}"));
        std::fs::write(&bad, &bytes).unwrap();
        exercise(&bad, outer);
        std::fs::remove_file(&bad).unwrap();
    }
    let _ = std::panic::take_hook();
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
}

fn exercise(path: &std::path::Path, outer: u64) {
    let images = [flat_image(path)];
    let (mut symbols, mut unwinder) = (Symbols::new(Kernel::None), StackUnwinder::new());
    for address in (BASE..images[0].end).step_by(509).chain([BASE + outer, BASE + outer + 5]) {
        symbols.locate(false, &images, address);
        symbols.code(false, &images, address, 64);
        let bytes = (0..512).map(|i| (i * 37) as u8).collect();
        let raw = RawStack { ip: address, sp: 0x7fff_0000, bp: 0x7fff_0040, bytes, ..RawStack::default() };
        let (frames, _) = unwinder.unwind(&images, &raw);
        assert!(frames.len() <= 65, "more frames than words were copied");
    }
}
