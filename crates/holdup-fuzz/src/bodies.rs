//! The bodies: what is done with any bytes. An error or an answer is right, a panic never is.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use holdup_import::Input;
use holdup_symbols::{Kernel, StackUnwinder, Symbols};
use holdup_trace::{Destination, Image, RawStack, Symbolizer, TraceBuilder, Unwinder};
use tempfile::NamedTempFile;

use crate::seeds::elf;

/// The bytes as a file, as the readers of files want them.
fn file(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a folder for temporary files");
    file.write_all(bytes).expect("room for a small file");
    file
}

fn builder() -> TraceBuilder {
    TraceBuilder::new(&Destination::Memory).expect("memory needs no folder")
}

/// Any bytes as a trace of any kind.
pub fn import(bytes: &[u8]) {
    imported(Input::from_bytes(Path::new("fuzz"), bytes.to_vec()));
}

/// Any bytes as a folder of CTF: the length of its description, which comes next, and one stream.
pub fn ctf(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let (len, rest) = bytes.split_at(bytes.len().min(4));
    let len = len.iter().rev().fold(0, |len, &byte| len << 8 | usize::from(byte)).min(rest.len());
    for (name, part) in [("metadata", &rest[..len]), ("channel0_0", &rest[len..])] {
        std::fs::write(folder.path().join(name), part).expect("room for a small file");
    }
    imported(holdup_import::open(folder.path()));
}

fn imported(input: holdup_trace::Result<Input>) {
    let mut builder = builder();
    if input.and_then(|input| input.import(&mut builder)).is_ok() {
        drop(builder.finish(None));
    }
}

/// Any bytes as a `.holdup` file.
pub fn holdup_file(bytes: &[u8]) {
    let file = file(bytes);
    if let Ok(trace) = holdup_trace::file::read(file.path()) {
        for switch in trace.switches.iter() {
            drop(switch);
        }
        drop(trace.losses());
    }
}

/// Any bytes as a recorder's spool.
pub fn spool(bytes: &[u8]) {
    let file = file(bytes);
    let mut builder = builder();
    if holdup_spool::read(file.path(), &mut builder).is_ok() {
        drop(builder.finish(None));
    }
}

/// Any bytes as the names of functions in a program: named within bounds of length, memory and time.
pub fn demangle(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).replace('\0', "\n");
    // As it is, and as each way of mangling begins.
    let names: Vec<String> =
        text.lines().take(16).flat_map(|l| ["", "_Z", "_ZN", "_R"].map(|begin| format!("{begin}{l}"))).collect();
    let file = file(&elf::elf(4096, elf::symbols(&names)));
    let images = [image(&file)];
    let mut symbols = Symbols::new(Kernel::None);
    for i in 0..names.len() as u64 {
        for location in symbols.locate(false, &images, elf::TEXT + 16 * i) {
            assert!(location.function.len() <= 4096, "{}", location.function);
        }
    }
}

/// Any bytes as a mapped file: names, lines, code and callers, or none.
pub fn object(bytes: &[u8]) {
    let file = file(bytes);
    let images = [image(&file)];
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
}

fn image(file: &NamedTempFile) -> Arc<Image> {
    let path = file.path().to_string_lossy().into_owned();
    Arc::new(Image { start: 0, end: u64::MAX, path, ..Image::default() })
}
