//! What fuzzing runs. The targets in `fuzz/` call the same bodies under libFuzzer, which needs a nightly compiler; `cargo run
//! -p holdup-fuzz` damages the seeds for a few seconds each with any compiler, and is part of `make test`.

mod bodies;
mod driver;
mod mend;
mod panics;
mod seeds;

pub use bodies::{ctf, demangle, holdup_file, import, object, spool};
pub use driver::{Failure, Limits, Run, run};

/// A reader of foreign bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// As in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// Reads the bytes; it must not panic.
    pub body: fn(&[u8]),
    /// What damage begins from: sound files.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Makes the checksums of a damaged file right again, so that the damage is read.
    pub mend: Option<fn(&mut [u8])>,
}

/// All of them.
pub const TARGETS: [Target; 10] = [
    Target { name: "perf_data", body: import, seeds: seeds::perf_data, mend: None },
    Target { name: "etl", body: import, seeds: seeds::etl, mend: None },
    Target { name: "perfetto", body: import, seeds: seeds::perfetto, mend: None },
    Target { name: "trace_dat", body: import, seeds: seeds::trace_dat, mend: None },
    Target { name: "ctf", body: ctf, seeds: seeds::ctf, mend: None },
    Target { name: "perf_script", body: import, seeds: seeds::perf_script, mend: None },
    Target { name: "holdup_file", body: holdup_file, seeds: seeds::holdup_file, mend: Some(mend::zip) },
    Target { name: "spool", body: spool, seeds: seeds::spool, mend: Some(seeds::spools::mend_checksums) },
    Target { name: "demangle", body: demangle, seeds: seeds::demangle, mend: None },
    Target { name: "object", body: object, seeds: seeds::object, mend: None },
];
