//! Rust's tokio and rayon.

use anyhow::Result;
use holdup_analysis::report::FindingKind::{CpuBound, Imbalance, Serial, SleepPolling};

use super::{ready, recorded, speed};
use crate::real::case::{Case, Expect, Fix, Is, Recorded};
use crate::real::scene::Scene;

/// A computation on the only worker of a runtime.
pub const TOKIO_BUSY: Case = Case {
    name: "tokio_busy",
    title: "tokio, a computation on its one worker thread",
    command: "./tasks blocking",
    needs: &["cargo"],
    truth: "render_report computes on the worker, and eight tasks wait for it. Their own clock:",
    expect: Expect {
        right: &[Is { kinds: &[Serial, CpuBound], who: "tokio|tasks", function: "render_report|hash", ..Is::ANY }],
        vague: &[Is { who: "tokio|tasks", ..Is::ANY }],
        nothing: false,
    },
    client: None,
    record: |scene| tasks(scene, "blocking"),
    fix: None,
};

/// A blocking call in an async function.
pub const TOKIO_SLEEP: Case = Case {
    name: "tokio_sleep",
    title: "tokio, a blocking call on both of its worker threads",
    command: "./tasks sleeping",
    truth: "read_legacy sleeps on the workers, and eight tasks wait for them. Their own clock:",
    expect: Expect {
        right: &[Is { kinds: &[SleepPolling], who: "tokio|tasks", function: "read_legacy|report", ..Is::ANY }],
        ..TOKIO_BUSY.expect
    },
    record: |scene| tasks(scene, "sleeping"),
    ..TOKIO_BUSY
};

/// All of the work in one piece.
pub const RAYON: Case = Case {
    name: "rayon_piece",
    title: "rayon, one piece that is as long as all others",
    command: "./tasks rayon",
    truth: "fold_piece works on one thread, long after the other has nothing to steal. Its own clock:",
    expect: Expect {
        right: &[Is { kinds: &[Serial, Imbalance], who: "tasks", function: "fold_piece|hash", ..Is::ANY }],
        ..TOKIO_BUSY.expect
    },
    record: |scene| tasks(scene, "rayon"),
    fix: Some(Fix {
        what: "even pieces",
        rate: |scene, fixed| {
            source(scene)?;
            speed(scene, BUILD, if fixed { "./tasks rayon-even" } else { "./tasks rayon" })
        },
    }),
    ..TOKIO_BUSY
};

const MANIFEST: &str = r#"[package]
name = "tasks"
version = "0.1.0"
edition = "2024"
[dependencies]
rayon = "1"
tokio = { version = "1", features = ["rt-multi-thread", "time"] }
[profile.release]
debug = 1
[workspace]
"#;

const BUILD: &str = "cargo build -q --release --target-dir target && cp target/release/tasks .";

/// Writes it, to be built with the crates of our own build, and what it needs besides.
fn source(scene: &Scene) -> Result<()> {
    scene.write("Cargo.toml", MANIFEST)?;
    std::fs::create_dir_all(scene.dir.join("src"))?;
    scene.write("src/main.rs", include_str!("load/tasks.rs"))?;
    scene.write("Cargo.lock", include_str!("../../../../Cargo.lock"))?;
    Ok(())
}

/// Builds it, and records one form of it.
fn tasks(scene: &Scene, form: &str) -> Result<Recorded> {
    source(scene)?;
    ready(scene, BUILD)?;
    let command = format!("./tasks {form}");
    let truth = scene.run(&command)?;
    recorded(scene, ":", &command, "tasks", truth.trim().to_owned())
}
