//! Any bytes as perf.data: an error or a trace, never a panic.

#![no_main]

use std::path::Path;

use holdup_import::Input;
use holdup_trace::{Destination, TraceBuilder};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut builder = TraceBuilder::new(&Destination::Memory).expect("memory needs no folder");
    let imported = Input::from_bytes(Path::new("fuzz"), bytes.to_vec()).and_then(|i| i.import(&mut builder));
    if imported.is_ok() {
        drop(builder.finish(None));
    }
});
