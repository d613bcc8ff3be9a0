//! CPU time and peak memory of a command.
//!
//! The kernel sums these over all children of a process, so each command runs under a fresh xtask of its own.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};

/// The hidden command that runs another one and writes its [`Usage`].
pub const COMMAND: &str = "measured";

/// What a command used.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Usage {
    /// Wall-clock seconds.
    pub wall_s: f64,
    /// CPU seconds, user and system, children included.
    pub cpu_s: f64,
    /// Peak resident memory of the greatest process, in MB.
    pub peak_mb: f64,
}

/// Runs `command` with its output thrown away. Fails if the command does.
pub fn run(command: &[&str], scratch: &Path) -> Result<Usage> {
    let file = scratch.join("usage.json");
    let status = Command::new(std::env::current_exe()?).arg(COMMAND).arg(&file).args(command).status()?;
    ensure!(status.success(), "{} failed: {status}", command.join(" "));
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    Ok(serde_json::from_str(&text)?)
}

/// The other side of [`run`]: `args` are the file to write and the command.
pub fn child(args: &[String]) -> ExitCode {
    match measured(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("xtask: {e:#}");
            ExitCode::from(2)
        }
    }
}

fn measured(args: &[String]) -> Result<bool> {
    let [file, program, args @ ..] = args else { anyhow::bail!("{COMMAND} FILE PROGRAM [ARGUMENT...]") };
    let start = Instant::now();
    let status = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context(program.clone())?;
    let wall_s = start.elapsed().as_secs_f64();
    let used = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    let cpu_s = seconds(used.user_time()) + seconds(used.system_time());
    let usage = Usage { wall_s, cpu_s, peak_mb: used.max_rss() as f64 / 1024.0 };
    std::fs::write(file, serde_json::to_vec(&usage)?)?;
    Ok(status.success())
}
