//! Builds, pipelines and runtimes: programs that run from beginning to end.

mod builds;
mod goroutines;
mod halted;
mod instruments;
mod java;
mod loops;
mod memory;
mod others;
mod parallel;
mod pipes;
mod python;
mod runtimes;
mod scheduler;
mod talk;
mod tasks;
mod waves;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};

use super::case::{Case, Recorded};
use super::scene::Scene;

/// All of them, in the table's order.
pub const ALL: &[&Case] = &[
    &builds::MAKE,
    &builds::CARGO_LTO,
    &builds::GIT_REPACK,
    &builds::FORK_STORM,
    &builds::CONFIGURE,
    &pipes::TAR_GZIP,
    &pipes::BZIP2_PIGZ,
    &pipes::XZ_ZSTD,
    &pipes::CURL_XZ,
    &waves::XZ_BLOCKS,
    &waves::SORT,
    &waves::XARGS,
    &parallel::OPENMP_PASSIVE,
    &parallel::OPENMP_ACTIVE,
    &parallel::OPENMP_CRITICAL,
    &memory::ARENAS,
    &memory::MMAP,
    &memory::DLOPEN,
    &runtimes::PYTHON_GIL,
    &python::REGEX,
    &python::POOL,
    &python::ASYNCIO,
    &python::GUNICORN,
    &python::PROCESSES,
    &python::QUEUE,
    &python::AUDIT,
    &runtimes::JAVA_MONITOR,
    &runtimes::JAVA_GC,
    &java::LOCK,
    &java::LOCK_SHORT,
    &java::POOL,
    &java::IDLE,
    &java::CLASS,
    &java::STREAM,
    &java::H2,
    &java::MAP,
    &java::FUTURES,
    &java::SEMAPHORE,
    &java::FORK,
    &runtimes::GO_MUTEX,
    &goroutines::RWMUTEX,
    &goroutines::CHANNEL,
    &goroutines::GARBAGE,
    &goroutines::GOMAXPROCS,
    &goroutines::IDLE,
    &goroutines::PAGES,
    &goroutines::WAVES,
    &talk::NODE,
    &loops::REPORT,
    &loops::NAMELESS,
    &loops::POOL,
    &loops::ATOMICS,
    &loops::EXPRESS,
    &loops::GZIP,
    &loops::WORKER,
    &tasks::TOKIO_BUSY,
    &tasks::TOKIO_SLEEP,
    &tasks::RAYON,
    &talk::REDIS,
    &talk::DELAYED_ACK,
    &scheduler::QUOTA,
    &scheduler::PINNED,
    &scheduler::NEIGHBOURS,
    &others::RUBY,
    &others::FLAC_LAME,
    &others::NINJA,
    &others::CGI,
    &others::SEVEN_ZIP,
    &others::RSYNC,
    &halted::STOPPED,
    &halted::STRACE,
    &halted::FUSE,
    &halted::NAMES,
    &halted::AIO,
    &halted::MPI,
];

/// Records the shell `command` whole, once the shell `prepare` has made its input.
fn recorded(scene: &Scene, prepare: &str, command: &str, focus: &'static str, truth: String) -> Result<Recorded> {
    ready(scene, prepare)?;
    Ok(Recorded { trace: scene.record_command(command)?, truth, focus })
}

/// Runs of the shell `command` each second.
fn speed(scene: &Scene, prepare: &str, command: &str) -> Result<f64> {
    ready(scene, prepare)?;
    let begun = Instant::now();
    scene.run(command)?;
    Ok(begun.elapsed().as_secs_f64().recip())
}

/// Makes the input with the shell `prepare`, once for each scene.
fn ready(scene: &Scene, prepare: &str) -> Result<()> {
    let made = scene.dir.join("made");
    if !made.exists() {
        scene.run(prepare)?;
        fs::write(made, "")?;
    }
    Ok(())
}

/// The sources of the crate whose name and version begin with `prefix`, as Cargo has unpacked them for our own build.
fn crate_sources(prefix: &str) -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|h| h.join(".cargo"))).context("no home folder")?;
    let registries = fs::read_dir(home.join("registry/src"))?.flatten();
    let mut crates = registries.flat_map(|r| fs::read_dir(r.path()).into_iter().flatten().flatten()).map(|e| e.path());
    let found = crates.find(|c| c.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)));
    found.with_context(|| format!("cargo fetch has unpacked no {prefix}"))
}

/// The real interpreter behind `python3`, which may be a script that picks one.
fn interpreter(scene: &Scene) -> Result<String> {
    Ok(scene.run("python3 -c 'import sys; print(sys.executable)'")?.trim().to_owned())
}
