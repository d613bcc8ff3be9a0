//! What is built elsewhere and committed goes along with the crate that holds it: whoever installs holdup has neither node nor
//! a compiler for WebAssembly.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

/// Crates, and what their packages must have.
const NEEDED: [(&str, &[&str]); 2] = [
    ("holdup-server", &["dist/index.html", "dist/app.js", "dist/app.css"]),
    ("holdup-report", &["dist/holdup.js", "dist/holdup.wasm.zst"]),
];

pub fn check(root: &Path) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for (package, files) in NEEDED {
        complaints.extend(missing(package, files, &packaged(root, package)?));
    }
    Ok(complaints)
}

/// The files that `cargo package` would pack.
fn packaged(root: &Path, package: &str) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let list = ["package", "--list", "--allow-dirty", "--quiet", "--package", package];
    let output = Command::new(cargo).args(list).current_dir(root).output()?;
    ensure!(output.status.success(), "cargo package --list: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?)
}

fn missing(package: &str, files: &[&str], packaged: &str) -> Vec<String> {
    let absent = files.iter().filter(|file| !packaged.lines().any(|line| line == **file));
    absent.map(|file| format!("crates/{package}: its package has no {file}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_named() {
        let packaged = "Cargo.toml\ndist/app.js\nsrc/lib.rs\n";
        assert_eq!(missing("a", &["dist/app.js"], packaged), [""; 0]);
        assert_eq!(
            missing("a", &["dist/app.css", "app.js"], packaged),
            ["crates/a: its package has no dist/app.css", "crates/a: its package has no app.js"]
        );
    }
}
