//! Any bytes as a `.holdup` file: an error or a trace, never a panic.

#![no_main]

use std::io::Write;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a folder for temporary files");
    file.write_all(bytes).expect("room for a small file");
    if let Ok(trace) = holdup_trace::file::read(file.path()) {
        for switch in trace.switches.iter() {
            drop(switch);
        }
        drop(trace.losses());
    }
});
