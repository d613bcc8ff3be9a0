//! Any bytes as the names of functions in a program: named within bounds of length, memory and time.

#![no_main]

#[path = "../../crates/holdup-symbols/tests/common/elf.rs"]
mod elf;

use std::io::Write;
use std::sync::Arc;

use holdup_symbols::{Kernel, Symbols};
use holdup_trace::{Image, Symbolizer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes).replace('\0', "\n");
    // As it is, and as each way of mangling begins.
    let names: Vec<String> =
        text.lines().take(16).flat_map(|l| ["", "_Z", "_ZN", "_R"].map(|begin| format!("{begin}{l}"))).collect();
    let mut file = tempfile::NamedTempFile::new().expect("a folder for temporary files");
    file.write_all(&elf::elf(4096, elf::symbols(&names))).expect("room for a small file");
    let path = file.path().to_string_lossy().into_owned();
    let images = [Arc::new(Image { start: 0, end: u64::MAX, path, ..Image::default() })];
    let mut symbols = Symbols::new(Kernel::None);
    for i in 0..names.len() as u64 {
        for location in symbols.locate(false, &images, elf::TEXT + 16 * i) {
            assert!(location.function.len() <= 4096, "{}", location.function);
        }
    }
});
