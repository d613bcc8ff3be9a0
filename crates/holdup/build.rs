//! How the program is linked.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What makes the program smaller, where the linker and the C library here understand it.
const SMALLER: [&str; 2] = [
    // Where things lie when it is loaded takes a bit each instead of 24 bytes: 1.15 MB. The C library loads it since 2.36.
    "-Wl,-z,pack-relative-relocs",
    // Functions with the same instructions are there once: 0.4 MB. LLD and gold know it, the linker of GNU does not.
    "-Wl,--icf=all",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in SMALLER.into_iter().filter(|argument| runs_with(argument)) {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}

/// Whether a program that is linked with `argument` runs here. Of other machines nothing is known.
fn runs_with(argument: &str) -> bool {
    let word = |name: &str| std::env::var(name).unwrap_or_default();
    let program = PathBuf::from(word("OUT_DIR")).join("probe");
    let source = program.with_extension("rs");
    if word("HOST") != word("TARGET") || std::fs::write(&source, "fn main() {}").is_err() {
        return false;
    }
    let mut link = Command::new(word("RUSTC"));
    link.args(["--crate-type", "bin", "-C", &format!("link-arg={argument}"), "-o"]).args([&program, &source]);
    let succeeds = |command: &mut Command| command.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    succeeds(&mut link) && succeeds(&mut Command::new(&program))
}
