//! `cargo xtask wasm`: the browser's side of holdup, compiled and put where the report takes it from.
//!
//! Built with `cargo run -p xtask --features wasm -- wasm`: wasm-bindgen's half that runs here is a tool for this command alone.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

const TARGET: &str = "wasm32-unknown-unknown";
/// A profile of its own: small, in one piece.
const PROFILE: &str = "wasm";
/// As small as it gets within a second or two.
const LEVEL: i32 = 19;
/// Where the report crate takes it from.
const DIST: &str = "crates/holdup-report/dist";
/// What `rustc --version` said to whoever made it: another one makes other bytes.
const COMPILER: &str = "rustc";

/// Builds it; with `--check` compares it with what is committed instead of replacing that.
pub fn run(root: &Path, args: &[String]) -> Result<bool> {
    let check = args.iter().any(|a| a == "--check");
    let module = compile(root)?;
    let (script, wasm) = bind(root, &module)?;
    let packed = zstd::encode_all(wasm.as_slice(), LEVEL)?;
    let (size, small) = (wasm.len(), packed.len());
    eprintln!("{size} bytes, packed {small}; script {} bytes", script.len());
    let dist = root.join(DIST);
    let [script_file, wasm_file, compiler_file] =
        ["holdup.js", "holdup.wasm.zst", COMPILER].map(|name| dist.join(name));
    if !check {
        std::fs::create_dir_all(&dist)?;
        std::fs::write(script_file, script)?;
        std::fs::write(wasm_file, packed)?;
        std::fs::write(compiler_file, compiler()?)?;
        return Ok(true);
    }
    // What packs may be of another version: what is packed counts.
    let kept = std::fs::read(&wasm_file).and_then(|packed| zstd::decode_all(packed.as_slice()));
    let same =
        kept.is_ok_and(|kept| kept == wasm) && std::fs::read_to_string(script_file).is_ok_and(|kept| kept == script);
    if !same {
        eprintln!("{DIST} is not what this source and this compiler make: cargo run -p xtask --features wasm -- wasm");
    }
    Ok(same)
}

fn compiler() -> Result<Vec<u8>> {
    Ok(Command::new("rustc").arg("--version").output()?.stdout)
}

fn compile(root: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // No path of the machine that builds gets into the module.
    let home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|h| format!("{h}/.cargo")))?;
    let mut flags = vec![format!("--remap-path-prefix={}=", root.display())];
    // Each registry has a folder of its own, whose name is another one elsewhere.
    for registry in std::fs::read_dir(format!("{home}/registry/src"))? {
        flags.push(format!("--remap-path-prefix={}=", registry?.path().display()));
    }
    let target = root.join("target/wasm");
    let status = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--locked",
            "-p",
            "holdup-wasm",
            "--target",
            TARGET,
            "--profile",
            PROFILE,
            "--target-dir",
        ])
        .arg(&target)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .current_dir(root)
        .status()?;
    ensure!(status.success(), "holdup-wasm does not build: rustup target add {TARGET}");
    Ok(target.join(TARGET).join(PROFILE).join("holdup_wasm.wasm"))
}

/// The script that calls the module, and the module as that script wants it.
fn bind(root: &Path, module: &Path) -> Result<(String, Vec<u8>)> {
    let out = root.join("target/wasm/bound");
    wasm_bindgen_cli_support::Bindgen::new()
        .input_path(module)
        .no_modules(true)?
        .typescript(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(&out)?;
    let script = std::fs::read_to_string(out.join("holdup_wasm.js"))?;
    Ok((script, std::fs::read(out.join("holdup_wasm_bg.wasm"))?))
}
