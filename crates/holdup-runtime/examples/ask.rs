//! `ask PID`: the perf map of a Java process, and how long asking took. For measurements.

use std::time::{Duration, Instant};

fn main() {
    let pid =
        std::env::args().nth(1).and_then(|a| a.parse().ok()).expect("the number of a process is missing: ask PID");
    let begin = Instant::now();
    match holdup_runtime::jvm::perf_map(pid, rustix::process::geteuid().as_raw(), Duration::from_secs(10)) {
        Ok(map) => println!(
            "{} bytes, {} frames in {:?}, {:?} of its CPU",
            map.text.len(),
            map.frames.len(),
            begin.elapsed(),
            map.spent
        ),
        Err(e) => println!("{e} ({:?})", begin.elapsed()),
    }
}
