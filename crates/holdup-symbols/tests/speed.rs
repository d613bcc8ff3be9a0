//! Figures: `cargo test --release -p holdup-symbols --test speed -- --nocapture`.

mod common;

use std::time::Instant;

use common::{compile, flat_image, images};
use holdup_symbols::{Kernel, Symbols};
use holdup_trace::Symbolizer;

#[test]
fn naming_thousands_of_frames() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("threads");
    if compile("rustc", &["-O", "-g", "--edition=2024"], &["threads.rs"], &path).is_none() {
        return;
    }
    let mut symbols = Symbols::new(Kernel::Live);
    let begin = Instant::now();
    symbols.locate(true, &[], u64::MAX);
    println!("kallsyms: {:?}", begin.elapsed());

    let own = images(std::process::id());
    let libc = own.iter().find(|i| i.path.contains("libc.so")).expect("the tests are linked with it");
    let me = own.iter().find(|i| i.path.contains("speed")).unwrap();
    let rust = flat_image(&path);
    for (what, image) in [("libc", libc), ("Rust program", &rust), ("these tests", me)] {
        let step = ((image.end - image.start) / 2500).max(1);
        for round in ["first", "again"] {
            let begin = Instant::now();
            let all = (image.start..image.end).step_by(step as usize);
            let all = all.map(|a| symbols.locate(false, std::slice::from_ref(image), a));
            let (rows, lines) =
                all.fold((0, 0), |(n, lines), f| (n + f.len(), lines + usize::from(f.iter().any(|l| l.line > 0))));
            println!("{what}, 2500 frames, {round}: {:?} ({rows} rows, {lines} frames with lines)", begin.elapsed());
            // Whether libc has debug information is the machine's affair; the others were built with it.
            assert!(rows > 500 && (lines > 100 || what == "libc"), "{what}: {rows} rows, {lines} with lines");
        }
    }
    let begin = Instant::now();
    let named = (0..1000u64).filter(|i| !symbols.locate(true, &[], 0xffff_ffff_8100_0000 + i * 4096).is_empty());
    println!("{} of 1000 kernel frames: {:?}", named.count(), begin.elapsed());
    println!("{:?}", symbols.notes());
}
