//! `cargo xtask ui`: builds the page of the view from `ui/`, and tests it.
//!
//! The built page is committed, so that nobody needs node to build or install holdup. `--check` builds it anew and compares.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::take_flag;

/// Where the built page lies, for the server to hold it.
const DIST: &str = "crates/holdup-server/dist";

/// What it consists of.
const FILES: [&str; 3] = ["index.html", "app.js", "app.css"];

/// The largest that script and style may become, in bytes. They are loaded once, from this machine, but a report carries
/// them too.
const MOST_BYTES: u64 = 200_000;

/// Builds the page, or compares (`--check`), and tests what needs no browser.
pub fn run(root: &Path, args: &[String]) -> Result<bool> {
    let mut args = args.to_vec();
    let check = take_flag(&mut args, "--check");
    ensure!(args.is_empty(), "ui does not know {}", args.join(" "));
    let ui = root.join("ui");
    install(&ui)?;
    npm(&ui, &["run", "--silent", "check"])?;
    let dist = root.join(DIST);
    if !check {
        build(&ui, &dist)?;
        return small_enough(&dist);
    }
    let anew = ui.join("node_modules/.holdup-dist");
    build(&ui, &anew)?;
    let differs: Vec<&str> = FILES.into_iter().filter(|f| bytes(&dist.join(f)) != bytes(&anew.join(f))).collect();
    for file in &differs {
        eprintln!("{DIST}/{file} is not what ui/ makes: run `cargo xtask ui` and commit what changes");
    }
    npm(&ui, &["run", "--silent", "test"])?;
    Ok(differs.is_empty() && small_enough(&dist)?)
}

/// What the lock file names, exactly; nothing where that is here already.
fn install(ui: &Path) -> Result<()> {
    let lock = bytes(&ui.join("package-lock.json")).context("ui/package-lock.json is missing")?;
    let done = ui.join("node_modules/.holdup-lock");
    if bytes(&done).as_deref() == Some(lock.as_slice()) {
        return Ok(());
    }
    npm(ui, &["ci", "--no-audit", "--no-fund"])?;
    fs::write(&done, lock).with_context(|| done.display().to_string())
}

fn build(ui: &Path, to: &Path) -> Result<()> {
    let mut node = Command::new("node");
    run_in(ui, node.arg("build.mjs").arg(to))
}

fn npm(ui: &Path, args: &[&str]) -> Result<()> {
    run_in(ui, Command::new("npm").args(args))
}

fn run_in(folder: &Path, command: &mut Command) -> Result<()> {
    let said = format!("{command:?}");
    let status = command.current_dir(folder).status().with_context(|| format!("{said}: is node installed?"))?;
    ensure!(status.success(), "{said} failed with {status}");
    Ok(())
}

fn bytes(file: &PathBuf) -> Option<Vec<u8>> {
    fs::read(file).ok()
}

fn small_enough(dist: &Path) -> Result<bool> {
    let sizes = FILES.iter().map(|f| Ok(fs::metadata(dist.join(f)).with_context(|| format!("{DIST}/{f}"))?.len()));
    let sum: u64 = sizes.sum::<Result<u64>>()?;
    if sum > MOST_BYTES {
        eprintln!("{DIST} has {sum} bytes, more than {MOST_BYTES}: leave something out, or say in ui.rs why not");
    } else {
        println!("ui: {sum} bytes");
    }
    Ok(sum <= MOST_BYTES)
}
