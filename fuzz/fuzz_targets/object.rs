//! Any bytes as a mapped file: names, lines, code and callers, or none, never a panic.

#![no_main]

use std::io::Write;
use std::sync::Arc;

use holdup_symbols::{Kernel, StackUnwinder, Symbols};
use holdup_trace::{Image, RawStack, Symbolizer, Unwinder};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a folder for temporary files");
    file.write_all(bytes).expect("room for a small file");
    let path = file.path().to_string_lossy().into_owned();
    let images = [Arc::new(Image { start: 0, end: u64::MAX, path, ..Image::default() })];
    let (mut symbols, mut unwinder) = (Symbols::new(Kernel::None), StackUnwinder::new());
    for address in (0..bytes.len() as u64).step_by(1 + bytes.len() / 16) {
        symbols.locate(false, &images, address);
        if let Some((start, code)) = symbols.code(false, &images, address, 4096) {
            symbols.lines(&images, start, code.len());
        }
        let stack = (0..512).map(|i| bytes.get(i).copied().unwrap_or(i as u8)).collect();
        let raw = RawStack { ip: address, sp: 0x7fff_0000, bp: 0x7fff_0040, bytes: stack, ..RawStack::default() };
        unwinder.unwind(&images, &raw);
    }
});
