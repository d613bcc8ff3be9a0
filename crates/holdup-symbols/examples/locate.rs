//! Prints what lies at file offsets of an ELF file: `locate FILE OFFSET…`.
use std::sync::Arc;

use holdup_symbols::{Kernel, Symbols};
use holdup_trace::{Image, Symbolizer};

fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().expect("a file");
    let image = [Arc::new(Image { end: u64::MAX, path, ..Image::default() })];
    let mut symbols = Symbols::new(Kernel::None);
    for offset in args {
        let address = u64::from_str_radix(offset.trim_start_matches("0x"), 16).expect("a hexadecimal number");
        println!("0x{address:x}");
        for l in symbols.locate(false, &image, address) {
            println!("  {}+0x{:x} {}:{}", l.function, l.offset, l.file, l.line);
        }
    }
    eprintln!("{:?}", symbols.notes());
}
