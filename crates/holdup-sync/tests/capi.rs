//! A C program compiled against the header and linked with the static library counts right.
#![cfg(all(target_os = "linux", not(miri), not(loom)))]

use std::path::Path;
use std::process::Command;

use holdup_testing::{Need, has};

#[test]
fn a_c_program_counts() {
    if !has(Need::Program("cc")) {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // A target folder of its own: cargo holds the usual one while it runs tests.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi");
    run(Command::new(env!("CARGO"))
        .args(["rustc", "--quiet", "--offline", "--lib", "--features", "capi", "--crate-type", "staticlib"])
        .arg("--manifest-path")
        .arg(root.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target));
    let program = target.join("capi-test");
    run(Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .arg(&program)
        .arg(root.join("tests/capi.c"))
        .arg("-I")
        .arg(root.join("include"))
        .arg(target.join("debug/libholdup_sync.a"))
        .args(["-lpthread", "-ldl", "-lm"]));
    let said = run(&mut Command::new(program));
    assert!(said.starts_with("all there"), "{said}");
}

/// Standard output of a command that must succeed.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
