//! Any bytes as a log of ETW: an error or a trace, never a panic.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| holdup_fuzz::import(bytes));
