//! Any bytes as a recorder's spool: an error or a trace, never a panic.

#![no_main]

use std::io::Write;

use holdup_trace::{Destination, TraceBuilder};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a folder for temporary files");
    file.write_all(bytes).expect("room for a small file");
    let mut builder = TraceBuilder::new(&Destination::Memory).expect("memory needs no folder");
    if holdup_spool::read(file.path(), &mut builder).is_ok() {
        drop(builder.finish(None));
    }
});
