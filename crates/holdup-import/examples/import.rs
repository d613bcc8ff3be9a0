//! Imports a trace and says what it holds and how long that took: `cargo run --release --example import FILE [DIR]`.

use std::path::Path;
use std::time::Instant;

use holdup_trace::{Destination, TraceBuilder};

fn main() -> holdup_trace::Result<()> {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap_or_else(|| "-".to_owned());
    let to = args.next().map_or(Destination::Memory, |dir| Destination::Folder(dir.into()));
    let started = Instant::now();
    let mut builder = TraceBuilder::new(&to)?;
    holdup_import::open(Path::new(&path))?.import(&mut builder)?;
    let imported = started.elapsed();
    let trace = builder.finish(None)?;
    let total = started.elapsed();
    let meta = &trace.meta;
    println!("{meta:#?}");
    println!("threads {} stacks {} images {}", trace.threads.tid.len(), trace.stacks.len(), trace.images.rows());
    println!("switches {} wakes {}", trace.switches.rows(), trace.wakes.rows());
    println!("samples {} waits {}", trace.samples.rows(), trace.waits.rows());
    for loss in trace.losses.iter().take(20) {
        println!("{:?}", loss?);
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or("");
    eprintln!("imported in {imported:?}, finished in {total:?}, {peak}");
    Ok(())
}
