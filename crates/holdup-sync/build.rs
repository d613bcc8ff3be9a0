//! Names the targets that have restartable sequences, so that the condition stands in one place.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(holdup_rseq)");
    println!("cargo::rustc-check-cfg=cfg(loom)");
    // Of the example `hot_counter`.
    println!("cargo::rustc-check-cfg=cfg(fixed)");
    let is = |key: &str, values: &[&str]| var(key).is_ok_and(|value| values.contains(&value.as_str()));
    let target = is("CARGO_CFG_TARGET_OS", &["linux"]) && is("CARGO_CFG_TARGET_ENV", &["gnu"]);
    let arch = is("CARGO_CFG_TARGET_ARCH", &["x86_64", "aarch64"]) && is("CARGO_CFG_TARGET_POINTER_WIDTH", &["64"]);
    // Miri runs no assembly, loom models none.
    let modelled = var("CARGO_CFG_MIRI").is_ok() || var("CARGO_CFG_LOOM").is_ok();
    if target && arch && !modelled && var("CARGO_FEATURE_STD").is_ok() {
        println!("cargo::rustc-cfg=holdup_rseq");
    }
}
