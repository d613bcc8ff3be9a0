//! What the tests share.

#![allow(dead_code)]

use std::path::{Path, PathBuf};

use holdup_import::Input;
use holdup_trace::{Destination, Result, Trace, TraceBuilder};

pub mod ctf;
pub mod trace_dat;

/// Every fixture, by name.
pub const FIXTURES: [&str; 5] =
    ["task.perf.data", "pipe.perf.data", "zstd.perf.data", "dwarf.perf.data", "contexts.perf.data.gz"];

/// The path of a fixture.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// The bytes of a fixture.
pub fn fixture_bytes(name: &str) -> Vec<u8> {
    std::fs::read(fixture(name)).expect("the fixture is in the repository")
}

/// Imports a file.
pub fn import_file(path: &Path) -> Result<Trace> {
    let mut builder = TraceBuilder::new(&Destination::Memory)?;
    holdup_import::open(path)?.import(&mut builder)?;
    builder.finish(None)
}

/// Imports bytes.
pub fn import_bytes(bytes: Vec<u8>) -> Result<Trace> {
    let mut builder = TraceBuilder::new(&Destination::Memory)?;
    Input::from_bytes(Path::new("test.perf.data"), bytes)?.import(&mut builder)?;
    builder.finish(None)
}

/// The trace's own count of `name`.
pub fn native(trace: &Trace, name: &str) -> u64 {
    trace.meta.native_events.get(name).copied().unwrap_or(0)
}
