//! Any bytes as the names of functions in a program: named within bounds of length, memory and time.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| holdup_fuzz::demangle(bytes));
