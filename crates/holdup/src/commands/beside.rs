//! The program beside this one.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use holdup_trace::Error;

/// What makes load: scripts, drivers for servers, experiments.
const GENERATOR: &str = "holdup-load";

/// What asks data sets of many traces, and carries to where they are kept.
const FLEET: &str = "holdup-fleet";

/// For how long it asks a store that does not answer; the next trace asks again.
const PATIENCE: &str = "1h";

/// What it calls the making of a PNG image.
const TO_PNG: &str = "to-png";

/// The longest document that is drawn, in bytes.
const LONGEST_SVG: u64 = 64 << 20;

/// Becomes the program that makes load, with the same arguments. Returns only if that is not there.
///
/// It is looked for beside this program and nowhere else: what root runs must not depend on a search path.
pub fn become_generator() -> anyhow::Result<ExitCode> {
    let missing = |why: &std::io::Error| {
        let what = format!("`holdup load` and `holdup lab` are done by {GENERATOR}, which belongs beside holdup");
        Error::Unsupported(format!("{what} and cannot be started: {why}; install both"))
    };
    let program = generator().map_err(|e| missing(&e))?;
    let why = Command::new(program).arg0(GENERATOR).args(std::env::args_os().skip(1)).exec();
    Err(missing(&why).into())
}

/// Becomes the program that asks data sets, with the same arguments. Returns only if that is not there.
pub fn become_fleet() -> anyhow::Result<ExitCode> {
    let program = beside(FLEET).map_err(|e| no_fleet(&e))?;
    let why = Command::new(program).arg0(FLEET).args(std::env::args_os().skip(1)).exec();
    Err(no_fleet(&why).into())
}

/// Carries what is in a data set in a folder to one behind an address, and says so. Its exit code.
///
/// # Errors
/// The program that does it is not there.
pub fn ship(from: &Path, to: &str) -> anyhow::Result<ExitCode> {
    let program = beside(FLEET).map_err(|e| no_fleet(&e))?;
    let status = Command::new(program).args(["fleet", "ship"]).arg(from).arg(to).status().map_err(|e| no_fleet(&e))?;
    Ok(ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)))
}

/// The same of a queue, by a process that goes on when this one has ended: what has arrived is removed from the queue, and a store that does
/// not answer is asked again for a while.
///
/// # Errors
/// As [`ship`].
pub fn ship_on(queue: &Path, to: &str) -> anyhow::Result<()> {
    let program = beside(FLEET).map_err(|e| no_fleet(&e))?;
    let mut command = Command::new(program);
    command.args(["fleet", "ship", "--move", "--patience", PATIENCE]).arg(queue).arg(to);
    // A group of its own: Ctrl-C is for the recorder.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(told())
        .process_group(0)
        .spawn()
        .map_err(|e| no_fleet(&e))?;
    Ok(())
}

/// Where a process tells that goes on when this one has ended: a terminal, a journal, a file; whoever reads a pipe waits for its end, and would wait
/// for that process.
fn told() -> Stdio {
    let is_pipe = rustix::fs::fstat(rustix::stdio::stderr())
        .is_ok_and(|told| rustix::fs::FileType::from_raw_mode(told.st_mode) == rustix::fs::FileType::Fifo);
    if is_pipe { Stdio::null() } else { Stdio::inherit() }
}

fn no_fleet(why: &io::Error) -> Error {
    let what = format!("data sets are asked, and kept elsewhere, by {FLEET}, which belongs beside holdup");
    Error::Unsupported(format!("{what} and cannot be started: {why}; install both"))
}

fn generator() -> io::Result<PathBuf> {
    beside(GENERATOR)
}

fn beside(program: &str) -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(program))
}

/// A PNG image of an SVG document, made by the program beside this one: here no image is decoded or drawn.
///
/// # Errors
/// It is not there, or says why.
pub fn to_png(svg: &str) -> Result<Vec<u8>, String> {
    let failed =
        |e: &io::Error| format!("{GENERATOR}, which belongs beside holdup and draws PNG, cannot be asked: {e}");
    let program = generator().map_err(|e| failed(&e))?;
    let mut command = Command::new(program);
    command.arg(TO_PNG).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().map_err(|e| failed(&e))?;
    let mut input = child.stdin.take().expect("is a pipe");
    // It reads all before it writes. If it ends instead, its exit code tells more than the broken pipe.
    let _ = input.write_all(svg.as_bytes());
    drop(input);
    let done = child.wait_with_output().map_err(|e| failed(&e))?;
    if done.status.success() { Ok(done.stdout) } else { Err(format!("{GENERATOR} could not draw it")) }
}

/// What [`to_png`] asks for, of standard input.
///
/// # Errors
/// If that is no SVG document.
pub fn draw_png() -> anyhow::Result<ExitCode> {
    let mut svg = String::new();
    io::stdin().lock().take(LONGEST_SVG).read_to_string(&mut svg)?;
    let image = holdup_load::plot::png(&svg).map_err(anyhow::Error::msg)?;
    crate::text::screen::bytes().write_all(&image)?;
    Ok(ExitCode::SUCCESS)
}
