//! Any bytes as a mapped file: names, lines, code and callers, or none, never a panic.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| holdup_fuzz::object(bytes));
