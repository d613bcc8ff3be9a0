//! Any bytes as a trace.dat of trace-cmd: an error or a trace, never a panic.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| holdup_fuzz::import(bytes));
