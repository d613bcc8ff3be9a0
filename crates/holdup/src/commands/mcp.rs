//! `holdup mcp`: the same answers for assistants.

use std::io::Read;
use std::path::Path;
use std::process::{ChildStderr, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use holdup_analysis::Disassembler;
use holdup_mcp::{Whom, Workplace};
use holdup_trace::{Result, Trace};
use holdup_view::Machine;

use crate::cli::Mcp;
use crate::open;

/// What a recorder may say, in bytes.
const MOST_SAID: usize = 4096;

/// Runs the command, until the client closes its end.
pub fn run(args: &Mcp) -> anyhow::Result<ExitCode> {
    holdup_mcp::serve(Here, &args.dir, args.allow_record).context("the client cannot be served")?;
    Ok(ExitCode::SUCCESS)
}

/// This machine.
struct Here;

impl Workplace for Here {
    fn open(&self, path: &Path) -> Result<Trace> {
        open::open(path)
    }

    fn disassembler(&self) -> &dyn Disassembler {
        &Machine
    }

    /// By a process of its own: standard output is the protocol's, and what a recorder takes ends with it.
    fn record(&self, whom: &Whom, most: Duration, output: &Path) -> std::result::Result<(), String> {
        let mut command = Command::new(std::env::current_exe().map_err(|e| e.to_string())?);
        command.arg("record").arg("--output").arg(output).arg("--duration").arg(format!("{}ms", most.as_millis()));
        match whom {
            Whom::All => command.arg("--machine"),
            Whom::Processes(which) => command.arg(format!("--pid={which}")),
            Whom::Command(words) => command.arg("--").args(words),
        };
        // What a recorded command prints is not of the protocol, either.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut recorder = command.spawn().map_err(|e| e.to_string())?;
        let said = recorder.stderr.take().map(listen).unwrap_or_default();
        let ended = recorder.wait().map_err(|e| e.to_string())?;
        // The exit code is that of the recorded command: there is a trace all the same.
        if output.is_file() {
            return Ok(());
        }
        let said = said.lock().unwrap_or_else(PoisonError::into_inner);
        Err(format!("nothing was recorded ({ended}): {}", String::from_utf8_lossy(&said).trim()))
    }
}

/// Reads what is said, beyond the limit to forget it, so that who says much does not stand still. By a thread of its own: a
/// recorded program that stays in the background keeps the stream open.
fn listen(mut from: ChildStderr) -> Arc<Mutex<Vec<u8>>> {
    let said = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&said);
    std::thread::spawn(move || {
        let mut piece = [0; 512];
        while let Ok(length @ 1..) = from.read(&mut piece) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let room = MOST_SAID.saturating_sub(kept.len());
            kept.extend(piece.iter().take(length.min(room)));
        }
    });
    said
}
