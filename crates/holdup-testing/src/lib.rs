//! A test that cannot be done on a machine says so, and never passes in silence.
//!
//! A skip is printed, and written into the file that `HOLDUP_SKIPS` names, which `make test` lists at its end. Where
//! `HOLDUP_NO_SKIPS` is set, as `make test` does, it fails the test if the machine has what the test says is missing: the
//! [`Need`] looks for itself, so that a broken test or tool is not taken for a machine without.

pub mod damage;
pub mod etl;
mod need;

use std::io::Write;
use std::panic::Location;
use std::path::{Path, PathBuf};

pub use need::Need;

/// The file to which each skip adds a line: test, place and reason, with tabs between them.
pub const SKIPS: &str = "HOLDUP_SKIPS";

/// Set to anything, a skip without a reason in the machine fails.
pub const NO_SKIPS: &str = "HOLDUP_NO_SKIPS";

/// Whether the machine has it; where not, the test is skipped, and that is said.
#[track_caller]
pub fn has(need: Need) -> bool {
    let here = need.is_here();
    if !here {
        note(&need.to_string());
    }
    here
}

/// Skips a test since `need` turned out to be missing when it was used, with what was seen as `why`.
///
/// # Panics
/// Under [`NO_SKIPS`] if the machine has it.
#[track_caller]
pub fn skip(need: Need, why: &str) {
    let reason = if why.is_empty() { need.to_string() } else { format!("{need}: {why}") };
    note(&reason);
    assert!(
        std::env::var_os(NO_SKIPS).is_none() || !need.is_here(),
        "skipped without a reason in the machine, which has {need}: {why}"
    );
}

/// The file or folder `name` among the traces of other machines, which stand beside the repository or where `HOLDUP_SHARED_TRACES` says.
#[track_caller]
pub fn shared_trace(name: &str) -> Option<PathBuf> {
    let folder = shared_traces()?;
    let path = folder.join(name);
    assert!(path.exists(), "{} has no {name}", folder.display());
    Some(path)
}

/// The folder of the traces of other machines.
#[track_caller]
pub fn shared_traces() -> Option<PathBuf> {
    has(Need::SharedTraces).then(need::shared_traces)
}

/// Says that something is skipped, where that can be seen.
#[track_caller]
fn note(reason: &str) {
    let place = Location::caller();
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("?");
    println!("skipped: {test}: no {reason}");
    if let Some(path) = std::env::var_os(SKIPS) {
        let line = format!("{test}\t{}:{}\tno {}\n", place.file(), place.line(), reason.replace(['\n', '\t'], " "));
        append(Path::new(&path), &line);
    }
}

/// In one write, since several programs write into the file.
fn append(path: &Path, line: &str) {
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(written.is_ok(), "the list of skips cannot be written: {}: {written:?}", path.display());
}
