//! Any bytes as a `.holdup` file: an error or a trace, never a panic.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| holdup_fuzz::holdup_file(bytes));
