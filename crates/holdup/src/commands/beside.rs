//! The program beside this one.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use holdup_trace::Error;

/// What makes load: scripts, drivers for servers, experiments.
const GENERATOR: &str = "holdup-load";

/// Becomes the program that makes load, with the same arguments. Returns only if that is not there.
///
/// It is looked for beside this program and nowhere else: what root runs must not depend on a search path.
pub fn become_generator() -> anyhow::Result<ExitCode> {
    let missing = |why: &std::io::Error| {
        let what = format!("`holdup load` and `holdup lab` are done by {GENERATOR}, which belongs beside holdup");
        Error::Unsupported(format!("{what} and cannot be started: {why}; install both"))
    };
    let program = std::env::current_exe().map_err(|e| missing(&e))?.with_file_name(GENERATOR);
    let why = Command::new(program).arg0(GENERATOR).args(std::env::args_os().skip(1)).exec();
    Err(missing(&why).into())
}
