//! The page of `holdup view` in a browser.
//!
//! The tests themselves are JavaScript (`ui/test`): they need node, Chromium and the packages that `cargo xtask ui` installs.

use std::path::{Path, PathBuf};
use std::process::Command;

use holdup_testing::{Need, has};

fn ui() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui")
}

fn browser_is_here() -> bool {
    let packages = ui().join("node_modules/playwright-core").is_dir();
    let name = "packages of the page (`cargo xtask ui` installs them)";
    has(Need::Program("node")) && has(Need::Program("chromium")) && has(Need::Other { name, is_here: packages })
}

/// Runs a file of tests, and shows what it says if it fails.
fn node(test: &str, envs: &[(&str, &str)]) {
    let mut command = Command::new("node");
    command.args(["--test", "--test-reporter=tap", test]).current_dir(ui().join("test")).envs(envs.iter().copied());
    let output = command.output().expect("node runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let passed = said.lines().find_map(|l| l.strip_prefix("# pass ")).and_then(|n| n.parse().ok()).unwrap_or(0);
    assert!(passed > 0, "no test ran:\n{said}");
}

#[test]
fn with_answers_that_are_made_up() {
    if browser_is_here() {
        node("page.mjs", &[]);
    }
}
